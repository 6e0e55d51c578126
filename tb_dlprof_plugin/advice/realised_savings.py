"""Compares predicted with realised savings for the findings of the base run that the candidate run applied.

The realised saving is the base's step less the candidate's, both without the profiler (`simulation.estimate`), with the
interval of that difference. Where the batch sizes differ the candidate's step is scaled to a batch of the base's size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.advice.engine import advise, all_rules
from tb_dlprof_plugin.advice.finding import FindingItem, SavingItem
from tb_dlprof_plugin.comparison import Comparison
from tb_dlprof_plugin.comparison.run_table import FACTS, differing_facts
from tb_dlprof_plugin.comparison.step_intervals import agree
from tb_dlprof_plugin.metrics.run_setup import run_setup
from tb_dlprof_plugin.profile_view import ProfileView, Selection

Outcome = Literal["kept", "more", "less", "broken", "shared"]
"""Realised as predicted, within the intervals of both; more; less; no saving. Shared: several changes were applied at
once."""

_OTHER_WORK = ("model", "gpu", "gpus", "processes")
"""Where these differ, the difference of the steps cannot be attributed to a change."""


@dataclass(frozen=True)
class RealisedSaving:
    """A predicted saving and the realised one (ns per step).

    ``change`` is the applied change, in words. ``realised_low_ns`` to ``realised_high_ns`` is the 95 % interval, None
    if a run has a single iteration and its step was not timed otherwise. ``estimated`` is True if one of the steps is
    an estimate. ``also`` lists other facts in which the runs differ, in words.
    """

    finding: FindingItem
    saving: SavingItem
    change: str
    realised_ns: float
    realised_low_ns: float | None
    realised_high_ns: float | None
    estimated: bool
    outcome: Outcome
    also: list[str]


def realised_savings(
    comparison: Comparison, base: ProfileView, candidate: ProfileView, a: Selection, b: Selection
) -> list[RealisedSaving]:
    """The predicted savings whose change was applied, in the order of the base's advice; empty if the runs do different
    work.

    Args:
        comparison: of the two runs.
        base: the run that the advice was for.
        candidate: the later run.
        a: iterations of the base.
        b: iterations of the candidate.
    """
    setups = run_setup(base), run_setup(candidate)
    differing = differing_facts(*setups)
    if set(differing) & set(_OTHER_WORK):
        return []
    rules = {one.rule.id: one for one in all_rules()}
    stated = [(finding, finding.saving) for finding in advise(base, a).findings if finding.saving is not None]
    applied: list[tuple[FindingItem, SavingItem, str]] = []
    for finding, saving in stated:
        recognise = rules[finding.rule].was_applied
        if recognise is not None and (change := recognise(base, candidate)):
            applied.append((finding, saving, change))
    if not applied:
        # No change of a setting explains the difference: a finding that the rule no longer reports counts as fixed.
        later = {status.rule: status for status in advise(candidate, b).rules}
        applied = [
            (finding, saving, f"no longer found: {later[finding.rule].why}")
            for finding, saving in stated
            if rules[finding.rule].was_applied is None and later[finding.rule].outcome == "silent"
        ]
    if not applied:
        return []
    realised, interval = comparison.saving_ns, comparison.saving_interval_ns
    belongs = {fact for finding, _, _ in applied for fact in rules[finding.rule].rule.facts}
    also = [FACTS[fact] for fact in differing if fact not in belongs]
    return [
        RealisedSaving(
            finding=finding,
            saving=saving,
            change=change,
            realised_ns=realised,
            realised_low_ns=interval[0] if interval else None,
            realised_high_ns=interval[1] if interval else None,
            estimated=any(step.estimated for step in comparison.steps),
            outcome="shared" if len(applied) > 1 else outcome_of(saving, realised, interval),
            also=also,
        )
        for finding, saving, change in applied
    ]


def outcome_of(saving: SavingItem, realised_ns: float, interval_ns: tuple[float, float] | None = None) -> Outcome:
    """Whether a saving was realised as predicted.

    Args:
        saving: the prediction.
        realised_ns: the realised saving.
        interval_ns: its 95 % interval; None where only the value is known.
    """
    low, high = interval_ns or (realised_ns, realised_ns)
    if agree((saving.low_ns, saving.expected_ns, saving.high_ns), (low, realised_ns, high)):
        return "kept"
    if realised_ns > saving.expected_ns:
        return "more"
    return "less" if realised_ns > 0 else "broken"
