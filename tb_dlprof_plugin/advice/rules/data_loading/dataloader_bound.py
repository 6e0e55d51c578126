"""The step waits for the DataLoader.

Time in which the training thread waits in the DataLoader while the GPU is idle (on a CPU run: all of that time).
Where the DataLoader has no worker processes, that is the cause, and
[synchronous_dataloader](synchronous_dataloader.md) fires instead; where it is the start of epochs,
[worker_restart](worker_restart.md).

Why it matters: A GPU that waits for data computes nothing. Loading that overlaps with training costs nothing.

What to change: Load in more worker processes, or make each sample cheaper. Where the hook measured the batches, a
[simulation of this loader](../dataloader.md) gives the number and the saving.

When to leave it: The first batch of an epoch was recorded, and epochs are long.

To confirm: Record again: the Dataloader share on the Overview should fall and the step get shorter by as much.

In other tools:
- DLProf: Dataloader Detector
- torch-tb-profiler: DataLoader recommendation

Read on:
- [PyTorch: DataLoader](https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading)
- [PyTorch: performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.frameworks import JAX_ASYNC, JAX_PIPELINE, TF_DATA, FrameworkRemedy
from tb_dlprof_plugin.advice.loader_hints import part_text, workers_text
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.data_loading.dataloader import (
    ON_THE_CPU,
    by_workers,
    epoch_starts,
    settings_raised,
    worker_processes,
)
from tb_dlprof_plugin.advice.savings import (
    Saving,
    less_cpu,
    partly,
)
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.loader.forecast import loader_forecast
from tb_dlprof_plugin.metrics.loader.parts import slow_part
from tb_dlprof_plugin.model.frameworks import JAX, TENSORFLOW
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change
from tb_dlprof_plugin.simulation.pauses import loading_times

_TF_PIPELINE = """dataset = (
    dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    .batch(batch_size)
    .prefetch(tf.data.AUTOTUNE)
)
"""
_REMEDIES = {
    TENSORFLOW: FrameworkRemedy(
        "Load in parallel and ahead of the step: parallel map, cache what fits into memory, and prefetch last.",
        _TF_PIPELINE,
        (TF_DATA,),
        "The step waits for the input pipeline",
    ),
    JAX: FrameworkRemedy(
        "Load ahead of the step, in another thread or process, and copy by jax.device_put.",
        JAX_PIPELINE,
        (JAX_ASYNC,),
        "The step waits for the input pipeline",
    ),
}
"""In the words of other frameworks and recorders."""

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.INPUT_PIPELINE,),
    thresholds=("DATALOADER_SHARE_PERCENT", "STEP_NOISE"),
    facts=("workers",),
    remedies=_REMEDIES,
)

WAIT_LEFT_WITH_MORE_WORKERS = 0.5
"""Share of the time per batch that twice as many workers leave, where they share nothing."""

_WORKERS = 4


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the training thread waits in the DataLoader, with the GPU idle, for a notable share of the step."""
    waiting = context.steps.category_ns["dataloader"]
    if waiting is None:
        return Silent("How long the step waits for data was not recorded.", applicable=False)
    time = waiting // context.selection.count
    share = percent(time, context.step_ns) or 0.0
    waiting_for_data = context.words.waiting_for_data
    subject = "with the GPU idle" if context.profile.has_gpu else "of the CPU run"
    if share < thresholds.DATALOADER_SHARE_PERCENT:
        return Silent(f"{share:.1f} % of the step is spent {waiting_for_data} {subject}.")
    workers = worker_processes(context)
    if workers == 0:
        return Silent(
            f"{ms(time)} of the step are spent {waiting_for_data} {subject}, which has no worker "
            "processes: see synchronous_dataloader."
        )
    starts = epoch_starts(context)
    at_starts = int((starts.waiting_ns + starts.ending_ns).sum()) // context.selection.count
    rest = percent(max(0, time - at_starts), context.step_ns) or 0.0
    if rest < thresholds.DATALOADER_SHARE_PERCENT:
        return Silent(
            f"{share:.1f} % of the step are spent {waiting_for_data} {subject}, but all except {rest:.1f} % "
            "where an epoch begins and worker processes start: see worker_restart."
        )
    by_batches = by_workers(context) if workers else None
    estimate = by_batches[0] if by_batches else _estimate(context, time, workers)
    count = by_batches[1].best.workers if by_batches else None
    settings = "not recorded" if workers is None else f"num_workers={workers}"
    settings = "" if workers is None and not context.of_pytorch else f" DataLoader settings: {settings}."
    return RULE.finding(
        title=f"The step waits {share:.0f} % of its time for {context.words.loader}",
        seen=f"{ms(time)} of each {ms(context.step_ns)} step are spent {waiting_for_data} {subject}.{settings}",
        readings=[
            Reading("Share of the step", share, "percent", thresholds.DATALOADER_SHARE_PERCENT),
            Reading("Waiting per step", time, "ns"),
            Reading("Worker processes", workers, "count"),
        ],
        evidence=[EvidenceRow("Dataloader", time, share, "overview", "dataloader")],
        change=_change(context),
        code=_code(context, workers, count),
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """The settings of the DataLoader that were raised or switched on."""
    return settings_raised(base, candidate)


def _estimate(context: RuleContext, waiting_ns: int, workers: int | None) -> Saving | str:
    """Between a fifth of the waiting and all that loading costs the step; or why it is not known."""
    if not context.profile.has_gpu:
        return ON_THE_CPU
    loading = loading_times(context.view, context.view.selection())
    cores = context.profile.system.cpu_count
    spread = workers is None or not cores or workers < cores - 1
    more = "twice as many workers take half the time for a batch" if spread else "the workers have all cores already"
    known = context.simulation
    step_ns = known.estimate.ns
    # Waiting for workers is what is left of their time per batch: it does not show how fast the CPU launches.
    least, middle = (known.usual([Change(cpu=loading, keep_cpu=0.0)], end).ns for end in ("low", "expected"))
    paced = step_ns * (WAIT_LEFT_WITH_MORE_WORKERS if spread else 1.0)
    low = min(0.2 * waiting_ns, max(0.0, step_ns - middle))
    expected = max(low, step_ns - max(paced, middle))
    high = max(expected, (1 + thresholds.STEP_NOISE) * step_ns - least)
    text = (
        f"The recorded launches, replayed as without the profiler and without waiting for a batch, take "
        f"{ms(middle)} a step, {ms(least)} at least, of {ms(step_ns)}: nothing that loading "
        f"does can save more. Expected: {more}, until something else sets the pace. At least a fifth of the "
        f"{ms(waiting_ns)} goes in which the GPU waits."
    )
    return partly(context, less_cpu(loading), low, expected, high, text)


def _change(context: RuleContext) -> str:
    loader = context.facts.dataloader
    forecast, part = loader_forecast(context.view), slow_part(context.view)
    if part is not None:
        workers = "" if forecast is None else f"{workers_text(context.view, forecast)} "
        return workers + part_text(context.view, part)
    if loader is not None and loader.persistent_workers is False:
        return "Raise num_workers, keep the workers between epochs, and move work out of the dataset's __getitem__."
    return "Raise num_workers up to the number of CPU cores, or move work out of the dataset's __getitem__."


def _code(context: RuleContext, workers: int | None, count: int | None) -> str:
    cores = context.profile.system.cpu_count or _WORKERS
    count = count or min(cores, _WORKERS if not workers else workers * 2)
    pin = "\n    pin_memory=True," if context.profile.has_gpu else ""
    return (
        "loader = torch.utils.data.DataLoader(\n    dataset,\n    batch_size=...,\n"
        f"    num_workers={count},{pin}\n    persistent_workers=True,\n    prefetch_factor=4,\n)\n"
    )
