"""The page Tried shows what is stored, and says so where nothing is."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from support.stored_profiles import trial_result

from tb_dlprof_plugin.model.trial_result import BestSet, TrialResult
from tb_dlprof_plugin.pages.tried import NotTriedRow, TriedPage, headline, tried_page
from tb_dlprof_plugin.profile_view import ProfileView


def page_of(gpu_view: ProfileView, ref, trial: TrialResult | None) -> TriedPage:  # type: ignore[no-untyped-def]
    view = ProfileView(dataclasses.replace(gpu_view.profile, trial=trial))
    return tried_page(view, ref, view.selection())


def test_a_run_without_a_trial_says_so(gpu_view, ref) -> None:  # type: ignore[no-untyped-def]
    page = page_of(gpu_view, ref, None)
    assert page.headline == "No remedy was tried with this run as the baseline."
    assert (page.rows, page.not_tried, page.baseline_ns) == ([], [], None)


def test_what_was_measured_and_what_was_not_are_two_tables(gpu_view, ref) -> None:  # type: ignore[no-untyped-def]
    page = page_of(gpu_view, ref, trial_result())
    assert page.headline == (
        "TF32 for matrix products and convolutions: a step takes 31.5 % less time (30.9 to 32.1 %)."
    )
    (row,) = page.rows
    assert (row.remedy, row.before_ns, row.after_ns, row.gain_percent) == ("tf32", 24e6, pytest.approx(16.44e6), 31.5)
    assert page.not_tried == [
        NotTriedRow("compile", "torch.compile", "RuntimeError: no compiler was found", True),
        NotTriedRow("larger_batch", "Batch size × 2", "No DataLoader was found.", False),
    ]


def test_without_a_gain_the_headline_says_so() -> None:
    trial = msgspec.structs.replace(trial_result(), best=BestSet())
    (row,) = [one for one in trial.rows if one.gain_percent is not None]
    for high, said in (
        (-0.5, "None of 1 remedies makes a step shorter."),
        (2.26, "None of 1 remedies makes a step shorter by more than 2.3 %."),
        (30.8, "No gain is certain yet: up to 31 % is possible."),
        (None, "No gain is certain yet: what was measured is too little."),
    ):
        row.high_percent = high
        assert headline(trial) == said
    row.verdict = "differs"
    assert headline(trial) == "What makes a step shorter trains something else."
    assert headline(TrialResult()) == "No remedy was measured."


def test_an_interrupted_trial_is_marked(gpu_view, ref) -> None:  # type: ignore[no-untyped-def]
    page = page_of(gpu_view, ref, msgspec.structs.replace(trial_result(), interrupted=True))
    assert page.notes[-1].startswith("The trial was interrupted")
