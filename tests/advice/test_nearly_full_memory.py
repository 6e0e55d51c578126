"""The rules on memory that is nearly full or held for nothing, on recordings with other facts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import msgspec
import pytest
from advice.helpers import finding_of, readings_of, status_of
from support.recorded_runs import ROOT

from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles


@cache
def _recorded(path: str) -> ProfileView:
    return ProfileView(read_profiles(ROOT / "tests" / "data" / path)[0].profile)


def _perceptron() -> ProfileView:
    return _recorded("memory_plan/recorded/perceptron/base")


def _with(view: ProfileView, **facts: object) -> ProfileView:
    return ProfileView(replace(view.profile, facts=msgspec.structs.replace(view.profile.facts, **facts)))


@pytest.mark.parametrize(
    ("room", "retries", "outcome", "words"),
    [
        (2.0, 0, "silent", "(50 %)"),
        (1.1, 0, "silent", "(91 %)"),
        (1.1, 2, "fired", "2 allocations of the process failed"),
        (2.0, 2, "silent", "(50 %)"),
        (1.03, 0, "fired", "(97 %)"),
    ],
)
def test_memory_that_is_nearly_full_is_named(room: float, retries: int, outcome: str, words: str) -> None:
    view = _perceptron()
    peak = view.profile.facts.peak_memory_allocated_bytes
    assert peak is not None
    facts = {"available_memory_bytes": int(room * peak), "allocator_retries": retries}
    status = status_of(_with(view, **facts), "out_of_memory_ahead")
    assert (status.outcome, words in status.why) == (outcome, True), status.why


def test_a_smaller_batch_has_its_price_in_memory() -> None:
    view = _perceptron()
    peak = view.profile.facts.peak_memory_allocated_bytes
    assert peak is not None
    finding = finding_of(_with(view, available_memory_bytes=int(1.03 * peak)), "out_of_memory_ahead")
    assert "Take batches of 7,372 instead of 8,192" in finding.change
    assert "By a replay of the allocator" in finding.change


def test_without_the_gpus_memory_nothing_is_known_of_its_end(training) -> None:
    assert status_of(training().view(), "out_of_memory_ahead").outcome == "not_applicable"


def test_gradients_that_are_freed_before_the_forward_pass_cost_nothing() -> None:
    assert status_of(_perceptron(), "late_zero_grad").outcome == "silent"


def _full(model: str) -> ProfileView:
    """A recorded training on a GPU that it fills to 90 %."""
    view = _recorded(f"memory_plan/{model}/base")
    peak = view.profile.facts.peak_memory_allocated_bytes
    assert peak is not None
    return _with(view, available_memory_bytes=int(peak / 0.9))


def test_few_checkpoints_that_free_much_are_named_with_what_they_cost() -> None:
    finding = finding_of(_full("inputs_and_splits_recorded/wave"), "cheap_checkpoints")
    assert finding.title == "Checkpoints would free 375.0 MiB for 7.2 % of the step"
    assert "checkpoint(self.blocks[3], x, use_reentrant=False)" in finding.code
    readings = readings_of(finding)
    assert readings["Lower peak"] == pytest.approx(20.5, abs=0.1)
    assert readings["Memory taken at the peak"] == pytest.approx(90)


@pytest.mark.parametrize(
    ("model", "full", "words"),
    [
        # What a perceptron keeps, the next layer needs anyway.
        ("recorded/perceptron", True, "no set of checkpoints"),
        ("inputs_and_splits_recorded/wave", False, "% of the memory."),
    ],
)
def test_checkpoints_that_save_nothing_or_are_not_needed_are_not_advised(model: str, full: bool, words: str) -> None:
    view = _full(model) if full else _recorded(f"memory_plan/{model}/base")
    status = status_of(view, "cheap_checkpoints")
    assert (status.outcome, words in status.why) == ("silent", True), status.why
