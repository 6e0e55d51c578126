"""The step of ranks that wait for each other, without the steps that the hook timed: those are the truth
(`tests/data/ranks/recorded`, two H200s, torch 2.11)."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tb_dlprof_plugin.model.profile import LightWindow
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.collective_waits import without_waiting
from tb_dlprof_plugin.simulation.estimate import StepEstimate, step_estimate
from tb_dlprof_plugin.store.logdir import read_profiles
from tests.support.recorded_runs import ROOT

RECORDED = ROOT / "tests" / "data" / "ranks" / "recorded"
GPU_PACED = ["ddp_even", "ddp_slow_gpu", "ddp_slow_input", "ddp_uneven_data"]


def ranks_of(job: str) -> list[ProfileView]:
    """The ranks as a bare recording has them: no step was timed without the profiler, none recorded lightly."""
    profiles = [
        replace(
            one.profile,
            facts=msgspec.structs.replace(
                one.profile.facts, unprofiled_before_ns=(), unprofiled_after_ns=(), unprofiled_step_ns=None
            ),
            light_window=LightWindow.none(),
        )
        for one in read_profiles(RECORDED / job)
    ]
    profiles.sort(key=lambda profile: profile.source.rank)
    views: list[ProfileView] = []
    for own in profiles:
        views.append(ProfileView(own, lambda own=own: [view for view in views if view.profile is not own]))
    return views


def true_ns(job: str) -> float:
    """The step that was timed without the profiler (ns)."""
    files = sorted((RECORDED / job).glob("truth.*.json"))
    return 1e6 * statistics.mean(json.loads(Path(file).read_text())["step_ms"] for file in files)


def estimate(view: ProfileView) -> StepEstimate:
    return step_estimate(view, view.selection())


@pytest.mark.parametrize("job", GPU_PACED)
def test_waiting_that_the_profiler_makes_is_not_part_of_the_step(job: str) -> None:
    """Each rank is delayed by its own amount: rank 0's recorded step was 11 to 35 % too long."""
    truth = true_ns(job)
    first, second = (estimate(view) for view in ranks_of(job))
    assert (first.ns, first.low_ns, first.high_ns) == (second.ns, second.low_ns, second.high_ns)
    assert first.ns == pytest.approx(truth, rel=0.02)
    assert first.recorded_ns > 1.1 * truth


def test_of_a_rank_alone_the_interval_says_that_its_waiting_is_unknown() -> None:
    rank, _ = ranks_of("ddp_slow_gpu")
    alone = estimate(ProfileView(rank.profile))
    assert alone.low_ns < true_ns("ddp_slow_gpu") < alone.high_ns
    assert alone.high_ns - alone.low_ns > 0.1 * alone.ns


def test_the_rank_that_comes_last_waits_least() -> None:
    ranks = ranks_of("ddp_slow_gpu")
    early, late = (without_waiting(view, ranks) for view in ranks)
    assert early is not None
    assert late is not None
    assert early.waited_ns > 10 * late.waited_ns


def test_a_rank_without_collectives_has_none_to_shorten() -> None:
    (profile,) = read_profiles(ROOT / "demo" / "recorded" / "lenet" / "fp32")
    assert without_waiting(ProfileView(profile.profile), ()) is None
