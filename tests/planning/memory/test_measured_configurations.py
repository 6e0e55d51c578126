"""The planner's forecasts from one recording of each of six models against what other configurations took on an H200
(`tests/data/memory_plan/recorded`)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from lab.memory_plan.compare import compared
from tb_dlprof_plugin.planning.memory.plan import Bytes
from tb_dlprof_plugin.planning.memory.recorded_step import recorded_program
from tb_dlprof_plugin.planning.memory.rewrite_batch import with_batch
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles
from tests.support.recorded_runs import ROOT

RECORDED = ROOT / "tests" / "data" / "memory_plan" / "recorded"


@functools.cache
def rows() -> list[dict[str, Any]]:
    return compared(RECORDED)


def figures(kind: str, figure: str) -> Iterator[tuple[Bytes, int]]:
    """Forecasts of a kind of change with what was measured."""
    for row in rows():
        if row["kind"] == kind or (kind == "all" and row["kind"] != "recorded"):
            yield getattr(row["plan"], figure), row["truth"][figure]


@pytest.mark.parametrize(
    ("kind", "count", "median", "worst"),
    [
        ("recorded", 6, 0.0001, 0.001),
        ("batch_size", 24, 0.0005, 0.012),
        ("optimizer", 24, 0.0005, 0.001),
        ("gradients", 12, 0.0005, 0.003),
        ("layers", 6, 0.0005, 0.004),
        ("checkpoint", 6, 0.0015, 0.015),
        ("batch_size + checkpoint", 6, 0.002, 0.015),
        ("precision bf16", 6, 0.01, 0.02),
        ("allocator", 6, 0.0001, 0.001),
    ],
)
def test_peaks_of_tensors_are_near_what_was_measured(kind: str, count: int, median: float, worst: float) -> None:
    off = [abs(found.value / truth - 1) for found, truth in figures(kind, "peak_allocated")]
    assert len(off) == count
    assert np.median(off) <= median
    assert max(off) <= worst


@pytest.mark.parametrize(
    ("kind", "median"),
    [("all", 0.001), ("batch_size", 0.002), ("checkpoint", 0.0005), ("batch_size + checkpoint", 0.01)],
)
def test_reserved_memory_is_near_what_was_measured(kind: str, median: float) -> None:
    assert np.median([abs(found.value / truth - 1) for found, truth in figures(kind, "peak_reserved")]) <= median


@pytest.mark.slow
def test_checkpoints_of_models_without_a_part_in_the_rules() -> None:
    """What a forward pass frees early lies elsewhere in the allocator: reserved memory was up to 25 % off."""
    found = [row for row in compared(RECORDED.with_name("held_out")) if row["kind"] == "checkpoint"]
    off = {
        figure: sorted(abs(getattr(row["plan"], figure).value / row["truth"][figure] - 1) for row in found)
        for figure in ("peak_allocated", "peak_reserved")
    }
    assert len(found) == 6
    assert off["peak_allocated"][-1] < 0.003
    assert off["peak_reserved"][-1] < 0.025
    assert np.median(off["peak_reserved"]) < 0.002


def test_cross_entropy_of_half_precision_casts_what_its_loss_reads() -> None:
    """Without that cast the GPT's reserved memory is 12 % too low: one segment of all logits in FP32."""
    (found,) = [row for row in rows() if row["kind"] == "precision bf16" and row["model"] == "gpt"]
    assert found["plan"].peak_reserved.value == pytest.approx(found["truth"]["peak_reserved"], rel=0.002)


@pytest.mark.parametrize("figure", ["peak_allocated", "peak_reserved"])
def test_intervals_hold_about_nine_in_ten(figure: str) -> None:
    inside = [found.low <= truth <= found.high for found, truth in figures("all", figure)]
    assert np.mean(inside) >= 0.88


def test_the_smallest_limit_is_within_half_a_percent() -> None:
    """A limit that refuses cuDNN's workspace leads torch to an algorithm without one, as in the ResNet."""
    off = [
        row["plan"].smallest_limit.value / row["truth"]["smallest_limit"] - 1
        for row in rows()
        if row["truth"].get("smallest_limit")
    ]
    assert len(off) == 6
    assert max(map(abs, off)) < 0.004


@pytest.mark.parametrize(
    ("kind", "count", "median"),
    [("optimizer", 24, 0.015), ("gradients", 12, 0.025), ("layers", 6, 0.015), ("checkpoint", 6, 0.05)],
)
def test_steps_with_other_work_are_near_what_was_timed(kind: str, count: int, median: float) -> None:
    """The LSTM's pace is the CPU's, which differed from one configuration to the next."""
    found = [(row["step"], 1e6 * row["truth"]["step_ms"], row["model"]) for row in rows() if row["kind"] == kind]
    assert len(found) == count
    off = [abs(step.ns / truth - 1) for step, truth, model in found if model != "lstm"]
    assert np.median(off) <= median
    assert max(off) <= 3 * max(median, 0.025)
    assert np.mean([step.low_ns <= truth <= step.high_ns for step, truth, _ in found]) >= 0.8


@pytest.mark.parametrize("model", ["convnext", "gpt", "perceptron"])
def test_allocations_of_twice_the_batch_are_those_that_were_recorded_with_it(model: str) -> None:
    half, twice = (
        recorded_program(ProfileView(read_profiles(RECORDED / model / name)[0].profile)) for name in ("base", "twice")
    )
    forecast, recorded = with_batch(half, 2.0), twice
    # A batch with more samples may have reductions with a buffer that the smaller one had not.
    assert 0 <= len(recorded.slots) - len(forecast.slots) <= 2
    large = [sorted((size for size in one.sizes if size > 1 << 20), reverse=True) for one in (forecast, recorded)]
    assert len(large[0]) == len(large[1])
    assert sum(abs(a - b) for a, b in zip(*large, strict=True)) <= 0.004 * sum(large[1])
