"""Idle gaps: what the CPU did meanwhile, why they were there, who sets the pace. All by hand, sums on recorded runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.metrics.cpu_activity import ACTIVITIES
from tb_dlprof_plugin.metrics.idle_gaps import GapKind, idle_gaps
from tb_dlprof_plugin.metrics.iteration_pace import Pace, iteration_pace
from tb_dlprof_plugin.profile_view import ProfileView

US = 1000
RECORDED = sorted(p.parent for p in (Path(__file__).parents[2] / "demo" / "recorded").rglob("*tfevents*"))


def _gaps(view: ProfileView) -> list[tuple[int, int, str, dict[str, int]]]:
    """Start and duration (µs), kind and activities (µs) of each gap."""
    found = idle_gaps(view, view.selection())
    return [
        (
            int(found.start_ns[at]) // US,
            int(found.duration_ns[at]) // US,
            GapKind(int(found.kind[at])).name.lower(),
            {key: int(v) // US for key, v in zip(ACTIVITIES, found.activity_ns[at], strict=True) if v},
        )
        for at in range(len(found))
    ]


def test_each_gap_is_split_by_what_the_cpu_did_in_order_of_precedence(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 1000)
    trace.loader(0, 100)
    trace.op("aten::to", 100, 20)
    trace.launch("Memcpy HtoD (Pinned -> Device)", 105, 110, 20)
    trace.op("aten::mm", 200, 40)
    trace.launch("gemm", 220, 230, 70)
    trace.op("aten::item", 300, 50)
    trace.runtime(310, 30, name="cudaStreamSynchronize")
    trace.op("aten::mm", 380, 40)
    trace.launch("gemm", 400, 410, 90)
    trace.op("aten::numpy_T", 600, 30)
    assert _gaps(trace.view()) == [
        (0, 110, "host_wait", {"dataloader": 100, "copying": 2, "launching": 5, "ops": 3}),
        (130, 100, "host_wait", {"launching": 22, "ops": 8, "python": 70}),
        (300, 110, "host_wait", {"synchronising": 50, "launching": 22, "ops": 8, "python": 30}),
        (500, 500, "host_wait", {"ops": 30, "python": 470}),
    ]


def test_gaps_before_queued_work_are_the_gpus_own_and_long_ones_are_other(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 310)
    trace.launch("a", 10, 10, 190)
    trace.launch("b", 50, 210, 40)
    trace.launch("c", 60, 300, 10)
    assert [gap[:3] for gap in _gaps(trace.view())] == [
        (0, 10, "host_wait"),
        (200, 10, "kernel_wait"),
        (250, 50, "other"),
    ]


def test_a_gap_is_unknown_before_work_whose_launch_was_not_recorded_unless_its_op_began_in_it(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 300)
    trace.launch("a", 10, 20, 30)
    trace.kernel("nobody's", 100, 50)
    trace.op("aten::mm", 160, 20, ext=5)
    trace.kernel("of the op", 200, 100, 7777, ext=5)
    assert [gap[2] for gap in _gaps(trace.view())] == ["host_wait", "unknown", "host_wait"]


def test_a_gap_over_a_boundary_is_cut_and_keeps_its_kind(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 100)
    trace.step(2, 100, 100)
    trace.launch("a", 0, 10, 80)
    trace.launch("b", 130, 140, 60)
    view = trace.view()
    found = idle_gaps(view, view.selection())
    assert [gap[:3] for gap in _gaps(view)] == [(0, 10, "host_wait"), (90, 10, "host_wait"), (100, 40, "host_wait")]
    assert (found.iteration.tolist(), found.next.tolist()) == ([0, 0, 1], [0, -1, 1])
    assert idle_gaps(view, view.selection(1, 1)).iteration.tolist() == [1]


def test_streams_of_one_gpu_count_together_and_gpus_apart(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 100)
    trace.launch("a", 0, 10, 50)
    trace.launch("b", 5, 40, 60, stream=8)
    trace.launch("c", 50, 60, 40, device=1)
    view = trace.view()
    found = idle_gaps(view, view.selection())
    assert [(int(g), int(d) // US) for g, d in zip(found.gpu, found.duration_ns, strict=True)] == [(0, 10), (1, 60)]
    assert (found.busy_ns // US).tolist() == [[90, 40]]
    pace = iteration_pace(view, view.selection())
    assert (pace.busiest.tolist(), (pace.starved_ns // US).tolist()) == ([0], [[10, 60]])


def test_threads_that_only_pin_memory_do_not_hide_the_training_thread(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 100)
    trace.op("aten::pin_memory", 0, 100, tid=77)
    trace.launch("a", 40, 50, 50)
    assert _gaps(trace.view()) == [(0, 50, "host_wait", {"launching": 2, "python": 48})]


def test_the_profilers_own_wait_is_not_recorded_time(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 50)
    trace.op("aten::mm", 0, 40)
    trace.launch("a", 10, 20, 20)
    trace.launch("b", 15, 80, 10)
    trace.runtime(50, 40, name="cudaDeviceSynchronize")
    assert _gaps(trace.view())[-1] == (40, 40, "other", {"python": 10, "unknown": 30})


def test_without_any_call_what_the_cpu_did_is_unknown(new_trace) -> None:
    trace = new_trace()
    trace.kernel("a", 0, 10)
    trace.kernel("b", 50, 10)
    view = trace.view()
    assert _gaps(view) == [(10, 40, "unknown", {"unknown": 40})]
    assert iteration_pace(view, view.selection()).of_iteration.tolist() == [Pace.UNKNOWN]


def test_the_gpu_sets_the_pace_where_it_always_has_work(new_trace) -> None:
    trace = new_trace()
    for index in range(3):
        trace.step(index, 100 * index, 100)
        trace.launch("k", 100 * index, 5 + 300 * index, 300)
    view = trace.view()
    pace = iteration_pace(view, view.selection())
    assert pace.of_iteration.tolist() == [Pace.GPU] * 3
    # The CPU needs 100 of the 305, then 300 microseconds from completion to completion.
    assert (pace.slack_ns // US).tolist() == [205, 200, 200]


@pytest.mark.parametrize(("waits", "expected"), [(False, Pace.CPU), (True, Pace.MIXED)])
def test_the_cpu_sets_the_pace_where_the_gpu_waits_for_it_unless_it_waits_too(new_trace, waits, expected) -> None:
    trace = new_trace()
    trace.step(1, 0, 1000)
    trace.launch("k", 100, 110, 400)
    if waits:
        trace.runtime(120, 395, name="cudaStreamSynchronize")
    view = trace.view()
    pace = iteration_pace(view, view.selection())
    assert pace.of_iteration.tolist() == [expected]
    assert (pace.starved_ns // US).tolist() == [[600]]
    # A call waits from its 50th microsecond on.
    assert (pace.slack_ns // US).tolist() == [345 if waits else 0]


def test_a_long_call_while_nothing_runs_waits_for_no_gpu(new_trace) -> None:
    """The first launch of a kernel loads its code."""
    trace = new_trace()
    trace.step(1, 0, 1000)
    trace.runtime(100, 700, 5000, name="cudaLaunchKernel")
    trace.kernel("k", 801, 100, 5000)
    view = trace.view()
    pace = iteration_pace(view, view.selection())
    assert (pace.of_iteration.tolist(), pace.slack_ns.tolist()) == ([Pace.CPU], [0])


def test_a_recording_without_a_gpu_has_no_gaps(cpu_view: ProfileView) -> None:
    found = idle_gaps(cpu_view, cpu_view.selection())
    assert (len(found), found.window_ns.shape) == (0, (2, 0))
    assert iteration_pace(cpu_view, cpu_view.selection()).of_iteration.tolist() == [Pace.UNKNOWN] * 2


@pytest.mark.parametrize("run", RECORDED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_busy_and_idle_time_sum_to_the_window_and_activities_to_the_idle_time(run: Path) -> None:
    view = recorded_view(run)
    iterations = view.profile.iterations
    found = idle_gaps(view, view.selection())
    idle = np.zeros(found.window_ns.shape, dtype=np.int64)
    np.add.at(idle, (found.iteration, found.gpu), found.duration_ns)
    assert (idle + found.busy_ns).tolist() == found.window_ns.tolist()
    assert found.window_ns[:, 0].tolist() == iterations.duration_ns.tolist()
    assert (found.activity_ns >= 0).all()
    assert found.activity_ns.sum(axis=1).tolist() == found.duration_ns.tolist()
    # The analysis measured the busy time another way: as the time categories of the GPU.
    assert found.busy_ns.tolist() == iterations.category_ns[:, :, :3].sum(axis=2).tolist()
    assert found.window_ns.size
    assert len(found)


def test_recorded_runs_are_paced_as_their_utilization_says() -> None:
    """ResNet-50 in FP32 keeps an H200 busy; LeNet cannot."""
    for name, expected in (("resnet50/fp32", Pace.GPU), ("lenet/fp32", Pace.CPU)):
        (run,) = (path for path in RECORDED if path.as_posix().endswith(name))
        view = recorded_view(run)
        assert set(iteration_pace(view, view.selection()).of_iteration.tolist()) == {expected}
