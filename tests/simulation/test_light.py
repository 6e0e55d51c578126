"""The light window as what is replayed: its rows, its times, and changes of the full recording made to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin.model.profile import LightCalls, LightLaunches, LightWindow
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Added, AddedRow, Change, without_calls
from tb_dlprof_plugin.simulation.light_window import light
from tb_dlprof_plugin.simulation.recorder_cost import LIGHT_SHARE
from tb_dlprof_plugin.simulation.simulator import simulation

STEPS = 4
FULL, LIGHT = 2000, 1000
"""Steps (µs) in the full recording and in the light window: the CPU is half as fast in the one."""


@pytest.fixture
def make(new_trace: Callable[..., Any]) -> Callable[..., ProfileView]:
    """Steps with a kernel of 300 µs at 200 of 2000 and one of 100 at 1200; in the light window half as late."""

    def made(steps: int = STEPS, **facts: Any) -> ProfileView:
        trace = new_trace()
        trace.gpu()
        for number in range(steps):
            at = FULL * number
            trace.step(number, at, FULL)
            trace.op("aten::mm", at + 190, 40)
            trace.launch("first", at + 200, at + 204, 300)
            trace.op("aten::add", at + 1190, 40)
            trace.launch("second", at + 1200, at + 1204, 100)
        profile = trace.view(facts=RunFacts(**facts)).profile
        calls, launches = profile.launches.call, len(profile.launches)
        begin = 10_000_000 + LIGHT * 1000 * np.arange(steps + 1)
        at = np.concatenate([[begin[step] + 100_000, begin[step] + 600_000] for step in range(steps)])
        strings = [*profile.strings, "cudaLaunchKernel"]
        window = LightWindow(
            boundary_ns=begin,
            iteration=np.arange(steps),
            calls=LightCalls(
                name=np.full(launches, len(strings) - 1),
                start_ns=at,
                duration_ns=np.full(launches, 2000),
                thread=np.zeros(launches, dtype=np.int64),
                call=calls,
            ),
            launches=LightLaunches(
                call=np.arange(launches),
                start_ns=at + 4000,
                duration_ns=np.tile([290_000, 95_000], steps),
                device=np.zeros(launches, dtype=np.int64),
                stream=np.full(launches, 7),
                launch=np.arange(launches),
            ),
        )
        return ProfileView(replace(profile, strings=strings, light_window=window))

    return made


def test_its_steps_stand_for_the_recorded_ones_without_the_first(make: Callable[..., ProfileView]) -> None:
    view = make()
    found = light(view, view.selection())
    assert found is not None
    profile = found.view.profile
    assert profile.iterations.duration_ns.tolist() == [1_000_000] * 3
    assert profile.launches.duration_ns.tolist() == [290_000, 95_000] * STEPS
    assert found.launch.tolist() == list(range(2 * STEPS))
    assert found.call.tolist() == view.profile.launches.call.tolist()


def test_there_is_none_with_fewer_than_two_steps(make: Callable[..., ProfileView]) -> None:
    plain, view = make(1), make()
    assert light(plain, plain.selection()) is None
    unmatched = replace(view.profile.light_window, iteration=np.full(STEPS, -1))
    other = ProfileView(replace(view.profile, light_window=unmatched))
    assert light(other, other.selection()) is None


def test_iterations_with_the_same_kernels_stand_in_for_those_that_are_not_selected(
    make: Callable[..., ProfileView],
) -> None:
    view = make(6)
    window = replace(view.profile.light_window, iteration=np.array([0, 1, 2, -1, -1, -1]))
    other = ProfileView(replace(view.profile, light_window=window))
    found = light(other, other.selection(4, 5))
    assert found is not None
    # The three matched steps are those of iterations 4, 5 and 4.
    assert found.launch[:6].tolist() == [8, 9, 10, 11, 8, 9]


def test_a_change_of_the_recording_is_made_to_the_light_window(make: Callable[..., ProfileView]) -> None:
    view = make()
    found = light(view, view.selection())
    assert found is not None
    starts = view.profile.iterations.host_start_ns
    gone = without_calls(view, np.arange(len(view.profile.calls)) == view.profile.launches.call[2])
    change = found.translated(
        Change(
            cpu=(starts[1:2] + 202_000, starts[1:2] + 1_200_000),
            gpu=np.arange(8) / 8.0,
            added=Added.of({3: [AddedRow(1.0, 2.0)]}),
            removed_waits=gone.removed_waits,
        )
    )
    assert change.gpu is not None
    assert change.gpu.tolist() == (np.arange(8) / 8.0).tolist()
    assert change.cpu is not None
    # Between the two launches of the second step.
    assert [int(edge[0]) - 11_000_000 for edge in change.cpu] == [102_000, 600_000]
    assert change.added.by_launch() == {3: [AddedRow(1.0, 2.0)]}
    assert change.removed_waits is not None
    assert int(change.removed_waits.sum()) == 1


def test_the_step_is_the_light_windows_without_what_recording_calls_costs(make: Callable[..., ProfileView]) -> None:
    view = make()
    known = simulation(view, view.selection())
    assert known.from_light_window
    assert (known.estimate.source, known.estimate.recorded_ns) == ("light", 2_000_000)
    assert known.estimate.ns == pytest.approx((1 - LIGHT_SHARE) * 1_000_000, rel=0.01)
    assert known.estimate.low_ns < 900_000 < 1_000_000 < known.estimate.high_ns


def test_a_measured_step_is_held_to_the_light_window(make: Callable[..., ProfileView]) -> None:
    view = make(unprofiled_step_ns=900_000)
    known = simulation(view, view.selection())
    assert (known.timed, known.share.expected) == (True, pytest.approx(0.9, abs=0.01))
    # Half of the CPU's time before the first launch of a step goes: 50 of 1000 µs in the light window.
    starts = view.profile.iterations.host_start_ns
    change = Change(cpu=(starts, starts + 200_000), keep_cpu=0.5)
    assert known.step([change]).ns == pytest.approx(0.95 * 900_000, rel=0.01)
