from __future__ import annotations

from tb_dlprof_plugin.metrics.averages import operator_averages
from tb_dlprof_plugin.model.profile import CallKind, Profile
from tb_dlprof_plugin.profile_view import ProfileView


def _modules(profile: Profile) -> list[tuple[str, str]]:
    """Name of each op with the path of its module, in order of time."""
    ops, strings = profile.ops, profile.strings
    rows = [op for op in profile.calls.op.tolist() if ops.kind[op] == CallKind.OP]
    return [(strings[ops.name[op]], strings[ops.module[op]]) for op in rows]


def _frame(trace, name: str, start: float, dur: float) -> None:
    trace.event(name, "python_function", start, dur)


def test_the_path_of_a_python_frame_is_the_chain_of_frames_around_it(new_trace) -> None:
    trace = new_trace()
    _frame(trace, "train.py(3): <module>", 0, 100)
    _frame(trace, "nn.Module: Net_0", 5, 90)
    _frame(trace, "nn.Module: Sequential_0", 10, 40)
    _frame(trace, "torch/nn/modules/container.py(217): forward", 11, 38)
    _frame(trace, "nn.Module: Linear_0", 12, 10)
    trace.op("aten::linear", 13, 5)
    _frame(trace, "nn.Module: Linear_1", 30, 10)
    trace.op("aten::linear", 31, 5)
    trace.op("aten::add", 60, 5)
    trace.op("aten::sum", 98, 1)
    profile = trace.profile()
    assert _modules(profile) == [
        ("aten::linear", "Net_0.Sequential_0.Linear_0"),
        ("aten::linear", "Net_0.Sequential_0.Linear_1"),
        ("aten::add", "Net_0"),
        ("aten::sum", ""),
    ]
    codes = {note.code: note.count for note in profile.notes}
    assert codes["python_frames"] == 6
    assert "modules_from_stacks" in codes
    assert "no_modules" not in codes


def test_the_hooks_ranges_are_used_where_both_were_recorded(new_trace) -> None:
    trace = new_trace()
    _frame(trace, "nn.Module: Linear_0", 0, 30)
    trace.module("head.fc", 1, 28)
    trace.op("aten::linear", 2, 5)
    profile = trace.profile()
    assert _modules(profile) == [("aten::linear", "head.fc")]
    assert "modules_from_stacks" not in {note.code for note in profile.notes}
    assert (profile.ops.kind[profile.calls.op] == CallKind.MODULE).sum() == 1


def test_a_frame_takes_no_time_from_the_op_around_it(new_trace) -> None:
    # GIVEN a custom autograd function that calls a module
    trace = new_trace()
    trace.op("MyFunction", 0, 50)
    _frame(trace, "nn.Module: Linear_0", 10, 30)
    trace.op("aten::linear", 12, 20)
    view = ProfileView(trace.profile())
    rows = {row.name: row.cpu_self_ns for row in operator_averages(view)}
    assert rows == {"MyFunction": 30_000, "aten::linear": 20_000}
