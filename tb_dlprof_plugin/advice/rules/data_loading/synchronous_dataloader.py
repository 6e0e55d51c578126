"""The DataLoader has no worker processes.

A DataLoader with `num_workers=0` whose loading leaves the GPU idle (on a CPU run: takes time) for a notable share of
the step. Loading that overlaps with the GPU's work costs nothing, and the rule ignores it. Where there are workers
and they do not keep up, [dataloader_bound](dataloader_bound.md) fires instead.

Why it matters: Without workers loading and training alternate in one process: while a batch is loaded nothing is
launched. Worker processes load the next batches meanwhile.

What to change: Set `num_workers`, `persistent_workers=True` and `pin_memory=True`. The number given is what the time
per batch asks for. Where the hook measured the batches, a [simulation of this loader](../dataloader.md) gives it.

When to leave it: The machine has no core to spare.

To confirm: Record again: the Dataloader share on the Overview should fall and the step get shorter by as much.

In other tools:
- PyTorch: Synchronized DataLoader Pattern
- torch-tb-profiler: DataLoader recommendation
- DLProf: Dataloader Detector

Read on:
- [PyTorch: DataLoader](https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading)
- [PyTorch: performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#enable-asynchronous-data-loading-and-augmentation)
"""

from __future__ import annotations

import math

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.data_loading.dataloader import (
    ON_THE_CPU,
    by_workers,
    loading_ns,
    settings_raised,
    worker_processes,
)
from tb_dlprof_plugin.advice.savings import Saving, less_cpu, partly, saved
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change
from tb_dlprof_plugin.simulation.pauses import loading_times

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.PROCESS,),
    thresholds=("DATALOADER_SHARE_PERCENT", "WORTHWHILE_SAVING_PERCENT", "REPLAYED_WAITS"),
    facts=("workers",),
)

WORKER_OVERHEAD = 1.3
"""How much longer a sample takes in a worker process: it is handed over through shared memory. Ours: an assumption."""

_USUAL_WORKERS = 4


def check(context: RuleContext) -> Finding | Silent:
    """Fires where loading in the training process leaves the GPU idle for a notable share of the step."""
    waiting = context.steps.category_ns["dataloader"]
    workers = worker_processes(context)
    loading = loading_ns(context)
    if waiting is None or not loading:
        return Silent("No DataLoader was recorded.", applicable=False)
    if workers is None:
        return Silent("Whether the DataLoader has worker processes was not recorded.", applicable=False)
    if workers:
        return Silent(f"The DataLoader has {workers} worker processes.")
    time = waiting // context.selection.count
    share = percent(time, context.step_ns) or 0.0
    subject = "with the GPU idle" if context.profile.has_gpu else "of the CPU run"
    recorded = ms(context.recorded_step_ns)
    seen = f"{ms(loading)} of each {recorded} recorded step are spent loading in the training process"
    if share < thresholds.DATALOADER_SHARE_PERCENT:
        return Silent(f"{seen}: only {share:.1f} % of the step {subject}.")
    estimate, count = _estimate(context, loading)
    return RULE.finding(
        title=f"The training process loads its batches itself, {ms(loading, 1)} a step",
        seen=f"{seen}, {ms(time)} ({share:.0f} %) {subject}: num_workers=0.",
        readings=[
            Reading("Share of the step", share, "percent", thresholds.DATALOADER_SHARE_PERCENT),
            Reading("Waiting per step", time, "ns"),
            Reading("Loading per step", loading, "ns"),
            Reading("Worker processes", workers, "count"),
        ],
        evidence=[EvidenceRow("Dataloader", time, share, "overview", "dataloader")],
        change=f"Load in {count} worker processes, so that the next batches are made while this one trains.",
        code=_code(context, count),
        saving=estimate,
    ).but(confidence="high" if context.step_was_timed and context.profile.has_gpu else "medium")


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Worker processes, and what else was switched on with them."""
    before, after = base.profile.facts.dataloader, candidate.profile.facts.dataloader
    if before is None or after is None or before.num_workers != 0 or not after.num_workers:
        return ""
    return settings_raised(base, candidate)


def _estimate(context: RuleContext, loading_ns: int) -> tuple[Saving | str, int]:
    """The saving, or why it is not known, and how many workers it takes."""
    cores = context.profile.system.cpu_count
    spare = max(1, cores - 1) if cores else None
    by_batches = by_workers(context)
    if by_batches is not None:
        return by_batches[0], by_batches[1].best.workers
    if not context.profile.has_gpu:
        return ON_THE_CPU, min(_USUAL_WORKERS, cores or _USUAL_WORKERS)
    loading = loading_times(context.view, context.view.selection())
    best = saved(context, Change(cpu=loading, keep_cpu=0.0), "Without any loading in the training process.")
    step_ns = context.step_ns
    after_ns = max(step_ns - best.expected_ns, 1)
    work_ns = loading_ns * WORKER_OVERHEAD
    count = max(1, math.ceil(work_ns / after_ns) + 1)
    if spare is not None:
        count = min(count, spare)
    expected = max(0, step_ns - max(after_ns, round(work_ns / count)))
    text = (
        f"{best.derivation} {count} workers deliver a batch every {ms(work_ns / count)}, if a worker takes "
        f"{WORKER_OVERHEAD:g} times as long for a batch as the training process."
    )
    return partly(
        context, less_cpu(loading), min(best.low_ns, expected), expected, max(best.high_ns, expected), text
    ), count


def _code(context: RuleContext, count: int) -> str:
    pin = "\n    pin_memory=True," if context.profile.has_gpu else ""
    return (
        "loader = torch.utils.data.DataLoader(\n    dataset,\n    batch_size=...,\n"
        f"    num_workers={count},{pin}\n    persistent_workers=True,\n)\n"
    )
