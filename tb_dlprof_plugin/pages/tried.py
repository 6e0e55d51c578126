"""What `tb-dlprof try` measured with this run as its baseline: gains of remedies, and whether the training is the same.

Nothing here is computed from the recording: the trial is stored with it.
"""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.model.trial_result import BUDGET_USED, INSIDE, OTHER_TRAININGS, BestSet, TrialResult, TriedRemedy
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef

_NS = 1e6
_MOST_TITLES = 2
_LITTLE = 10.0
"""Percent that a gain may be at most for "none" to be an answer, and not "not certain"."""
_NO_TRIAL = "No remedy was tried with this run as the baseline."


class TriedRow(msgspec.Struct, frozen=True):
    """A remedy, or a set of them, that was run next to the baseline."""

    remedy: Annotated[str, Column("Remedy", "triedRemedy", width=260)]
    before_ns: Annotated[
        float | None,
        Column("Before", "A step of the unchanged script, in the blocks between which the remedy's were run."),
    ]
    after_ns: Annotated[
        float | None,
        Column("After"),
        Definition(
            "triedAfter",
            "A step with the remedy; where it changes how many samples a step has, of as many samples as before.",
        ),
    ]
    gain_percent: Annotated[
        float | None, Column("Gain", "Share of the step's time that the remedy saves; below 0 the step takes longer.")
    ]
    low_percent: Annotated[float | None, Column("At least", "triedInterval")]
    high_percent: Annotated[float | None, Column("At most", "triedInterval")]
    forecast_percent: Annotated[
        float | None, Column("Forecast", "What the advice expected from the baseline's recording alone.")
    ]
    memory_bytes: Annotated[int | None, Column("Memory", "The most that tensors held on the GPU.")]
    joules: Annotated[float | None, Column("Energy", "Energy of a step by the GPU's own counter.", terminal=False)]
    start_s: Annotated[
        float | None, Column("Start", "From the start of the process to its first timed step, compilation included.")
    ]
    verdict: Annotated[
        str,
        Column("Training", width=170),
        Definition(
            "triedVerdict",
            "Whether the training computes the same: losses, norms of gradients and of updates of the first steps, "
            "and hyperparameters, compared with the baseline's. They may differ as much as those of another seed.",
        ),
    ]
    title: str
    is_gain: bool
    verdict_text: str
    changes: str
    code: str
    run: str


class NotTriedRow(msgspec.Struct, frozen=True):
    """A remedy without a measurement, and why: it need not or cannot be tried, changed nothing, or failed."""

    remedy: Annotated[str, Column("Remedy", "triedRemedy", width=260)]
    title: str
    why: Annotated[
        str,
        Column("Why", "Why there is no figure: it does not fit this training, changed nothing, or failed.", width=420),
    ]
    failed: bool


class TriedPage(msgspec.Struct, frozen=True):
    """The trial of a run; ``rows`` is empty, and ``headline`` says so, where there was none."""

    ref: RunRef
    headline: str
    command: str
    device: str
    baseline_ns: Annotated[
        float | None,
        Definition("triedBaseline", "The median step of the unchanged script without a profiler, over all its blocks."),
    ]
    best: list[str]
    best_gain_percent: Annotated[
        float | None,
        Definition(
            "triedBest",
            "What the best set of remedies saves, measured as a set against the unchanged script: it need not be the "
            "sum of what each saves.",
        ),
    ]
    best_low_percent: float | None
    best_high_percent: float | None
    best_verdict: str
    patch: str
    by_hand: list[str]
    rows: list[TriedRow]
    sets: list[TriedRow]
    not_tried: list[NotTriedRow]
    without_figures: list[str]
    seeds_differ: str
    seconds: Annotated[
        float | None, Definition("triedSeconds", "How long the experiment took, with the starts of all processes.")
    ]
    notes: list[str]


def tried_page(view: ProfileView, ref: RunRef, selection: Selection) -> TriedPage:
    """Of the run; the selected iterations change nothing."""
    stored = view.profile.trial
    trial = TrialResult() if stored is None else stored
    best = trial.best
    measured = [row for row in trial.rows if row.gain_percent is not None]
    return TriedPage(
        ref=ref,
        headline=_NO_TRIAL if stored is None else headline(trial),
        command=" ".join(trial.command),
        device=trial.device,
        baseline_ns=_ns(trial.baseline_ms),
        best=best.remedies,
        best_gain_percent=best.gain_percent if best.remedies else None,
        best_low_percent=best.low_percent if best.remedies else None,
        best_high_percent=best.high_percent if best.remedies else None,
        best_verdict=best.verdict or "",
        patch=best.patch,
        by_hand=best.by_hand,
        rows=[tried_row(row) for row in measured],
        sets=[tried_row(row) for row in trial.sets if row.gain_percent is not None],
        not_tried=[
            NotTriedRow(
                row.remedy, row.title, row.error or row.not_tried or row.no_effect or row.stopped, bool(row.error)
            )
            for row in trial.rows
            if row.gain_percent is None and row.remedy not in best.remedies
        ],
        without_figures=without_figures(trial),
        seeds_differ=trial.seeds_differ,
        seconds=trial.seconds or None,
        notes=[
            *trial.notes,
            *([f"The best set was {INSIDE}."] * bool(best.remedies and not best.confirmed)),
            *(["The trial was interrupted: the table has what was known then."] * trial.interrupted),
        ],
    )


def without_figures(trial: TrialResult) -> list[str]:
    """Of the remedies that have no gain of their own a line for each failure, and one for each other reason."""
    rows = [row for row in trial.rows if row.gain_percent is None and row.remedy not in trial.best.remedies]
    failed = [row for row in rows if row.error]
    others = [row for row in rows if not row.error]
    reasons = {
        "Not reached within the budget; --continue goes on": [one for one in others if one.not_tried == BUDGET_USED],
        "Others are as fast without": [one for one in others if one.stopped and not one.no_effect],
        "No effect on this script": [one for one in others if one.no_effect],
        "Do not fit this training": [one for one in others if one.not_tried not in ("", BUDGET_USED)],
    }
    return [
        *(f"{row.remedy}: failed: {row.error}" for row in failed),
        *(f"{why}: {', '.join(one.remedy for one in some)}." for why, some in reasons.items() if some),
    ]


def headline(trial: TrialResult) -> str:
    """The result in one sentence."""
    best = trial.best
    if not best.remedies or best.gain_percent is None:
        return without_best(trial)
    # The titles of many make no sentence; the table has them.
    many = len(best.remedies) > _MOST_TITLES
    names = f"{len(best.remedies)} remedies together" if many else " and ".join(_titles(trial, best))
    return f"{names}: a step takes {best.gain_percent:.1f} % less time{_interval(best)}."


def without_best(trial: TrialResult) -> str:
    """What is known of gains where no set is best: what they are below at 95 %, where that is little."""
    measured = [row for row in (*trial.rows, *trial.sets) if row.gain_percent is not None]
    if not measured:
        return "No remedy was measured."
    same = [row for row in measured if row.verdict not in OTHER_TRAININGS]
    most = max((math.inf if row.high_percent is None else row.high_percent for row in same), default=0.0)
    if most == math.inf:
        return "No gain is certain yet: what was measured is too little."
    if most > _LITTLE:
        return f"No gain is certain yet: up to {most:.0f} % is possible."
    if len(same) < len(measured) and any((row.gain_percent or 0.0) > _LITTLE for row in measured if row not in same):
        return "What makes a step shorter trains something else."
    tried = len({name for row in same for name in row.names})
    by = f" by more than {most:.1f} %" if most > 0 else ""
    return f"None of {tried} remedies makes a step shorter{by}."


def _titles(trial: TrialResult, best: BestSet) -> list[str]:
    titles = {row.remedy: row.title for row in trial.rows}
    return [titles.get(name) or name for name in best.remedies]


def _interval(one: BestSet) -> str:
    if one.low_percent is None or one.high_percent is None:
        return ""
    return f" ({one.low_percent:.1f} to {one.high_percent:.1f} %)"


def tried_row(row: TriedRemedy) -> TriedRow:
    """A remedy that was measured, or a set of them."""
    return struct_from(
        TriedRow, row, before_ns=_ns(row.before_ms), after_ns=_ns(row.after_ms), verdict=row.verdict or "unknown"
    )


def _ns(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else _NS * milliseconds
