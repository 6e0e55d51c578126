"""Batches are copied from pageable memory.

Copies to the GPU, of 64 KiB or more, from memory that is not pinned. They take a notable share of the step.

Why it matters: The GPU reads pinned memory itself. Of other memory the driver first copies every byte to a pinned
buffer, with the CPU: that is several times slower, and the CPU waits meanwhile even with (`non_blocking=True`).

What to change: Let the DataLoader pin its batches (`pin_memory=True`) and copy them with `non_blocking=True`.

When to leave it: The machine is short of memory: pinned memory cannot be swapped out.

To confirm: Record again: the copies should be called "Pinned -> Device" on the Kernels page and take as much less as
given.

In other tools:
- Nsight Systems: CUDA Async Memcpy with Pageable Memory
- nvprof / Visual Profiler: Low Memcpy Throughput

Read on:
- [PyTorch: memory pinning](https://docs.pytorch.org/docs/stable/data.html#memory-pinning)
- [PyTorch: pin_memory() and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import frameworks, thresholds
from tb_dlprof_plugin.advice.evidence import call_site_of, op_rows
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.copies.copies import GIGABYTE, Fault, copies, link_bytes_per_second, new_times
from tb_dlprof_plugin.advice.savings import saved, without_waits
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("SMALL_COPY_BYTES", "PINNED_BYTES_PER_SECOND", "WORTHWHILE_SAVING_PERCENT", "REPLAYED_WAITS"),
    remedies=frameworks.COPIES,
)

_CODE = """loader = torch.utils.data.DataLoader(dataset, ..., pin_memory=True)
for inputs, targets in loader:
    inputs = inputs.to(device, non_blocking=True)
    targets = targets.to(device, non_blocking=True)
"""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where pinned memory would shorten the step by a notable share."""
    found = copies(context.view, context.selection).of(Fault.PAGEABLE)
    if not len(found):
        return Silent("No large copy to the GPU came from pageable memory.")
    count = context.selection.count
    time = int(found.duration_ns.sum()) // count
    size = int(np.maximum(found.bytes, 0).sum()) // count
    share = percent(time, context.step_ns) or 0.0
    seen = f"{size / 1e6:.1f} MB a step are copied to the GPU from pageable memory, in {ms(time)}"
    if share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}: {share:.1f} % of the step.")
    link = link_bytes_per_second(context.view)
    if link is None:
        return Silent("How fast pinned memory would be is not known for this GPU.", applicable=False)
    waits = found.waits(context)
    rate = size / time * GIGABYTE if time else 0.0
    faster = new_times(context, found, link)
    estimate = saved(
        context,
        without_waits(context, waits, new_ns=faster),
        f"From pinned memory the copies run at {link / GIGABYTE:.0f} instead of {rate / GIGABYTE:.1f} GB/s, and the "
        "CPU launches on meanwhile.",
        low=without_waits(context, np.zeros_like(waits), new_ns=faster),
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}; from pinned memory the step would be {estimate.percent:.1f} % shorter.")
    loader = context.facts.dataloader
    pinned = (
        "" if loader is None or loader.pin_memory is None else f" The DataLoader has pin_memory={loader.pin_memory}."
    )
    call_site = call_site_of(context, waits)
    return RULE.finding(
        title=f"{size / 1e6:.0f} MB a step are copied from pageable memory at {rate / GIGABYTE:.1f} GB/s",
        seen=f"{seen}: {rate / GIGABYTE:.1f} GB/s, where copies of pinned memory reach {link / GIGABYTE:.0f}. The step "
        f"takes {ms(context.step_ns)}.{pinned}" + (f" The copies are made in {call_site}." if call_site else ""),
        readings=[
            Reading("Copies from pageable memory, per step", time, "ns"),
            Reading("Share of the step", share, "percent"),
            Reading("Bytes per step", size, "bytes"),
            Reading("Rate over that of pinned memory", rate / link, "ratio"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=op_rows(context, found.launches(context)),
        change="Pin the batches: pin_memory=True for the DataLoader, or tensor.pin_memory() once for tensors that are "
        "copied again and again; and give .to(device) non_blocking=True."
        + (f" It is called in {call_site}." if call_site else ""),
        code=_CODE,
        saving=estimate,
    ).but(confidence="high" if context.step_was_timed else "medium")


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Memory that is pinned now."""
    before, after = base.profile.facts.dataloader, candidate.profile.facts.dataloader
    if before is not None and after is not None and before.pin_memory is False and after.pin_memory:
        return "pin_memory on"
    had, has = (len(copies(view, view.selection()).of(Fault.PAGEABLE)) for view in (base, candidate))
    return "copies from pinned memory" if had and not has else ""
