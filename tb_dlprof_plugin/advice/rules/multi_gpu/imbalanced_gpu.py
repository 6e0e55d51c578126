"""The GPUs have unequal work.

Several GPUs of one training of which one works much less than another: the GPUs of one process, or those of all ranks
that were recorded. Time in collectives counts as no work, because a GPU that waits for others is busy in them.

Why it matters: The ranks exchange gradients in every step, so each step takes as long as the slowest rank needs. What
the others could have done meanwhile is lost.

What to change: Give every rank the same amount of work: samples of equal size, or batches put together by size.

When to leave it: The work varies from step to step and evens out over many of them: then all ranks wait in turns, and
the few recorded steps show one turn. Pipeline stages are unequal by design.

To confirm: Record all ranks again: their GPUs should work about equally long, and wait little in collectives.

In other tools:
- DLProf: Imbalanced GPU Detector

Read on:
- [PyTorch: DistributedDataParallel, skewed processing speeds](https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import Saving, stated
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.fleet.job import RankAccount
from tb_dlprof_plugin.metrics.communication import is_collective, other_work
from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.intervals import covered, merge, union
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.profile_view import ProfileView, op_label

RULE = Rule(
    __name__,
    __doc__,
    any_framework=True,
    needs=(Need.GPU,),
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
    group="imbalance",
)

IMBALANCED_WORK_PERCENT = 80.0
"""Of the work of the busiest GPU, below which another one has much less. Ours: DLProf's Imbalanced GPU Detector looks
for "significantly less" and names no figure; the ranks of recorded trainings with equal batches differ by up to
18 %."""

_ROWS = 4
_SELDOM_EVEN = 0.6
"""Of the difference that is evened out at the least: sizes of samples leave a rest."""
_SLOWED = 0.5
"""Of the work parallel to collectives, the most that is saved once they do not wait."""
_SMALL_SHARES = 1.1


@dataclass(frozen=True, slots=True)
class _Work:
    """One GPU: its name in texts, the profile that shows it, and its work per step (ns) without collectives.

    ``overlapping_ns`` is the part of the work that ran during a collective.
    """

    name: str
    view: ProfileView
    work_ns: int
    overlapping_ns: int


def check(context: RuleContext) -> Finding | Silent:
    """Fires where a GPU works less than `IMBALANCED_WORK_PERCENT` of what the busiest one does."""
    ranks = len(context.ranks) > 1
    gpus = _of_ranks(context) if ranks else _of_process(context)
    if len(gpus) < 2:
        alone = (context.facts.world_size or 1) < 2 and not is_collective(context.view).any()
        return Silent("The run used one GPU." if alone else "No other rank was recorded.", applicable=False)
    least, *_, most = sorted(gpus, key=lambda gpu: gpu.work_ns)
    share = percent(least.work_ns, most.work_ns) or 0.0
    if share >= IMBALANCED_WORK_PERCENT:
        return Silent(
            f"{least.name} works {ms(least.work_ns)} of a step, {most.name} {ms(most.work_ns)}: {share:.0f} % of it."
        )
    waits = context.job.account if context.job is not None else []
    even = sum(gpu.work_ns for gpu in gpus) // len(gpus)
    estimate = _saving(context, gpus, waits) if ranks else None
    if estimate is not None and (percent(estimate.high_ns, context.step_ns) or 0.0) < (
        thresholds.WORTHWHILE_SAVING_PERCENT
    ):
        return Silent(
            f"{least.name} has {share:.0f} % of the work of {most.name}, but no rank waits for that: equal shares save "
            f"{ms(estimate.expected_ns)}."
        )
    waited = _waited(waits)
    return RULE.finding(
        title=f"{least.name} has {share:.0f} % of the work of {most.name} and waits for it",
        seen="Per step, without collectives, "
        + ", ".join(f"{gpu.name} works {ms(gpu.work_ns)}" for gpu in gpus)
        + f"; an equal share would be {ms(even)}. {waited}",
        readings=[
            Reading("Least work of a GPU over the most", share, "percent", IMBALANCED_WORK_PERCENT),
            *(Reading(f"Work of {gpu.name} per step", gpu.work_ns, "ns") for gpu in gpus),
        ],
        evidence=_differences(most, least),
        change=f"Move work from {most.name} to {least.name}. "
        + (
            "Where samples differ in size, sort them by size and deal them out in turns, so that all ranks get batches "
            "of about the same number of tokens or pixels."
            if ranks
            else "Layers or data on one GPU only (gathered outputs, the loss, an embedding) can go to the other."
        ),
        code=_CODE if ranks else "",
        saving=estimate or "How the work of one process could be divided among its GPUs does not show in the trace.",
    ).but(severity=None if estimate else "medium")


_CODE = """order = sorted(range(len(dataset)), key=lambda i: len(dataset[i]))
mine = order[rank::world_size]  # every rank gets samples of all sizes, neighbours in size at the same time
"""


def _of_ranks(context: RuleContext) -> list[_Work]:
    """Every recorded rank, over the steps that all recorded."""
    common = set.intersection(*(set(view.profile.iterations.number.tolist()) for view in context.ranks))
    chosen = context.profile.iterations.number[context.selection.first : context.selection.last + 1]
    # The selection is of one rank; where the others recorded other steps, all that are common count.
    wanted = common & set(chosen.tolist()) or common
    contended = _contended(context)
    found = []
    for view in context.ranks:
        iterations = view.profile.iterations
        rows = np.isin(iterations.number, sorted(wanted))
        if rows.any() and iterations.gpu_ids:
            time, overlapping = (
                np.mean([_busy(view, gpu, rows) for gpu in iterations.gpu_ids], axis=0).astype(int).tolist()
            )
            # Next to collectives that wait, kernels take longer: the rank that waits has no more work for that.
            time -= min(contended.get(view.profile.source.rank, 0), overlapping)
            found.append(_Work(f"rank {view.profile.source.rank}", view, time, overlapping))
    return found


def _contended(context: RuleContext) -> dict[int, int]:
    """By rank, what kernels of a step take longer because communication runs at the same time (ns), where known."""
    replayed = context.replayed_job
    found = {}
    for one in replayed.facts if replayed is not None else ():
        table = one.collectives
        steps = len(set(table.iteration.tolist()))
        if steps and (table.contended_ns >= 0).all():
            found[one.rank] = int(table.contended_ns.sum()) // steps
    return found


def _of_process(context: RuleContext) -> list[_Work]:
    iterations, selection = context.profile.iterations, context.selection
    rows = np.zeros(len(iterations), dtype=np.bool_)
    rows[selection.first : selection.last + 1] = True
    return [_Work(f"GPU {gpu}", context.view, *_busy(context.view, gpu, rows)) for gpu in iterations.gpu_ids]


def _busy(view: ProfileView, gpu: int, rows: Bools) -> tuple[int, int]:
    """Work per step of these iterations, and the part of it during collectives (ns)."""
    iterations, launches = view.profile.iterations, view.profile.launches
    count = max(int(rows.sum()), 1)
    start, stop = iterations.start_ns[rows], iterations.stop_ns[rows]
    work = other_work(view, gpu)
    mine = is_collective(view) & (launches.device == gpu)
    collective = union(launches.start_ns[mine], launches.start_ns[mine] + launches.duration_ns[mine])
    time, communication = covered(work, start, stop).sum(), covered(collective, start, stop).sum()
    either = covered(merge(work, collective), start, stop).sum()
    return int(time) // count, int(time + communication - either) // count


def _saving(context: RuleContext, gpus: list[_Work], waits: list[RankAccount]) -> Saving:
    step, most = context.simulation.estimate.ns, max(gpu.work_ns for gpu in gpus)
    cpu_low, cpu, cpu_high = context.simulation.host_ends_ns
    work, overlapping = sum(gpu.work_ns for gpu in gpus), sum(gpu.overlapping_ns for gpu in gpus)
    # With an equal share a step is shorter by as much as the busiest GPU's work is, but never than the CPU needs; and
    # no more can be won than the others wait.
    known = [1e6 * row.waiting_ms for row in waits if row.waiting_ms is not None]
    room = max(known, default=step)

    def saved(slowed: float, cpu_ns: float) -> float:
        even = (work - slowed * overlapping) / len(gpus)
        after = max(step * even / most, min(cpu_ns, step))
        return min(step - after, room)

    low = _SELDOM_EVEN * saved(0.0, cpu_high)
    expected = saved(_SLOWED / 2, cpu)
    high = min(_SMALL_SHARES * saved(_SLOWED, cpu_low), room)
    return stated(
        context,
        min(low, expected),
        expected,
        max(expected, high),
        f"With equal shares each GPU would work {ms(work / len(gpus))} a step instead of the "
        f"{ms(most)} of the busiest, and the step of {ms(step)} without the profiler would "
        f"be shorter in proportion. Less where the shares get {100 * _SELDOM_EVEN:.0f} % of the way. More because "
        f"{ms(overlapping)} of the work ran during collectives that waited, which share the multiprocessors "
        "with it, and read up to twice too long, and because small shares are less efficient (a tenth). The CPU needs "
        f"{ms(cpu)} of a step or less.",
    )


def _waited(waits: list[RankAccount]) -> str:
    times = ", ".join(f"rank {row.rank} {row.waiting_ms:.2f} ms" for row in waits if row.waiting_ms is not None)
    if not times:
        return ""
    return f"In collectives the ranks wait for later ones: {times} a step."


def _differences(most: _Work, least: _Work) -> list[EvidenceRow]:
    """The ops on which the busiest GPU spends most more than the one with least work."""
    if most.view is least.view:
        return []
    more, fewer = _op_times(most.view), _op_times(least.view)
    rows = sorted(((time - fewer.get(op, 0), op) for op, time in more.items()), reverse=True)[:_ROWS]
    whole = sum(max(difference, 0) for difference, _ in rows)
    return [
        EvidenceRow(
            f"{label}, more on {most.name} than on {least.name}", difference, percent(difference, whole), "ops", id
        )
        for difference, (label, id) in rows
        if difference > 0
    ]


def _op_times(view: ProfileView) -> dict[tuple[str, str], int]:
    """GPU time per step by op, collectives left out."""
    groups, launches = view.groups, view.profile.launches
    rows = ~is_collective(view) & view.selected_launches(view.selection()) & (view.launch_group >= 0)
    whole = sums(view.launch_group[rows], launches.duration_ns[rows], len(groups))
    time = whole // max(len(view.profile.iterations), 1)
    return {(op_label(view, group), groups.ids[group]): int(time[group]) for group in np.flatnonzero(time).tolist()}
