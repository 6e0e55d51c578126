"""One verdict for each kind of recording, and the reason that a user can act on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from tb_dlprof_plugin.metrics.trust import Trust, trust
from tb_dlprof_plugin.model.profile import LightCalls, LightLaunches, LightWindow, Note, Verdict
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.clock_drift import clock_drift
from tb_dlprof_plugin.simulation.simulator import simulation

TRUE_NS = [990_000, 1_000_000, 1_010_000, 1_000_000]
TIMED = RunFacts(unprofiled_before_ns=TRUE_NS, unprofiled_after_ns=TRUE_NS)


def _trust(view: ProfileView) -> Trust:
    return trust(view, view.selection())


def _with(view: ProfileView, **facts: object) -> ProfileView:
    known = RunFacts(unprofiled_before_ns=TRUE_NS, unprofiled_after_ns=TRUE_NS)
    for name, value in facts.items():
        setattr(known, name, value)
    return ProfileView(dataclasses.replace(view.profile, facts=known))


def _codes(view: ProfileView) -> dict[str, str]:
    return {reason.code: reason.severity for reason in _trust(view).reasons}


def test_steps_timed_without_the_profiler_on_a_quiet_machine_are_good(training) -> None:
    found = _trust(training().view(facts=TIMED))
    assert found.verdict == "good"
    (reason,) = found.reasons
    assert reason.code == "step_timed"
    assert reason.sentence == (
        "The step was timed without the profiler over 8 steps: 1.00 ms, between 992 µs and 1.01 ms."
    )


@pytest.mark.parametrize(
    ("true_ns", "verdict", "says"),
    [
        (950_000, "good", ""),
        (
            625_000,
            "fair",
            "The median recorded step takes 1.00 ms, 1.6 times as long as one without the profiler. The step itself",
        ),
        (200_000, "poor", "5.0 times as long as one without the profiler: more than the profiler adds."),
        (1_200_000, "fair", "less than the 1.20 ms of one without the profiler"),
    ],
)
def test_what_the_recorder_adds_concerns_the_cpu_times(training, true_ns: int, verdict: str, says: str) -> None:
    found = _trust(_with(training().view(), unprofiled_before_ns=[true_ns] * 4, unprofiled_after_ns=[]))
    assert found.verdict == verdict
    assert says in found.reasons[0].sentence
    assert [reason.severity for reason in found.reasons] == ([verdict] if verdict == "good" else [verdict, "good"])


def test_an_estimated_step_is_fair_and_says_how_to_time_it(training) -> None:
    found = _trust(training(loader=600).view())
    reason = next(reason for reason in found.reasons if reason.code == "step_estimated")
    assert reason.severity in ("fair", "poor")
    assert "tb-dlprof run" in reason.sentence


def test_a_cpu_recording_has_its_recorded_step(cpu_view: ProfileView) -> None:
    assert _codes(cpu_view) == {"few_iterations": "fair", "step_recorded": "fair"}


def test_a_replay_that_is_off_leaves_no_saving_and_says_so(new_trace: Callable) -> None:
    trace = new_trace()
    trace.gpu()
    for number in range(4):
        trace.step(number, 1000 * number, 1000)
        trace.op("aten::mm", 1000 * number + 5, 20)
        trace.launch("k", 1000 * number + 10, 1000 * number + 60, 400)
        # Begins long after its launch on an idle GPU, for no reason that the trace shows.
        trace.launch("k", 1000 * number + 20, 1000 * number + 700, 300)
        trace.runtime(1000 * number + 30, 968, name="cudaStreamSynchronize")
    view = trace.view(facts=TIMED)
    found = _trust(view)
    off = simulation(view, view.selection()).off_percent
    assert off is not None
    reason = next(reason for reason in found.reasons if reason.code == "replay_off")
    assert (found.verdict, reason.severity, reason.value) == ("fair", "fair", off)
    assert reason.sentence.startswith(f"A replay of the recorded steps is {-off:.0f} % shorter than they were:")
    assert "Savings that need the replay are not estimated" in reason.sentence


def test_a_step_that_varies_is_named_with_its_interval(training) -> None:
    view = _with(training().view(), unprofiled_before_ns=[900_000] * 5, unprofiled_after_ns=[1_080_000] * 5)
    assert _codes(view) == {"step_timed": "fair", "step_drift": "fair"}
    drift = clock_drift(view, view.selection())
    assert drift.unprofiled == pytest.approx(20)


def test_an_interval_that_reaches_0_has_one_end(training) -> None:
    view = _with(training().view(), unprofiled_before_ns=[100_000, 5_000_000, 200_000], unprofiled_after_ns=[])
    (sentence,) = [reason.sentence for reason in _trust(view).reasons if reason.code == "step_timed"]
    assert "anywhere below" in sentence
    assert " 0 " not in sentence


def test_slow_iterations_are_named_with_the_range_to_use(new_trace: Callable) -> None:
    trace, at = new_trace(), 0
    for index, length in enumerate((900e3, 92e3, 93e3, 2_000e3, 1_500e3)):
        trace.step(index, at, length)
        trace.op("aten::linear", at + 1, 50e3)
        at += length
    found = _trust(_with(trace.view(), unprofiled_before_ns=[90_000_000] * 4, unprofiled_after_ns=[]))
    assert found.verdict == "poor"
    assert found.reasons[0].sentence == (
        "3 of 5 iterations took 900 ms to 2.00 s, unlike the others, which took 92.5 ms: they are in every mean. "
        "Select iterations 1 to 2."
    )
    # The recorder is not blamed for them.
    assert "recorder_overhead" not in {reason.code for reason in found.reasons}


def test_no_steps_are_poor(new_trace: Callable) -> None:
    trace = new_trace()
    trace.op("aten::linear", 0, 100)
    assert _codes(trace.view())["no_iterations"] == "poor"


def test_kernels_without_a_verdict_make_the_tensor_cores_unknown_and_nothing_else(training) -> None:
    view = training().view(facts=TIMED)
    kernels = view.profile.kernels
    unknown = np.full_like(kernels.tensor_core, Verdict.UNKNOWN)
    view = ProfileView(dataclasses.replace(view.profile, kernels=dataclasses.replace(kernels, tensor_core=unknown)))
    found = _trust(view)
    assert (found.verdict, found.reasons[0].code) == ("fair", "unknown_kernels")
    assert "100 % of the kernel time" in found.reasons[0].sentence


def test_kernels_of_no_op_are_missing_from_the_tables(new_trace: Callable) -> None:
    trace = new_trace()
    for index in range(4):
        trace.step(index, 100 * index, 100)
        trace.kernel("k", 100 * index + 5, 80)
    found = {reason.code: reason for reason in _trust(trace.view(facts=TIMED)).reasons}
    assert found["unlinked_kernels"].severity == "poor"
    assert found["unlinked_kernels"].value == 100


@pytest.mark.parametrize(("code", "named"), [("cut_short", "trace_incomplete"), ("unescaped_text", "trace_mended")])
def test_a_damaged_trace_is_named(training, code: str, named: str) -> None:
    view = training().view(facts=TIMED)
    damaged = ProfileView(dataclasses.replace(view.profile, notes=[*view.profile.notes, Note(code, "...", None)]))
    assert set(_codes(damaged)) - set(_codes(view)) == {named}


def _slowing(view: ProfileView, percent: float) -> ProfileView:
    """The kernels of each iteration take longer than those of the one before."""
    launches, count = view.profile.launches, len(view.profile.iterations)
    grown = 1 + np.maximum(view.launch_iteration, 0) * percent / 100 / (count - 1)
    slower = dataclasses.replace(launches, duration_ns=np.round(launches.duration_ns * grown).astype(np.int64))
    return ProfileView(dataclasses.replace(view.profile, launches=slower))


@pytest.mark.parametrize(("percent", "severity"), [(2, None), (6, "fair"), (20, "poor")])
def test_kernels_that_slow_down_are_a_changing_clock(training, percent: float, severity: str | None) -> None:
    view = _slowing(training(steps=5).view(facts=TIMED), percent)
    drift = clock_drift(view, view.selection()).kernels
    # Relative to the iteration in the middle.
    assert drift == pytest.approx(percent / (1 + percent / 200), rel=0.01)
    assert _codes(view).get("kernel_drift") == severity


def test_one_slow_iteration_is_no_drift(training) -> None:
    view = training(steps=5).view(facts=TIMED)
    launches = view.profile.launches
    once = np.where(view.launch_iteration == 2, 2, 1)
    changed = dataclasses.replace(launches, duration_ns=launches.duration_ns * once)
    view = ProfileView(dataclasses.replace(view.profile, launches=changed))
    assert clock_drift(view, view.selection()).kernels == pytest.approx(0)


def test_kernels_of_the_light_window_are_held_against_the_full_ones(training) -> None:
    view = training().view(facts=TIMED)
    launches = view.profile.launches
    count = len(launches)
    zero = np.zeros(count, dtype=np.int64)
    light = LightWindow(
        boundary_ns=np.array([0, 10**6]),
        iteration=np.array([0]),
        calls=LightCalls(*(np.zeros(0, dtype=np.int64) for _ in range(5))),
        launches=LightLaunches(
            zero - 1,
            launches.start_ns,
            np.round(launches.duration_ns / 1.1).astype(np.int64),
            zero,
            zero,
            np.arange(count),
        ),
    )
    view = ProfileView(dataclasses.replace(view.profile, light_window=light))
    assert clock_drift(view, view.selection()).light == pytest.approx(10, abs=0.01)
    assert _codes(view)["light_drift"] == "fair"


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (
            {"other_gpu_processes": 2, "other_gpu_memory_bytes": 12 << 30},
            "2 other processes had the GPU open, and 12 GiB of its memory are not this training's: its work",
        ),
        ({"other_gpu_memory_bytes": 40 << 30}, "40 GiB of the GPU's memory are neither free nor this training's"),
        ({"load_average": 24.0, "machine_cpus": 16}, "The machine's load was 24.0 for 16 CPUs"),
        (
            {"clock_limits": ["power cap", "thermal slowdown"], "gpu_temperature_c": 91},
            "The GPU's clock was held down (thermal slowdown) at 91 °C",
        ),
    ],
)
def test_a_disturbed_machine_is_named(training, facts: dict[str, object], says: str) -> None:
    found = _trust(_with(training().view(), **facts))
    assert found.verdict == "fair"
    assert found.reasons[0].sentence.startswith(says)


@pytest.mark.parametrize(
    "facts",
    [
        {"other_gpu_processes": 0, "other_gpu_memory_bytes": 8 << 30},
        {"other_gpu_memory_bytes": 1 << 30},
        {"load_average": 15.0, "machine_cpus": 16},
        {"clock_limits": ["power cap"]},
    ],
)
def test_what_is_usual_on_a_machine_is_no_reason(training, facts: dict[str, object]) -> None:
    assert _trust(_with(training().view(), **facts)).verdict == "good"
