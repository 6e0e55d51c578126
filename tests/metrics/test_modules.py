"""The module tree and its totals: by hand on literal traces, by their invariants on every recorded run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.metrics.module_tree import module_tree
from tb_dlprof_plugin.metrics.modules import OUTSIDE_ROLES, ModuleTotals, module_totals
from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.model.intervals import union
from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.profile_view import ProfileView, Selection

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
RUNS = sorted(str(path.relative_to(RECORDED)) for path in RECORDED.glob("*/*") if path.is_dir())
KERNEL = "void at::native::vectorized_elementwise_kernel<4>(int)"
US = 1000


def _recorded(run: str) -> ProfileView:
    return recorded_view(RECORDED / run)


def _totals(view: ProfileView, selection: Selection | None = None) -> tuple[dict[str, int], ModuleTotals]:
    """Node by path, and the totals."""
    tree, totals = module_tree(view), module_totals(view, selection or view.selection())
    assert tree is not None
    assert totals is not None
    return {path: node for node, path in enumerate(tree.path)}, totals


def _outside(totals: ModuleTotals, role: Role) -> int:
    return int(totals.outside.gpu_sum_ns[OUTSIDE_ROLES.index(role)])


def test_there_are_recorded_runs() -> None:
    assert len(RUNS) == 24


@pytest.mark.parametrize("run", RUNS)
def test_the_model_and_what_lies_outside_are_all_linked_time(run: str) -> None:
    view = _recorded(run)
    for selection in (view.selection(), view.selection(3, 5)):
        of_ops = op_totals(view, selection)
        _, totals = _totals(view, selection)
        inside, outside = totals.inside, totals.outside
        for name in ("gpu_sum_ns", "eligible_ns", "tensor_core_ns", "eligible_unknown_ns"):
            of_op = of_ops.gpu_ns if name == "gpu_sum_ns" else getattr(of_ops, name)
            assert getattr(inside, name)[0] + getattr(outside, name).sum() == of_op.sum()
        assert inside.kernel_calls[0] + outside.kernel_calls.sum() == of_ops.kernel_calls.sum()
        assert inside.op_calls[0] + outside.op_calls.sum() == of_ops.calls.sum()
        # The optimizer's work is in no module, the matrix ops are in one.
        assert _outside(totals, Role.OPTIMIZER) > 0
        assert outside.eligible_ns.sum() == 0


@pytest.mark.parametrize("run", RUNS)
def test_a_module_is_no_shorter_than_a_part_of_it_and_no_longer_than_all(run: str) -> None:
    view = _recorded(run)
    tree = module_tree(view)
    _, totals = _totals(view)
    assert tree is not None
    gpu, cpu = totals.inside.gpu, totals.inside.cpu
    child, above = np.arange(1, len(tree)), tree.parent[1:]
    assert (above < child).all()
    for times in (gpu.total, gpu.low, gpu.high, cpu.total, cpu.low, cpu.high, totals.forward_gpu_ns):
        assert (times[above] >= times[child]).all()
    assert (gpu.total <= totals.inside.gpu_sum_ns).all()
    assert (totals.own_gpu_ns <= gpu.total).all()
    assert (np.maximum(totals.forward_gpu_ns, totals.backward_gpu_ns) <= gpu.total).all()
    assert (totals.forward_gpu_ns + totals.backward_gpu_ns >= gpu.total).all()
    assert (totals.forward_cpu_ns + totals.backward_cpu_ns == cpu.total).all()
    assert totals.own_cpu_ns.sum() == cpu.total[0]
    for spread in (gpu, cpu):
        assert (spread.low * 10 <= spread.total).all()
        assert (spread.total <= spread.high * 10).all()


def test_flattened_time_is_the_union_computed_one_module_at_a_time() -> None:
    """FP32 ResNet-50 runs its backward convolutions on several streams, so that sums exceed unions."""
    view = _recorded("resnet50/fp32")
    profile, tree = view.profile, module_tree(view)
    nodes, totals = _totals(view)
    assert tree is not None
    launches = profile.launches
    of_launch = np.where(launches.call >= 0, tree.of_call[np.maximum(launches.call, 0)], -1)
    for path in ("", "layer1", "layer2.0", "layer1.0.conv2", "fc"):
        node = nodes[path]
        times = []
        for iteration in range(10):
            rows = (of_launch >= node) & (of_launch < tree.end[node]) & (view.launch_iteration == iteration)
            rows &= view.launch_group >= 0
            start = launches.start_ns[rows]
            low, high = union(start, start + launches.duration_ns[rows])
            times.append(int((high - low).sum()))
        gpu = totals.inside.gpu
        assert (gpu.total[node], gpu.low[node], gpu.high[node]) == (sum(times), min(times), max(times))
    of_layer = (of_launch >= nodes["layer1"]) & (of_launch < tree.end[nodes["layer1"]]) & (view.launch_group >= 0)
    assert totals.inside.gpu.total[nodes["layer1"]] < launches.duration_ns[of_layer].sum()
    # They overlap within one op each, whose GPU time is a union itself.
    assert totals.inside.gpu_sum_ns[nodes["layer1"]] < launches.duration_ns[of_layer].sum()


def test_forward_cpu_time_of_the_model_is_the_time_inside_its_forward() -> None:
    view = _recorded("custom/fp32")
    profile = view.profile
    _, totals = _totals(view)
    ranges = (profile.ops.kind == 3) & (profile.ops.module == 0)
    inside_forward = profile.calls.duration_ns[ranges[profile.calls.op]].sum()
    assert totals.forward_cpu_ns[0] == inside_forward


def test_a_step_by_hand(gpu_view: ProfileView) -> None:
    nodes, totals = _totals(gpu_view)
    assert list(nodes) == ["", "conv1", "fc"]
    inside = totals.inside
    assert totals.calls.tolist() == [0, 3, 3]
    assert inside.gpu.total.tolist() == [2_100 * US, 1_500 * US, 600 * US]
    assert inside.gpu.low.tolist() == inside.gpu.high.tolist() == [700 * US, 500 * US, 200 * US]
    assert totals.forward_gpu_ns.tolist() == [900 * US, 600 * US, 300 * US]
    assert totals.backward_gpu_ns.tolist() == [1_200 * US, 900 * US, 300 * US]
    assert totals.own_gpu_ns.tolist() == [0, 1_500 * US, 600 * US]
    # Both parts of the linear layer's backward, 30 and 6 µs, after its forward of 40.
    assert totals.forward_cpu_ns.tolist() == [360 * US, 240 * US, 120 * US]
    assert totals.backward_cpu_ns.tolist() == [258 * US, 150 * US, 108 * US]
    assert inside.kernel_calls.tolist() == [12, 6, 6]
    assert inside.op_calls.tolist() == [12, 6, 6]
    assert (inside.ops.tolist(), inside.eligible_ops.tolist()) == ([4, 2, 2], [4, 2, 2])
    assert inside.tensor_core_ops.tolist() == [0, 0, 0]
    assert inside.eligible_ns.tolist() == inside.gpu.total.tolist()
    # The copy of the batch and the loss, whose backward is not in this recording.
    assert {role: _outside(totals, role) for role in OUTSIDE_ROLES} == {
        Role.FORWARD: 0, Role.BACKWARD: 0, Role.OPTIMIZER: 90 * US, Role.DATALOADER: 0, Role.OTHER: 90 * US,
    }  # fmt: skip


def test_work_of_several_streams_counts_once_and_of_several_gpus_each(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.gpu()
    trace.gpu(id=1)
    trace.step(0, 0, 1000)
    trace.module("a.left", 10, 20)
    trace.op("aten::add", 11, 15)
    trace.launch(KERNEL, 12, 100, 60, stream=7)
    trace.module("a.right", 40, 20)
    trace.op("aten::mul", 41, 15)
    trace.launch(KERNEL, 42, 130, 60, stream=8)
    trace.launch(KERNEL, 45, 130, 25, device=1)
    nodes, totals = _totals(trace.view())
    assert totals.inside.gpu.total[nodes["a"]] == (90 + 25) * US
    assert totals.inside.gpu_sum_ns[nodes["a"]] == 145 * US
    assert totals.inside.gpu.total[nodes["a.right"]] == 85 * US
    assert totals.own_gpu_ns[nodes["a"]] == 0


def test_a_module_called_twice_a_step_has_two_calls(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    for index in range(3):
        at = 1000 * index
        trace.step(index, at, 1000)
        trace.module("", at + 5, 200)
        for call in (10, 60):
            trace.module("relu", at + call, 20)
            trace.op("aten::relu", at + call + 1, 10)
    nodes, totals = _totals(trace.view())
    assert totals.calls[[nodes[""], nodes["relu"]]].tolist() == [3, 6]
    assert totals.forward_cpu_ns[nodes["relu"]] == 120 * US
    assert totals.own_cpu_ns[nodes[""]] == 3 * 160 * US


def test_a_module_called_from_another_ones_forward_counts_by_its_own_path(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.module("encoder.layer", 10, 30)
    trace.op("aten::add", 11, 20)
    trace.launch(KERNEL, 12, 100, 50)
    trace.module("decoder", 50, 100)
    trace.op("aten::add", 52, 10)
    trace.launch(KERNEL, 53, 200, 10)
    trace.module("encoder.layer", 70, 30)
    trace.op("aten::add", 71, 20)
    trace.launch(KERNEL, 72, 300, 50)
    nodes, totals = _totals(trace.view())
    encoder, decoder = nodes["encoder"], nodes["decoder"]
    assert totals.calls[[encoder, nodes["encoder.layer"], decoder]].tolist() == [0, 2, 1]
    assert totals.inside.gpu.total[[encoder, decoder]].tolist() == [100 * US, 10 * US]
    assert totals.forward_cpu_ns[[encoder, decoder]].tolist() == [60 * US, 70 * US]


def test_a_module_in_its_own_call_counts_once(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    trace.module("block", 10, 100)
    trace.module("block", 20, 50)
    trace.op("aten::add", 25, 10)
    nodes, totals = _totals(trace.view())
    assert totals.calls[nodes["block"]] == 2
    assert totals.forward_cpu_ns[nodes["block"]] == 100 * US


def test_a_backward_counts_where_its_forward_is_outside_the_range(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 100)
    trace.module("fc", 10, 20)
    trace.op("aten::linear", 11, 15, seq=1)
    trace.launch(KERNEL, 12, 20, 5)
    trace.step(1, 100, 100)
    trace.backward("AddmmBackward0", 110, 30, 1)
    trace.launch(KERNEL, 112, 120, 40, tid=2)
    view = trace.view()
    nodes, totals = _totals(view, Selection(1, 1))
    fc = nodes["fc"]
    assert (totals.calls[fc], totals.forward_gpu_ns[fc], totals.forward_cpu_ns[fc]) == (0, 0, 0)
    assert (totals.backward_gpu_ns[fc], totals.inside.gpu.total[fc]) == (40 * US, 40 * US)
    assert totals.backward_cpu_ns[fc] == 30 * US


def test_the_models_own_ops_are_told_from_the_loss(new_trace: Callable[..., Any]) -> None:
    """Both have no module; "mul" runs in the model and outside, so that its backward is no one's in particular."""
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.module("", 10, 100)
    trace.op("aten::add", 20, 10, seq=1)
    trace.launch(KERNEL, 21, 100, 1)
    trace.op("aten::mul", 40, 10, seq=2)
    trace.launch(KERNEL, 41, 110, 2)
    trace.op("aten::mul", 200, 10, seq=3)
    trace.launch(KERNEL, 201, 220, 4)
    trace.op("aten::mse_loss", 230, 10, seq=4)
    trace.launch(KERNEL, 231, 240, 8)
    for index, (node, time) in enumerate((("Mse", 16), ("Mul", 32), ("Mul", 64), ("Add", 128))):
        trace.backward(f"{node}Backward0", 300 + 20 * index, 10, 4 - index)
        trace.launch(KERNEL, 301 + 20 * index, 400 + 150 * index, time, tid=2)
    _, totals = _totals(trace.view())
    assert (totals.forward_gpu_ns[0], totals.backward_gpu_ns[0]) == (3 * US, 128 * US)
    assert _outside(totals, Role.FORWARD) == 12 * US
    assert _outside(totals, Role.BACKWARD) == (16 + 32 + 64) * US


def test_siblings_stand_in_the_order_of_their_first_call(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    for index, path in enumerate(("stem", "layers.1", "head", "layers.0.fc", "layers.1.fc")):
        trace.module(path, 10 + 20 * index, 15)
        trace.op("aten::add", 11 + 20 * index, 5)
    tree = module_tree(trace.view())
    assert tree is not None
    assert tree.path == ["", "stem", "layers", "layers.1", "layers.1.fc", "layers.0", "layers.0.fc", "head"]
    assert tree.parent.tolist() == [-1, 0, 0, 2, 3, 2, 5, 0]
    assert tree.end.tolist() == [8, 2, 7, 5, 5, 7, 7, 8]


def test_a_recording_without_modules_has_no_tree(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.op("aten::add", 10, 10)
    view = trace.view()
    assert module_tree(view) is None
    assert module_totals(view, view.selection()) is None


def test_a_model_without_inner_modules_is_a_tree_of_one(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.module("", 5, 50)
    trace.op("aten::add", 10, 10)
    nodes, totals = _totals(trace.view())
    assert list(nodes) == [""]
    assert totals.forward_cpu_ns.tolist() == totals.own_cpu_ns.tolist() == [50 * US]
