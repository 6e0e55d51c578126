"""The rules on power and size of the GPU, on recordings with other facts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import msgspec
import pytest
from advice.helpers import finding_of, readings_of, status_of
from support.recorded_runs import ROOT

from tb_dlprof_plugin.model.run_facts import ClockLimit, GpuEnergy
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles


@cache
def _recorded(path: str) -> ProfileView:
    return ProfileView(read_profiles(ROOT / "tests" / "data" / path)[0].profile)


def _with(view: ProfileView, **facts: object) -> ProfileView:
    return ProfileView(replace(view.profile, facts=msgspec.structs.replace(view.profile.facts, **facts)))


def _energy(limits: dict[str, int], clock: int = 1700) -> list[GpuEnergy]:
    return [
        GpuEnergy(
            0, 1_400_000, 2_000_000_000, 10, 700_000, clock, 60, [ClockLimit(name, n) for name, n in limits.items()]
        )
    ]


@pytest.mark.parametrize(
    ("limits", "clock", "outcome", "words"),
    [
        ({}, 1980, "silent", "Nothing held the clock down"),
        ({"power cap": 2}, 1900, "silent", "Nothing held the clock down"),
        ({"power cap": 10}, 1960, "silent", "by 1 % only"),
        ({"power cap": 10}, 1683, "fired", "In 100 % of the readings"),
        ({"thermal slowdown": 8, "power cap": 3}, 1200, "fired", "the reason thermal slowdown"),
    ],
)
def test_a_clock_that_is_held_down_is_named(limits: dict[str, int], clock: int, outcome: str, words: str) -> None:
    view = _with(_recorded("energy/recorded/mlp/fp32"), energy=_energy(limits, clock), max_sm_clock_mhz=1980)
    status = status_of(view, "clock_held_down")
    assert (status.outcome, words in status.why) == (outcome, True), status.why
    if outcome == "fired":
        finding = finding_of(view, "clock_held_down")
        assert readings_of(finding)["Clock below the maximum"] == pytest.approx(100 * (1 - clock / 1980))
        assert finding.severity == ("medium" if "thermal slowdown" in limits else "low")


def test_without_readings_nothing_is_known_of_the_clock(training) -> None:
    assert status_of(training().view(), "clock_held_down").outcome == "not_applicable"


def test_a_gpu_that_works_most_of_the_step_is_not_too_large() -> None:
    status = status_of(_recorded("energy/recorded/mlp/fp32"), "gpu_too_large")
    assert (status.outcome, "The GPU works" in status.why) == ("silent", True), status.why


def test_a_smaller_gpu_must_hold_what_was_reserved() -> None:
    view = _recorded("planted/batch_size/fault")
    finding = finding_of(view, "gpu_too_large")
    assert "in place of H200" in finding.title
    longer = readings_of(finding)["Longer step there at most"]
    assert longer is not None
    assert longer <= 10
    full = _with(view, peak_memory_reserved_bytes=130 << 30)
    assert "no smaller GPU" in status_of(full, "gpu_too_large").why
