"""DDP's buckets are too large.

DistributedDataParallel with one bucket, or with one that holds most of the gradients, whose all-reduce nothing hides.

Why it matters: A bucket is exchanged when its last gradient is ready. One bucket is ready when the backward pass is
over, so that no computation is left to hide its exchange.

What to change: Leave `bucket_cap_mb` at 25, or set it so that there are ten buckets or more.

When to leave it: The backward pass is much shorter than the exchange. Or the link is so slow at small messages that one
large one is faster: compare both.

To confirm: Record again: several all-reduces in the backward pass, and less time with nothing else running.

Read on:
- [Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training](https://arxiv.org/abs/2006.15704)
"""

from __future__ import annotations

import math

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.rule import Finding, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import Saving, stated
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.fleet.answers.gradient_buckets import DEFAULT_BYTES, bucket_row
from tb_dlprof_plugin.metrics.communication import collectives, is_collective
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.parallel_settings import DDP, parallel_settings
from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    thresholds=("WORTHWHILE_SAVING_PERCENT", "BUCKETED_SHARE"),
    group="exposed_exchange",
)

_LARGEST_SHARE = 0.5
"""Of all gradients, in one bucket: with two equal ones half of the exchange can be hidden."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where a bucket holds half of the gradients or more and smaller ones save `WORTHWHILE_SAVING_PERCENT`."""
    settings = context.parallel
    if settings.wrapper != DDP or not context.profile.has_gpu:
        return Silent("No DistributedDataParallel on a GPU.", applicable=False)
    found = collectives(context.view, context.selection)
    sizes = found.bytes[found.bytes > 0]
    if not len(sizes):
        return Silent("How much the collectives exchange was not recorded.", applicable=False)
    cap = None if settings.ddp is None else settings.ddp.bucket_bytes
    steps = context.selection.count
    largest, per_step = int(sizes.max()), len(sizes) / steps
    large = found.bytes >= largest
    # Of one exchange: an accumulation without no_sync has several in a step.
    times = max(round(int(large.sum()) / steps), 1)
    share = largest * times * steps / int(sizes.sum())
    if share < _LARGEST_SHARE or largest <= DEFAULT_BYTES:
        return Silent(f"The largest of {per_step:.0f} exchanges a step has {100 * share:.0f} % of the bytes.")
    exposed = int(found.exposed_ns[large].sum()) / steps
    own = None if context.job is None else _own(context)
    backward = float(context.per_step(context.in_role(Role.BACKWARD)))
    estimate = _replayed(context) or _hidden(
        context, exposed if own is None else min(exposed, own * 1e6), backward, largest
    )
    if (percent(estimate.high_ns, context.step_ns) or 0.0) < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"One bucket has {100 * share:.0f} % of the gradients, and takes {ms(exposed)} a step.")
    return RULE.finding(
        title=f"One bucket has {100 * share:.0f} % of the gradients: nothing hides its exchange",
        seen=f"{largest / 2**20:,.0f} MiB of {int(sizes.sum()) / steps / 2**20:,.0f} MiB of gradients are exchanged in "
        f"one call, {ms(exposed)} a step with nothing else running."
        + (f" bucket_cap_mb is {cap >> 20}." if cap else ""),
        readings=[
            Reading("Largest bucket of all gradients", 100 * share, "percent", 100 * _LARGEST_SHARE),
            Reading("Its exchange with nothing else running", exposed, "ns"),
            Reading("Backward pass on the GPU", backward, "ns"),
        ],
        evidence=op_rows(context, is_collective(context.view) & context.view.selected_launches(context.selection)),
        change="Leave bucket_cap_mb out, or set it to 25: DDP exchanges a bucket while the gradients of earlier layers "
        "are computed.",
        code="model = DistributedDataParallel(model)  # bucket_cap_mb=25\n",
        saving=estimate,
    )


def _replayed(context: RuleContext) -> Saving | None:
    """From the job replayed with buckets of 25 MB; None where it cannot be."""
    replayed = context.replayed_job
    row = None if replayed is None else bucket_row(replayed.scenarios, DEFAULT_BYTES)
    step = None if replayed is None else replayed.job.step
    if row is None or step is None:
        return None
    low, expected, high = (max(step.ms - ms, 0.0) * 1e6 for ms in (row.high_ms, row.step_ms, row.low_ms))
    return stated(
        context,
        low,
        expected,
        high,
        f"The step of all ranks replayed with {row.change}: {row.step_ms:.2f} instead of {step.ms:.2f} ms. Kernels "
        "next to an exchange are slower, in the interval by little or by much.",
    )


def _hidden(context: RuleContext, transfer: float, backward: float, largest: int) -> Saving:
    """From one rank alone: what its backward pass could hide of the exchange (ns per step)."""
    buckets = math.ceil(largest / DEFAULT_BYTES)
    hideable = min(transfer, backward) * (1 - 1 / buckets)
    kept = thresholds.BUCKETED_SHARE
    return stated(
        context,
        hideable * (1 - kept.high),
        hideable * (1 - kept.expected),
        hideable * (1 - kept.low),
        f"With buckets of 25 MB {buckets - 1} of {buckets} would be exchanged while the backward pass "
        f"({ms(backward)}) still runs: {ms(hideable)}. An exchange in parallel with kernels slows "
        f"them down and takes longer itself: {100 * kept.low:.0f} to {100 * kept.high:.0f} % of it stay, expected "
        f"{100 * kept.expected:.0f} %.",
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """The buckets became smaller."""
    before, after = parallel_settings(base).ddp, parallel_settings(candidate).ddp
    if before is None or after is None or not before.bucket_bytes or not after.bucket_bytes:
        return ""
    smaller = after.bucket_bytes < before.bucket_bytes
    return f"buckets of {after.bucket_bytes >> 20} instead of {before.bucket_bytes >> 20} MiB" if smaller else ""


def _own(context: RuleContext) -> float | None:
    """Exposed time in which data moves (ms per step), without waiting for other ranks; None where not known."""
    assert context.job is not None
    rank = context.profile.source.rank
    row = next((row for row in context.job.account if row.rank == rank), None)
    return None if row is None or row.waiting_ms is None else row.transfer_ms
