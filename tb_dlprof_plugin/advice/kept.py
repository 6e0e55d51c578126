"""What became of the savings that the rules stated: the base's findings whose change the candidate made.

Realised is the base's step less the candidate's, both without the profiler (`unprofiled`). Where the batch sizes differ
the candidate's step is scaled to a batch of the base's size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.advice.engine import advise
from tb_dlprof_plugin.advice.finding import FindingItem, SavingItem
from tb_dlprof_plugin.advice.rules import (
    amp_not_used,
    cudnn_benchmark_off,
    dataloader_bound,
    gpu_underutilized,
    tf32_off,
)
from tb_dlprof_plugin.comparison import Comparison
from tb_dlprof_plugin.comparison.many import FACTS, differing_facts
from tb_dlprof_plugin.comparison.unprofiled import unprofiled_step
from tb_dlprof_plugin.measures import Frame, Selection
from tb_dlprof_plugin.measures.precision_mode import precision_mode
from tb_dlprof_plugin.measures.precision_signals import HALF
from tb_dlprof_plugin.measures.run_setup import RunSetup, precision_of, run_setup

Outcome = Literal["kept", "more", "less", "broken", "shared"]
"""Realised in the stated interval, above it, below it, or no saving; shared: several changes were made at once."""

_TF32 = ("tf32", "tf32-partly", "tf32-allowed")
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
    made: list[tuple[FindingItem, SavingItem, str]] = []
    for finding in advise(base, a).findings:
        change = _CHANGES[finding.rule](base, candidate) if finding.rule in _CHANGES else ""
        if change and finding.saving is not None:
            made.append((finding, finding.saving, change))
    if not made:
        return []
    realised, low, high, estimated = _realised(comparison, base, candidate, a, b)
    belongs = {fact for finding, _, _ in made for fact in _FACTS_OF[finding.rule]}
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
    before, after = unprofiled_step(base, a), unprofiled_step(candidate, b)
    batches = comparison.batches
    scale = batches.a / batches.b if batches is not None and batches.differ else 1.0
    ends = sorted((before.low_ns - scale * after.low_ns, before.high_ns - scale * after.high_ns))
    middle = before.ns - scale * after.ns
    return middle, min(ends[0], middle), max(ends[1], middle), before.estimated or after.estimated


def _amp(base: Frame, candidate: Frame) -> str:
    mode = precision_mode(candidate)
    return mode.label if mode.precision in HALF and precision_mode(base).precision not in HALF else ""


def _tf32(base: Frame, candidate: Frame) -> str:
    return "TF32 on" if precision_of(candidate) in _TF32 and precision_of(base) not in _TF32 else ""


def _benchmark(base: Frame, candidate: Frame) -> str:
    return "cudnn.benchmark on" if candidate.profile.facts.cudnn_benchmark else ""


def _loader(base: Frame, candidate: Frame) -> str:
    """The settings of the DataLoader that were raised or switched on."""
    before, after = base.profile.facts.dataloader, candidate.profile.facts.dataloader
    if before is None or after is None:
        return ""
    changes = []
    for name, old, new in (
        ("num_workers", before.num_workers, after.num_workers),
        ("prefetch_factor", before.prefetch_factor, after.prefetch_factor),
    ):
        if old is not None and new is not None and new > old:
            changes.append(f"{name} {old} to {new}")
    for name, was, now in (
        ("persistent_workers", before.persistent_workers, after.persistent_workers),
        ("pin_memory", before.pin_memory, after.pin_memory),
    ):
        if was is False and now:
            changes.append(f"{name} on")
    return ", ".join(changes)


def _more_per_launch(base: Frame, candidate: Frame) -> str:
    before, after = run_setup(base), run_setup(candidate)
    changes = []
    if before.batch_size and after.batch_size and after.batch_size > before.batch_size:
        changes.append(f"batch size {before.batch_size} to {after.batch_size}")
    if _compiles(after) and not _compiles(before):
        changes.append("torch.compile")
    return ", ".join(changes)


def _compiles(setup: RunSetup) -> bool:
    return bool(setup.compiled)


_CHANGES: dict[str, Callable[[Frame, Frame], str]] = {
    amp_not_used.RULE: _amp,
    tf32_off.RULE: _tf32,
    cudnn_benchmark_off.RULE: _benchmark,
    dataloader_bound.RULE: _loader,
    gpu_underutilized.RULE: _more_per_launch,
}
"""How each rule's change is recognised in a later run: in words, "" for not made."""
_FACTS_OF: dict[str, tuple[str, ...]] = {
    amp_not_used.RULE: ("precision",),
    tf32_off.RULE: ("precision",),
    cudnn_benchmark_off.RULE: ("cudnn_benchmark",),
    dataloader_bound.RULE: ("workers",),
    gpu_underutilized.RULE: ("batch_size", "compiled"),
}
