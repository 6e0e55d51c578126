"""What-ifs on literal steps (times in µs) and what holds for every recorded run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation import sequence
from tb_dlprof_plugin.simulation.basis import basis
from tb_dlprof_plugin.simulation.change import Added, AddedRow, Change, without_calls
from tb_dlprof_plugin.simulation.simulator import Simulation, simulation

NewTrace = Callable[..., Any]
STEPS = 4


def of(view: ProfileView) -> Simulation:
    return simulation(view, view.selection())


@pytest.fixture
def reading(new_trace: NewTrace) -> ProfileView:
    """Steps of 1000 µs: a kernel of 400 from 110 on, which the CPU waits for from 150 to 510, then 490 of its own with
    a kernel of 100 at 600. Timed without the profiler they take as long."""
    trace = new_trace()
    trace.gpu()
    for number in range(STEPS):
        at = 1000 * number
        trace.step(number, at, 1000)
        trace.op("aten::mm", at + 100, 20)
        trace.launch("first", at + 107, at + 110, 400)
        trace.op("aten::item", at + 140, 375)
        trace.runtime(at + 150, 362, name="cudaStreamSynchronize")
        trace.op("aten::add", at + 590, 20)
        trace.launch("second", at + 597, at + 600, 100)
    view: ProfileView = trace.view(facts=RunFacts(unprofiled_step_ns=1_000_000))
    return view


def mask(view: ProfileView, name: str) -> Any:
    profile = view.profile
    names = np.array([profile.strings[i] for i in profile.ops.name.tolist()])
    return (names == name)[profile.calls.op]


def launches(view: ProfileView, name: str) -> Any:
    profile = view.profile
    names = np.array([profile.strings[i] for i in profile.kernels.name.tolist()])
    return (names == name)[profile.launches.kernel]


def test_the_step_as_it_is_is_the_estimate(reading: ProfileView) -> None:
    known = of(reading)
    assert known.step().ns == known.estimate.ns == 1_000_000
    assert (known.timed, known.share.expected) == (True, pytest.approx(1.0, abs=0.01))
    assert known.off_percent == pytest.approx(0, abs=0.1)
    assert (known.step().gpu_ns, known.step().host_ns) == (pytest.approx(500_000), pytest.approx(640_000, rel=0.01))


def test_without_the_wait_the_cpu_launches_on(reading: ProfileView) -> None:
    waits = mask(reading, "cudaStreamSynchronize")
    # THEN the CPU needs 640 of the 1000 µs, and the GPU 500
    assert of(reading).step([Change(removed_waits=waits)]).ns == pytest.approx(640_000, rel=0.01)
    # AND without the call and the op around it 15 µs less
    assert of(reading).step([without_calls(reading, mask(reading, "aten::item"))]).ns == pytest.approx(
        625_000, rel=0.01
    )


def test_faster_kernels_shorten_only_what_the_cpu_waits_for(reading: ProfileView) -> None:
    first = Change(gpu=np.where(launches(reading, "first"), 0.5, 1.0))
    second = Change(gpu=np.where(launches(reading, "second"), 0.0, 1.0))
    assert of(reading).step([first]).ns == pytest.approx(800_000, rel=0.01)
    assert of(reading).step([second]).ns == pytest.approx(1_000_000, rel=0.01)
    assert of(reading).step([first, second]).ns == pytest.approx(800_000, rel=0.01)


def test_cpu_time_that_goes_and_work_that_is_added(reading: ProfileView) -> None:
    starts = reading.profile.iterations.host_start_ns
    late = Change(cpu=(starts + 700_000, starts + 900_000), keep_cpu=0.25)
    assert of(reading).step([late]).ns == pytest.approx(850_000, rel=0.01)
    row = np.flatnonzero(launches(reading, "second")).tolist()
    casts = Change(added=Added.of({one: [AddedRow(host_ns=20_000.0, gpu_ns=5_000.0)] for one in row}))
    assert of(reading).step([casts]).ns == pytest.approx(1_020_000, rel=0.01)
    assert of(reading).step([casts]).gpu_ns == pytest.approx(505_000)
    scaler = Change(added=Added.of({one: [AddedRow(0.0, 300_000.0, wait=True)] for one in row}))
    assert of(reading).step([scaler]).ns == pytest.approx(1_303_000, rel=0.01)


def test_changes_made_together_are_no_sum(reading: ProfileView) -> None:
    waits = Change(removed_waits=mask(reading, "cudaStreamSynchronize"))
    faster = Change(gpu=np.where(launches(reading, "first"), 0.5, 1.0))
    alone = [1_000_000 - of(reading).step([change]).ns for change in (waits, faster)]
    together = 1_000_000 - of(reading).step([waits, faster]).ns
    assert max(alone) <= together < sum(alone) - 100_000
    # An effect that no replay shows takes its share of what is left.
    assert of(reading).step([waits, Change(keep_rest=0.5)]).ns == pytest.approx(320_000, rel=0.01)


def test_copies_on_a_stream_of_their_own_hold_up_no_kernel(new_trace: NewTrace) -> None:
    trace = new_trace()
    trace.gpu()
    for number in range(STEPS):
        at = 1000 * number
        trace.step(number, at, 1000)
        trace.launch("Memcpy HtoD (Pinned -> Device)", at + 10, at + 13, 300)
        trace.launch("k", at + 20, at + 313, 680)
        trace.runtime(at + 30, 965, name="cudaStreamSynchronize")
    view = trace.view(facts=RunFacts(unprofiled_step_ns=1_000_000))
    copies = launches(view, "Memcpy HtoD (Pinned -> Device)")
    assert of(view).step([Change(concurrent=copies)]).ns == pytest.approx(700_000, rel=0.05)


def test_a_loaders_stall_goes_without_the_rest(new_trace: NewTrace) -> None:
    trace = new_trace()
    trace.gpu()
    for number in range(STEPS):
        at = 1000 * number
        trace.step(number, at, 1000)
        trace.loader(at, 700)
        trace.op("aten::mm", at + 750, 20)
        trace.launch("k", at + 757, at + 770, 100)
    view = trace.view(facts=RunFacts(unprofiled_step_ns=1_000_000))
    starts = view.profile.iterations.host_start_ns
    # 300 µs of launching, in which the kernel runs.
    assert of(view).step([Change(cpu=(starts, starts + 700_000), keep_cpu=0.0)]).ns == pytest.approx(300_000, rel=0.02)


@pytest.mark.parametrize(
    ("unprofiled_us", "share", "timed"),
    [(1000, 0.5, True), (2500, 1.25, True), (400, None, False), (None, None, False)],
)
def test_a_measured_step_tells_how_fast_the_cpu_is_where_it_sets_the_pace(
    new_trace: NewTrace, unprofiled_us: int | None, share: float | None, timed: bool
) -> None:
    """Steps of 2000 µs that the CPU paces; 400 µs are what the GPU needs, or less."""
    trace = new_trace()
    trace.gpu()
    for number in range(STEPS):
        trace.step(number, 2000 * number, 2000)
        for launch in range(40):
            at = 2000 * number + 50 * launch
            trace.op("aten::add", at, 40)
            trace.launch("k", at + 2, at + 8, 10)
    facts = RunFacts(unprofiled_step_ns=unprofiled_us * 1000) if unprofiled_us else RunFacts()
    known = of(trace.view(facts=facts))
    assert known.timed == timed
    if share is not None:
        assert known.share.expected == pytest.approx(share, rel=0.02)
    else:
        assert known.share.low < known.share.expected < known.share.high


@pytest.mark.parametrize("name", ["lenet/fp32", "vgg16/fp32", "resnet50/amp-fp16", "torchvision/densenet121/fp32"])
def test_a_replay_of_what_was_recorded_comes_near_it(recorded: Callable[[str], ProfileView], name: str) -> None:
    view = recorded(name)
    off = basis(view, view.selection()).off_percent
    assert off is not None
    assert abs(off) < 1.5


def test_a_long_run_is_replayed_as_a_short_one(
    recorded: Callable[[str], ProfileView], monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a run with dependencies between streams WHEN only the replayed iterations are looked at
    short = of(recorded("resnet50/fp32"))
    whole = sequence.rows_by_iteration(recorded("resnet50/fp32")).sum()
    monkeypatch.setattr(sequence, "_MOST_ROWS", whole - 1)
    view = ProfileView(recorded("resnet50/fp32").profile)
    # THEN the step is the same
    assert of(view).off_percent == pytest.approx(short.off_percent, abs=0.05)
    assert of(view).step().ns == pytest.approx(short.step().ns, rel=1e-3)


def test_where_the_replay_is_off_it_says_so(new_trace: NewTrace) -> None:
    trace = new_trace()
    trace.gpu()
    for number in range(STEPS):
        trace.step(number, 1000 * number, 1000)
        # GIVEN kernels that begin long after their launch on an idle GPU, for no reason that the trace shows
        trace.launch("k", 1000 * number + 10, 1000 * number + 60, 400)
        trace.launch("k", 1000 * number + 20, 1000 * number + 700, 300)
        trace.runtime(1000 * number + 30, 968, name="cudaStreamSynchronize")
    known = of(trace.view())
    assert known.off_percent is not None
    assert known.off_percent < -10
    assert not known.trusted


def test_without_a_gpu_the_cpus_work_is_all_there_is(cpu_trace: Any) -> None:
    view = cpu_trace.view()
    known = of(view)
    starts, stops = view.profile.iterations.host_start_ns, view.profile.iterations.host_stop_ns
    assert (known.off_percent, known.trusted, known.estimate.source) == (None, True, "recorded")
    half = known.step([Change(cpu=(starts, stops), keep_cpu=0.5)])
    assert half.ns == pytest.approx(known.estimate.ns / 2)


def test_what_goes_altogether_hands_on_what_waits_for_it(new_trace: NewTrace) -> None:
    trace = new_trace()
    trace.gpu()
    for number in range(STEPS):
        at = 1000 * number
        trace.step(number, at, 1000)
        trace.launch("side", at + 10, at + 20, 300, stream=8)
        trace.launch("gone", at + 20, at + 320, 100, stream=8)
        trace.runtime(at + 30, 1, name="cudaStreamWaitEvent")
        trace.launch("joined", at + 40, at + 420, 200, stream=7)
        trace.runtime(at + 50, 575, name="cudaDeviceSynchronize")
    view = trace.view(facts=RunFacts(unprofiled_step_ns=1_000_000))
    gone = Change(gpu=np.where(launches(view, "gone"), 0.0, 1.0))
    # The joined kernel begins 100 µs earlier, behind the one that is left.
    assert of(view).step([gone]).ns == pytest.approx(900_000, rel=0.02)
