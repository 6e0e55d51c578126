"""Many small copies.

Twenty or more copies of less than 64 KiB between CPU and GPU in each step.

Why it matters: A small copy takes a microsecond, and its call on the CPU ten times as long. PyTorch's part of it takes
as much again. Hundreds of them make the CPU late with everything else. And where the CPU waits for each, the GPU idles.

What to change: Put the parts together first and copy them at once: `torch.cat` or `torch.stack` in the DataLoader's
`collate_fn`, `split` on the GPU.

When to leave it: The parts become known one by one.

To confirm: Record again: a few copies should be left on the Kernels page, and the CPU's time for .to() be gone.

In other tools:
- nvprof / Visual Profiler: Inefficient Memcpy Size

Read on:
- [CUDA C++ best practices: data transfer between host and device](https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#data-transfer-between-host-and-device)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import call_site_of, op_rows
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.copies.copies import SMALL_COPIES_PER_STEP, SMALL_COPY_BYTES, Fault, copies
from tb_dlprof_plugin.advice.savings import saved
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.intervals import union
from tb_dlprof_plugin.simulation.change import without_calls

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("SMALL_COPY_BYTES", "SMALL_COPIES_PER_STEP", "WORTHWHILE_SAVING_PERCENT", "REPLAYED_WAITS"),
)

_TO_GPU = """def collate(samples):
    return torch.cat(samples), [len(sample) for sample in samples]

loader = torch.utils.data.DataLoader(dataset, ..., collate_fn=collate, pin_memory=True)
for joined, lengths in loader:
    samples = joined.to(device, non_blocking=True).split(lengths)  # one copy
"""
_FROM_GPU = """values = torch.stack(values).cpu()  # one copy instead of one for each
"""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where copying the parts at once would shorten the step by a notable share."""
    every = copies(context.view, context.selection)
    found = every.of(Fault.SMALL)
    count = context.selection.count
    if not len(found):
        small = int(((every.bytes >= 0) & (every.bytes < SMALL_COPY_BYTES)).sum())
        return Silent(f"{small / count:.3g} small copies a step are no more than usual.")
    tops = found.tops(context)
    calls = context.profile.calls
    start, stop = union(calls.start_ns[tops], calls.start_ns[tops] + calls.duration_ns[tops])
    time = int((stop - start).sum()) // count
    size = int(np.median(found.bytes))
    per_step = len(found) / count
    share = percent(time, context.step_ns) or 0.0
    seen = f"{per_step:.0f} copies a step, {size / 1e3:.1f} kB at the median, take {ms(time)} of the CPU"
    if share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}: {share:.1f} % of the step.")
    estimate = saved(
        context,
        without_calls(context.view, _all_but_one(context, tops)),
        "One copy is left of those of each step. Putting the parts together is not counted, and a matter of the "
        "DataLoader's workers.",
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}; one copy instead would make the step {estimate.percent:.1f} % shorter.")
    call_site = call_site_of(context, found.waits(context) | _calls(context, found.call))
    to_gpu = bool(found.to_gpu.mean() >= 0.5)
    return RULE.finding(
        title=f"{per_step:.0f} small copies a step take {ms(time, 1)} of the CPU",
        seen=f"{seen}. The step takes {ms(context.step_ns)}."
        + (f" Most of the copies are made in {call_site}." if call_site else ""),
        readings=[
            Reading("Small copies per step", per_step, "count", SMALL_COPIES_PER_STEP),
            Reading("Bytes of one, at the median", size, "bytes", SMALL_COPY_BYTES),
            Reading("CPU time for them, per step", time, "ns"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=op_rows(context, found.launches(context)),
        change=(
            "Join the tensors on the CPU, copy once and part the copy on the GPU."
            if to_gpu
            else "Join the tensors on the GPU and copy once."
        )
        + (f" The copies are made in {call_site}." if call_site else ""),
        code=_TO_GPU if to_gpu else _FROM_GPU,
        saving=estimate,
    ).but(confidence="high" if context.step_was_timed else "medium")


def _all_but_one(context: RuleContext, tops: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """Without the first of each iteration, which represents the one remaining copy."""
    rows = np.flatnonzero(tops)
    _, first = np.unique(context.view.call_iteration[rows], return_index=True)
    gone = tops.copy()
    gone[rows[first]] = False
    return gone


def _calls(context: RuleContext, rows: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    mask = np.zeros(len(context.profile.calls), dtype=np.bool_)
    mask[rows] = True
    return mask
