"""What became of the savings that the rules stated: the base's findings whose change the candidate made.

Realised is the base's step less the candidate's, both without the profiler (`simulation.estimate`). Where the batch
sizes differ the candidate's step is scaled to a batch of the base's size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.advice.engine import advise, all_rules
from tb_dlprof_plugin.advice.finding import FindingItem, SavingItem
from tb_dlprof_plugin.comparison import Comparison
from tb_dlprof_plugin.comparison.many import FACTS, differing_facts
from tb_dlprof_plugin.frame import Frame, Selection
from tb_dlprof_plugin.measures.run_setup import run_setup
from tb_dlprof_plugin.simulation.estimate import step_estimate

Outcome = Literal["kept", "more", "less", "broken", "shared"]
"""Realised in the stated interval, above it, below it, or no saving; shared: several changes were made at once."""

_OTHER_WORK = ("model", "gpu", "gpus", "processes")
"""Where these differ, a difference of the steps says nothing of a change."""


@dataclass(frozen=True)
class KeptSaving:
    """One stated saving and what was realised (ns per step).

    ``change`` is what the candidate made of it, in words. ``realised_low_ns`` to ``realised_high_ns`` by how much the
    profiler may have slowed both runs, the same as ``realised_ns`` where neither step had to be estimated. ``also`` are
    other facts in which the runs differ, in words.
    """

    finding: FindingItem
    saving: SavingItem
    change: str
    realised_ns: float
    realised_low_ns: float
    realised_high_ns: float
    estimated: bool
    outcome: Outcome
    also: list[str]


def kept_savings(comparison: Comparison, base: Frame, candidate: Frame, a: Selection, b: Selection) -> list[KeptSaving]:
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
    realised, low, high, estimated = _realised(comparison, base, candidate, a, b)
    belongs = {fact for finding, _, _ in made for fact in rules[finding.rule].rule.facts}
    also = [FACTS[fact] for fact in differing if fact not in belongs]
    return [
        KeptSaving(
            finding=finding,
            saving=saving,
            change=change,
            realised_ns=realised,
            realised_low_ns=low,
            realised_high_ns=high,
            estimated=estimated,
            outcome="shared" if len(made) > 1 else outcome_of(saving, realised),
            also=also,
        )
        for finding, saving, change in made
    ]


def outcome_of(saving: SavingItem, realised_ns: float) -> Outcome:
    """Whether a saving was realised as stated."""
    if saving.low_ns <= realised_ns <= saving.high_ns:
        return "kept"
    if realised_ns > saving.high_ns:
        return "more"
    return "less" if realised_ns > 0 else "broken"


def _realised(
    comparison: Comparison, base: Frame, candidate: Frame, a: Selection, b: Selection
) -> tuple[float, float, float, bool]:
    """The saving with its bounds (ns), and whether a step in it is estimated.

    The profiler slows both runs alike, so that the bounds go together.
    """
    before, after = step_estimate(base, a), step_estimate(candidate, b)
    batches = comparison.batches
    scale = batches.a / batches.b if batches is not None and batches.differ else 1.0
    ends = sorted((before.low_ns - scale * after.low_ns, before.high_ns - scale * after.high_ns))
    middle = before.ns - scale * after.ns
    return middle, min(ends[0], middle), max(ends[1], middle), before.estimated or after.estimated
