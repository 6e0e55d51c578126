"""What became of the savings that the rules stated: the base's findings whose change the candidate made.

Realised is the base's step less the candidate's, both without the profiler (`simulation.estimate`), with the interval
that the two steps leave. Where the batch sizes differ the candidate's step is scaled to a batch of the base's size.
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
"""Realised as stated, as far as the intervals of both tell; more; less; no saving. Shared: several changes were made at
once."""

_OTHER_WORK = ("model", "gpu", "gpus", "processes")
"""Where these differ, a difference of the steps says nothing of a change."""


@dataclass(frozen=True)
class KeptSaving:
    """One stated saving and what was realised (ns per step).

    ``change`` is what the candidate made of it, in words. ``realised_low_ns`` to ``realised_high_ns`` is the 95 %
    interval that the two steps leave, None where a run has a single iteration and its step was not timed otherwise.
    ``estimated`` says whether a step was. ``also`` are other facts in which the runs differ, in words.
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


def kept_savings(
    comparison: Comparison, base: ProfileView, candidate: ProfileView, a: Selection, b: Selection
) -> list[KeptSaving]:
    """The stated savings whose change was made, as in the base's advice; empty where the runs do other work.

    Args:
        comparison: of the two.
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
    made: list[tuple[FindingItem, SavingItem, str]] = []
    for finding, saving in stated:
        recognise = rules[finding.rule].made
        if recognise is not None and (change := recognise(base, candidate)):
            made.append((finding, saving, change))
    if not made:
        # Nothing that was switched explains the candidate: then what a rule no longer finds was mended.
        later = {status.rule: status for status in advise(candidate, b).rules}
        made = [
            (finding, saving, f"no longer found: {later[finding.rule].why}")
            for finding, saving in stated
            if rules[finding.rule].made is None and later[finding.rule].outcome == "silent"
        ]
    if not made:
        return []
    realised, interval = comparison.saving_ns, comparison.saving_interval_ns
    belongs = {fact for finding, _, _ in made for fact in rules[finding.rule].rule.facts}
    also = [FACTS[fact] for fact in differing if fact not in belongs]
    return [
        KeptSaving(
            finding=finding,
            saving=saving,
            change=change,
            realised_ns=realised,
            realised_low_ns=interval[0] if interval else None,
            realised_high_ns=interval[1] if interval else None,
            estimated=any(step.estimated for step in comparison.steps),
            outcome="shared" if len(made) > 1 else outcome_of(saving, realised, interval),
            also=also,
        )
        for finding, saving, change in made
    ]


def outcome_of(saving: SavingItem, realised_ns: float, interval_ns: tuple[float, float] | None = None) -> Outcome:
    """Whether a saving was realised as stated.

    Args:
        saving: as stated.
        realised_ns: what was realised.
        interval_ns: its 95 % interval; None where only the value is known.
    """
    low, high = interval_ns or (realised_ns, realised_ns)
    if agree((saving.low_ns, saving.expected_ns, saving.high_ns), (low, realised_ns, high)):
        return "kept"
    if realised_ns > saving.expected_ns:
        return "more"
    return "less" if realised_ns > 0 else "broken"
