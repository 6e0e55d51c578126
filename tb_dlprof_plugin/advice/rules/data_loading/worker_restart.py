"""Worker processes are restarted for each epoch.

The start of an epoch in the recording, where `persistent_workers` is off. The GPU is idle between the end of one
DataLoader iterator and the first batch of the next.

Why it matters: At the end of an epoch the workers are stopped. For the next they are started from nothing, or forked. A
fork copies the page tables of the training process. Only then does the first batch begin to load. Over a long epoch
that is nothing; over one of a few steps it can be most of the time.

What to change: Set `persistent_workers=True`. Or make one long epoch of many short ones, with a sampler that repeats.

When to leave it: Epochs are long. The price is given per step of the whole epoch where the length is known.

To confirm: Record an epoch's start again: no time should lie between the end of one epoch and the first batch of the
next.

Read on:
- [PyTorch: DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.data_loading.dataloader import epoch_starts, worker_processes
from tb_dlprof_plugin.advice.savings import stated
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    all_iterations=True,
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
    facts=("workers",),
)

WORKERS_KEPT = SpeedupRange(0.6, 0.9, 1.0)
"""Share of the time for stopping and starting worker processes that keeping them saves. Two workers took 26 ms, and
less than 1 ms once they were kept (tests/data/planted/worker_restart)."""

FIRST_BATCH_SOONER = 0.5
"""Share of the wait for an epoch's first batch that goes with the workers' start. Samples that cost nothing: all of
16 ms went (as above); samples that cost much: nothing, because they are loaded all the same."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where starting the workers takes a notable share of the time per step."""
    loader = context.facts.dataloader
    workers = worker_processes(context)
    if workers == 0:
        return Silent("The DataLoader has no worker processes.", applicable=False)
    if loader is not None and loader.persistent_workers:
        return Silent("persistent_workers is on.")
    starts = epoch_starts(context)
    if not len(starts):
        return Silent("No epoch began in the recording.", applicable=False)
    persistent = None if loader is None else loader.persistent_workers
    if persistent is None and len(starts) < 2:
        return Silent(
            "One DataLoader iterator was made in the recording; whether its workers are kept was not recorded.",
            applicable=False,
        )
    each = int((starts.starting_ns + starts.ending_ns).mean())
    waiting = int(starts.waiting_ns.mean())
    batches = None if loader is None else loader.batches
    if batches:
        steps, length = float(batches), f"an epoch has {batches} batches"
    else:
        steps = context.selection.count / len(starts)
        length = f"{len(starts)} of {context.selection.count} recorded steps begin an epoch"
    per_step = each / steps
    share = percent(per_step, context.recorded_step_ns) or 0.0
    seen = f"At the start of an epoch the GPU is idle for {ms(each)} while workers stop and start; {length}"
    if share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}: {share:.1f} % of the time per step.")
    kept = WORKERS_KEPT
    estimate = stated(
        context,
        per_step * kept.low,
        per_step * kept.expected + FIRST_BATCH_SOONER * waiting / steps,
        per_step + waiting / steps,
        f"{ms(each)} of each epoch go, of which {100 * kept.low:.0f} to 100 % (expected "
        f"{100 * kept.expected:.0f} %) are saved: workers that are kept only reset their iterators. Of the "
        f"{ms(waiting)} that the first batch keeps the GPU waiting as much as all may be the new workers' "
        f"({100 * FIRST_BATCH_SOONER:.0f} % expected), or none. {length[0].upper()}{length[1:]}.",
    )
    settings = "not recorded" if persistent is None else f"persistent_workers={persistent}"
    return RULE.finding(
        title=f"Each epoch begins with {ms(each, 0)} in which worker processes are started",
        seen=f"{seen}. DataLoader settings: num_workers={'not recorded' if workers is None else workers}, {settings}.",
        readings=[
            Reading("Stopping and starting workers, per epoch", each, "ns"),
            Reading("Waiting for the first batch, per epoch", waiting, "ns"),
            Reading("Epochs begun in the recording", len(starts), "count"),
            Reading("Batches per epoch", batches, "count"),
            Reading("Share of the time per step", share, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=[EvidenceRow("Python", round(per_step), share, "overview", "other")],
        change="Keep the workers from epoch to epoch.",
        code="loader = torch.utils.data.DataLoader(\n    dataset,\n    batch_size=...,\n"
        f"    num_workers={workers or 4},\n    persistent_workers=True,\n)\n",
        saving=estimate,
    ).but(confidence="high" if batches and persistent is False else "medium")


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """The setting."""
    before, after = base.profile.facts.dataloader, candidate.profile.facts.dataloader
    if before is None or after is None:
        return ""
    return "persistent_workers on" if before.persistent_workers is False and after.persistent_workers else ""
