"""Roles, module paths and the forward op behind each backward node."""

from __future__ import annotations

from tb_dlprof_plugin.advice.optimizer_work import optimizer_work
from tb_dlprof_plugin.model.profile import CallKind, Profile, Role
from tb_dlprof_plugin.profile_view import ProfileView


def _ops(profile: Profile) -> dict[str, tuple[str, str, str, bool]]:
    """By name of the op: role, module path, op type, whether it continues another backward node."""
    ops, strings = profile.ops, profile.strings
    return {
        strings[name]: (Role(role).name.lower(), strings[module], strings[kind], bool(continuation))
        for name, role, module, kind, continuation, what in zip(
            ops.name, ops.role, ops.module, ops.op_type, ops.continuation, ops.kind, strict=True
        )
        if what == CallKind.OP
    }


def test_each_part_of_a_training_step_gets_its_role_and_module(new_trace) -> None:
    # GIVEN a step of one layer in a nested module
    trace = new_trace()
    trace.step(0, 0, 200)
    trace.loader(0, 20)
    trace.op("aten::stack", 5, 5)
    trace.op("aten::to", 22, 5)
    trace.module("net", 30, 40)
    trace.module("net.fc", 32, 30)
    trace.op("aten::linear", 35, 20)
    trace.op("aten::addmm", 38, 10, seq=4)
    trace.op("aten::relu", 63, 5, seq=5)
    trace.backward("AddmmBackward0", 80, 20, 4)
    trace.op("aten::mm", 85, 10, tid=2)
    trace.optimizer(120, 40)
    trace.op("aten::_foreach_add_", 130, 10)
    trace.op("aten::_amp_update_scale_", 170, 5)

    assert _ops(trace.profile()) == {
        "aten::stack": ("dataloader", "", "stack", False),
        "aten::to": ("other", "", "to", False),
        "aten::linear": ("forward", "net.fc", "linear", False),
        "aten::addmm": ("forward", "net.fc", "addmm", False),
        "aten::relu": ("forward", "net", "relu", False),
        "autograd::engine::evaluate_function: AddmmBackward0": ("backward", "net.fc", "linear", False),
        "aten::mm": ("backward", "net.fc", "mm", False),
        "aten::_foreach_add_": ("optimizer", "", "_foreach_add_", False),
        "aten::_amp_update_scale_": ("optimizer", "", "_amp_update_scale_", False),
    }


def test_what_an_optimizers_closure_runs_is_not_the_optimizers(new_trace) -> None:
    # GIVEN an optimizer's step that calls the model, as Lightning has it
    trace = new_trace()
    trace.step(0, 0, 200)
    trace.optimizer(10, 180)
    trace.op("aten::to", 12, 3)
    trace.module("net", 20, 40)
    trace.op("aten::linear", 25, 20, seq=4)
    trace.op("aten::mse_loss", 62, 5, seq=5)
    trace.event("Optimizer.zero_grad#SGD.zero_grad", "user_annotation", 68, 6)
    trace.op("aten::zero_", 70, 2)
    trace.backward("MseLossBackward0", 80, 10, 5)
    trace.backward("AddmmBackward0", 92, 20, 4)
    trace.op("aten::_foreach_add_", 130, 10)

    profile = trace.profile()
    found = {name: role for name, (role, *_) in _ops(profile).items()}
    assert found == {
        "aten::to": "other",
        "aten::linear": "forward",
        "aten::mse_loss": "forward",
        "aten::zero_": "optimizer",
        "autograd::engine::evaluate_function: MseLossBackward0": "backward",
        "autograd::engine::evaluate_function: AddmmBackward0": "backward",
        "aten::_foreach_add_": "optimizer",
    }
    view = ProfileView(profile)
    work = optimizer_work(view, view.selection())
    assert [one.tolist() for one in work.steps] == [[112_000], [190_000]]


def test_a_backward_node_goes_to_the_op_that_started_last_with_its_number(new_trace) -> None:
    # GIVEN an op without a node and the op after it share a sequence number
    trace = new_trace()
    trace.module("a", 0, 10)
    trace.op("aten::detach", 2, 3, seq=7)
    trace.module("b", 10, 10)
    trace.op("aten::mul", 12, 3, seq=7)
    trace.backward("MulBackward0", 50, 5, 7)
    assert _ops(trace.profile())["autograd::engine::evaluate_function: MulBackward0"] == ("backward", "b", "mul", False)


def test_only_the_first_of_several_backward_nodes_of_one_op_counts_as_a_call(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::linear", 0, 10)
    trace.op("aten::t", 1, 2, seq=1)
    trace.op("aten::addmm", 5, 3, seq=2)
    trace.backward("AddmmBackward0", 50, 5, 2)
    trace.backward("TBackward0", 60, 5, 1)
    ops = _ops(trace.profile())
    assert ops["autograd::engine::evaluate_function: AddmmBackward0"] == ("backward", "", "linear", False)
    assert ops["autograd::engine::evaluate_function: TBackward0"] == ("backward", "", "linear", True)


def test_the_second_step_does_not_continue_the_first(training) -> None:
    profile = training(steps=2).profile()
    ops = profile.ops
    names = [profile.strings[i] for i in ops.name[profile.calls.op]]
    continuation = ops.continuation[profile.calls.op]
    marked = [name.rsplit(" ", 1)[-1] for name, mark in zip(names, continuation, strict=True) if mark]
    assert marked == ["torch::autograd::AccumulateGrad"] * 2


def test_a_backward_node_whose_forward_was_not_recorded_keeps_its_own_type(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mul", 20, 5, seq=3)
    trace.backward("MulBackward0", 0, 5, 3)
    trace.backward("torch::autograd::AccumulateGrad", 10, 5, 99)
    ops = _ops(trace.profile())
    assert ops["autograd::engine::evaluate_function: MulBackward0"] == ("backward", "", "MulBackward0", False)
    assert ops["autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"] == (
        "backward", "", "AccumulateGrad", False,
    )  # fmt: skip


def test_inference_without_module_ranges_is_all_forward(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 5)
    trace.op("aten::relu", 6, 5)
    assert {role for role, *_ in _ops(trace.profile()).values()} == {"forward"}


def test_ops_of_another_thread_are_not_in_the_module_that_runs_meanwhile(new_trace) -> None:
    trace = new_trace()
    trace.module("fc", 0, 100)
    trace.op("aten::mm", 10, 5)
    trace.op("aten::rand", 10, 5, tid=8)
    trace.backward("X", 200, 1, 50)
    assert {name: row[:2] for name, row in _ops(trace.profile()).items() if name.startswith("aten::")} == {
        "aten::mm": ("forward", "fc"),
        "aten::rand": ("other", ""),
    }


def test_module_ranges_show_their_path_not_their_prefix(new_trace) -> None:
    trace = new_trace()
    trace.module("layer1.0.conv1", 0, 10)
    trace.op("aten::mm", 1, 2)
    profile = trace.profile()
    ranges = profile.ops.kind == CallKind.MODULE
    assert [profile.strings[i] for i in profile.ops.module[ranges]] == ["layer1.0.conv1"]
    assert [profile.strings[i] for i in profile.ops.name[ranges]] == [""]


def test_only_outermost_ops_are_top(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.module("fc", 0, 50)
    trace.op("aten::linear", 5, 30)
    trace.op("aten::addmm", 8, 20)
    trace.runtime(10, 2, 5)
    profile = trace.profile()
    top = {profile.strings[n] for n, t in zip(profile.ops.name, profile.ops.top, strict=True) if t}
    assert top == {"aten::linear"}
