"""Copies run below the link's rate.

Copies of 1 MiB or more that reach less than half of what the link carries. Those of batches from pageable memory have a
rule of their own: most often results that `.cpu()` puts into new memory.

Why it matters: `.cpu()` allocates pageable memory. The operating system has to map it page by page, while the driver
copies through a buffer of its own. Into pinned memory that is used again the GPU writes by itself, at the link's rate.

What to change: Allocate a pinned buffer once and copy into it with `non_blocking=True`; wait for an event before the
CPU reads it. If the copies come from pinned memory already, look at the link: `nvidia-smi
--query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv` while the training runs.

When to leave it: The result is needed at once and is too large to be kept pinned.

To confirm: Record again: the copies should take as much less as given, and none should be pageable on the Kernels
page.

In other tools:
- nvprof / Visual Profiler: Low Memcpy Throughput

Read on:
- [CUDA C++ best practices: data transfer between host and device](https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#data-transfer-between-host-and-device)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import call_site_of, op_rows
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.copies.copies import (
    GIGABYTE,
    LARGE_COPY_BYTES,
    SLOW_COPY_SHARE,
    Fault,
    HostDeviceCopies,
    copies,
    link_bytes_per_second,
    new_times,
)
from tb_dlprof_plugin.advice.savings import saved, without_waits
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=(
        "LARGE_COPY_BYTES",
        "SLOW_COPY_SHARE",
        "PINNED_BYTES_PER_SECOND",
        "WORTHWHILE_SAVING_PERCENT",
        "REPLAYED_WAITS",
    ),
)

_CODE = """kept = torch.empty(shape, pin_memory=True)  # once
copied = torch.cuda.Event()

# in each step
kept.copy_(features.detach(), non_blocking=True)
copied.record()
...               # the rest of the step
copied.synchronize()
use(kept)
"""
_LINK = "nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv\n"


def check(context: RuleContext) -> Finding | Silent:
    """Fires where copies at the link's rate would shorten the step by a notable share."""
    link = link_bytes_per_second(context.view)
    if link is None:
        return Silent("What the link of this GPU carries is not known.", applicable=False)
    every = copies(context.view, context.selection)
    found = every.of(Fault.SLOW)
    if not len(found):
        large = int((every.bytes >= LARGE_COPY_BYTES).sum())
        return Silent(f"None of {large} large copies is slow for a reason of its own.")
    count = context.selection.count
    time = int(found.duration_ns.sum()) // count
    size = int(np.maximum(found.bytes, 0).sum()) // count
    rate = size / time * GIGABYTE if time else 0.0
    share = percent(time, context.step_ns) or 0.0
    seen = f"{size / 1e6:.1f} MB a step are copied at {rate / GIGABYTE:.1f} GB/s, in {ms(time)}"
    if share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}: {share:.1f} % of the step.")
    waits, faster = found.waits(context), new_times(context, found, link)
    estimate = saved(
        context,
        without_waits(context, waits, new_ns=faster),
        f"At the {link / GIGABYTE:.0f} GB/s that copies of pinned memory reach, and with a CPU that launches on "
        "meanwhile.",
        low=without_waits(context, np.zeros_like(waits), new_ns=faster),
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}; at the link's rate the step would be {estimate.percent:.1f} % shorter.")
    call_site = call_site_of(context, waits)
    return RULE.finding(
        title=f"{size / 1e6:.0f} MB a step are copied at {rate / GIGABYTE:.1f} of {link / GIGABYTE:.0f} GB/s",
        seen=f"{seen}, {_which(found)}. The step takes {ms(context.step_ns)}."
        + (f" The copies are made in {call_site}." if call_site else ""),
        readings=[
            Reading("Slow copies, per step", time, "ns"),
            Reading("Bytes per step", size, "bytes"),
            Reading("Rate over the link's", rate / link, "ratio", SLOW_COPY_SHARE),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=op_rows(context, found.launches(context)),
        change=_change(found, call_site),
        code=_CODE if found.pageable.any() else _LINK,
        saving=estimate,
    ).but(confidence="high" if context.step_was_timed else "medium")


def _which(found: HostDeviceCopies) -> str:
    directions = " and ".join(
        text
        for text, chosen in (("to the GPU", found.to_gpu), ("from the GPU", ~found.to_gpu))
        if (found.duration_ns * chosen).sum() > 0
    )
    return f"{directions}, {'pageable' if found.pageable.any() else 'pinned'} memory on the CPU's side"


def _change(found: HostDeviceCopies, call_site: str) -> str:
    where = f" The copies are made in {call_site}." if call_site else ""
    if found.pageable.any():
        return "Copy the results into a pinned buffer that is allocated once, without waiting." + where
    return "The memory is pinned; look whether the GPU's link runs at its full width and generation." + where
