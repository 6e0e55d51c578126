"""Gradients are copied out of DDP's buckets.

Copies from the buckets of DistributedDataParallel to the gradients after each all-reduce.

Why it matters: Each copy reads and writes all gradients once more, and takes a launch for each parameter. Gradients
that are views of the buckets need neither, and no memory of their own.

What to change: Pass `gradient_as_bucket_view=True` to DistributedDataParallel.

When to leave it: The training calls `detach_()` on gradients or replaces `.grad`, which views do not allow.

To confirm: Record again: no call of copy_bucket_to_grad, and a shorter step.

Read on:
- [PyTorch: DistributedDataParallel, gradient_as_bucket_view](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import change, saved
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.parallel_settings import parallel_settings
from tb_dlprof_plugin.model.tree import nearest
from tb_dlprof_plugin.names.parallel_ranges import BUCKET_COPY
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
    confidence="high",
)


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the copies take `WORTHWHILE_SAVING_PERCENT` of the step."""
    ops, calls, strings = context.profile.ops, context.profile.calls, context.profile.strings
    named = np.array([BUCKET_COPY in strings[name] for name in ops.name.tolist()], dtype=np.bool_)
    copies = named[calls.op] & context.view.selected_calls(context.selection)
    if not copies.any():
        return Silent("No gradient is copied out of a bucket.")
    inside = nearest(copies, context.view.call_parent) >= 0
    call = context.profile.launches.call
    launches = (call >= 0) & inside[np.maximum(call, 0)] & context.view.selected_launches(context.selection)
    gpu_ns = context.per_step(launches)
    count = int(copies.sum()) // context.selection.count
    estimate = saved(
        context,
        change(context, gone=copies),
        f"The {count} copies of a step and their {ms(gpu_ns)} of GPU time go.",
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"Copying gradients out of buckets takes {ms(gpu_ns)} of GPU time a step.")
    return RULE.finding(
        title=f"Gradients are copied out of DDP's buckets: {ms(gpu_ns)} of each step",
        seen=f"After their all-reduce {count} gradients of a step are copied from the buckets to their own memory, "
        f"{ms(gpu_ns)} of GPU time.",
        readings=[Reading("Copies per step", count, "count", 0), Reading("Their GPU time per step", gpu_ns, "ns")],
        evidence=op_rows(context, launches),
        change="Make gradients views of the buckets: gradient_as_bucket_view=True. The copies go, and the memory of "
        "one set of gradients.",
        code="model = DistributedDataParallel(model, gradient_as_bucket_view=True)\n",
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Gradients became views of the buckets."""
    before, after = parallel_settings(base).ddp, parallel_settings(candidate).ddp
    applied = before is not None and after is not None and before.gradient_as_bucket_view is False
    return "gradient_as_bucket_view on" if applied and after is not None and after.gradient_as_bucket_view else ""
