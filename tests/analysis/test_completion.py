"""An iteration is measured to where the GPU work that it launched ends."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.analysis import analyze_trace

US = 1_000


def test_a_host_that_runs_ahead_does_not_shorten_the_steps(new_trace) -> None:
    # GIVEN three steps that the CPU leaves after 10 µs each, with 100 µs of GPU work
    trace = new_trace()
    for number in range(3):
        start = 10.0 * number
        trace.step(number, start, 10)
        trace.op("aten::mm", start + 1, 6)
        trace.runtime(start + 2, 3, corr=number + 1)
        trace.kernel("gemm", 5 + 100.0 * number, 100, corr=number + 1)
    # WHEN it is analysed
    iterations = analyze_trace(trace.write()).iterations
    # THEN a step takes what the GPU takes, and the CPU's own boundaries are kept next to it
    assert iterations.stop_ns.tolist() == [105 * US, 205 * US, 305 * US]
    assert iterations.start_ns.tolist() == [0, 105 * US, 205 * US]
    assert iterations.host_stop_ns.tolist() == [10 * US, 20 * US, 30 * US]
    assert iterations.category_ns.sum(axis=(1, 2)).tolist() == iterations.duration_ns.tolist()


def test_work_queued_before_the_recording_lies_outside_of_all_iterations(new_trace) -> None:
    # GIVEN a kernel launched before the window (its correlation id is below every recorded launch) that runs into it
    trace = new_trace()
    trace.kernel("earlier", 0, 50, corr=1)
    trace.step(7, 0, 20)
    trace.op("aten::mm", 1, 6)
    trace.runtime(2, 3, corr=10)
    trace.kernel("gemm", 50, 30, corr=10)
    # WHEN it is analysed
    profile = analyze_trace(trace.write())
    # THEN the iteration begins when the earlier work is done
    assert (profile.iterations.start_ns.tolist(), profile.iterations.stop_ns.tolist()) == ([50 * US], [80 * US])


def test_a_step_that_waits_for_the_gpu_ends_when_the_cpu_leaves_it(new_trace) -> None:
    trace = new_trace()
    for number in range(2):
        start = 100.0 * number
        trace.step(number, start, 100)
        trace.op("aten::mm", start + 1, 6)
        trace.runtime(start + 2, 3, corr=number + 1)
        trace.kernel("gemm", start + 5, 60, corr=number + 1)
    iterations = analyze_trace(trace.write()).iterations
    assert iterations.start_ns.tolist() == [0, 100 * US]
    assert iterations.stop_ns.tolist() == [100 * US, 200 * US]


def test_steps_that_were_not_recorded_in_between_are_not_part_of_the_next(new_trace) -> None:
    trace = new_trace()
    for number, start in ((0, 0.0), (5, 500.0)):
        trace.step(number, start, 100)
        trace.op("aten::mm", start + 1, 6)
        trace.runtime(start + 2, 3, corr=number + 1)
        trace.kernel("gemm", start + 5, 60, corr=number + 1)
    iterations = analyze_trace(trace.write()).iterations
    assert iterations.start_ns.tolist() == [0, 500 * US]
    assert iterations.stop_ns.tolist() == [100 * US, 600 * US]


@pytest.mark.parametrize("device", [0, 1])
def test_each_gpu_of_a_process_counts(new_trace, device: int) -> None:
    trace = new_trace()
    trace.step(0, 0, 10)
    trace.op("aten::mm", 1, 6)
    trace.runtime(2, 3, corr=1)
    trace.kernel("gemm", 5, 90, corr=1, device=device)
    assert analyze_trace(trace.write()).iterations.stop_ns.tolist() == [95 * US]
