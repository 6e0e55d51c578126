"""Steps allocate GPU memory again and again.

Calls that allocate or free GPU memory, or pinned memory of the host, in most of the recorded steps.

Why it matters: PyTorch keeps freed memory for the next request, so that a training allocates in its first steps only. A
call of the driver's takes up to a millisecond. Freeing also waits until the GPU has done all of its work.

What to change: Take `torch.cuda.empty_cache()` out of the training loop. If PyTorch frees its cache because memory
runs out, use less memory, or set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`. Allocate pinned buffers once.

When to leave it: Another process needs the memory between the steps.

To confirm: Record again: the steps should hold no cudaMalloc and no cudaFree.

In other tools:
- nvprof / Visual Profiler: API time in cudaMalloc and cudaFree

Read on:
- [PyTorch: memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import call_rows, of_recorded_step
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import Saving, stated
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.idle_gaps import idle_gaps
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.intervals import covered, union
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.names.cuda_calls import CudaCall
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.CUDA_CALLS, Need.GPU),
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
    confidence="high",
)

ALLOCATION_SHARE_PERCENT = 2.0
"""Of the recorded steps in calls that allocate or free GPU or pinned memory. Ours: nvprof and the Visual Profiler list
the time in API calls without a threshold; a training that has found its memory makes no such call."""

_ALLOCATES = (
    *(CudaCall.MALLOC, CudaCall.MALLOC_ASYNC, CudaCall.HOST_MALLOC),
    *(CudaCall.MEMORY_CREATE, CudaCall.MEMORY_MAP, CudaCall.MEMORY_SET_ACCESS),
)
_FREES = (
    *(CudaCall.FREE, CudaCall.FREE_ASYNC, CudaCall.HOST_FREE),
    *(CudaCall.MEMORY_UNMAP, CudaCall.MEMORY_RELEASE),
)
_PINNED = (CudaCall.HOST_MALLOC, CudaCall.HOST_FREE)
_NEARLY_FULL = 0.9
_CERTAIN = 0.7
"""Of the GPU's idle time in such calls: the rest may be launching that would have been late all the same. Ours."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where most steps hold such calls, they take a notable share, and the GPU idles for them."""
    view, calls, count = context.view, context.profile.calls, context.selection.count
    selected = view.selected_calls(context.selection)
    allocates = view.is_cuda_call(*_ALLOCATES) & selected
    frees = view.is_cuda_call(*_FREES) & selected
    every = allocates | frees
    if not every.any():
        return Silent("No recorded step allocates or frees memory of the GPU.")
    time = int(calls.duration_ns[every].sum()) // count
    share = percent(time, context.recorded_step_ns) or 0.0
    steps = len(np.unique(view.call_iteration[every]))
    if share < ALLOCATION_SHARE_PERCENT or 2 * steps < count:
        return Silent(
            f"{int(every.sum())} calls in {steps} of {count} steps allocate or free memory; they take {share:.1f} % of "
            "the time."
        )
    estimate = _saving(context, every)
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(
            f"Allocating and freeing take {share:.1f} % of the time, but the GPU idles for {estimate.percent:.1f} %."
        )
    number_of_frees = int(frees.sum())
    return RULE.finding(
        title=f"Each step allocates and frees GPU memory: {ms(time, 1)} in the driver",
        seen=f"{int(allocates.sum()) / count:.3g} calls a step allocate, {number_of_frees / count:.3g} free; together "
        f"they take {of_recorded_step(context, time)}. They are in {steps} of {count} steps.",
        readings=[
            Reading("Calls that allocate, per step", int(allocates.sum()) / count, "count"),
            Reading("Calls that free, per step", number_of_frees / count, "count"),
            Reading("Time in them per step", time, "ns"),
            Reading("Share of the recorded step", share, "percent", ALLOCATION_SHARE_PERCENT),
            Reading("Most memory reserved", context.facts.peak_memory_reserved_bytes, "bytes"),
        ],
        evidence=[*call_rows(context, every), EvidenceRow("Memory", None, None, "memory", "")],
        change=_change(context, every, number_of_frees),
        code="# Not in each step:\n# torch.cuda.empty_cache()\n",
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Frees in the steps of one run and not in those of the other."""
    before, after = (bool(view.is_cuda_call(*_FREES).any()) for view in (base, candidate))
    return "memory kept between steps" if before and not after else ""


def _saving(context: RuleContext, every: Bools) -> Saving:
    """GPU idle time in the calls; at best all of the time that the GPU idles.

    Freeing waits for the GPU, so that the CPU has nothing launched ahead afterwards: later gaps may go as well.
    """
    calls = context.profile.calls
    within = union(calls.start_ns[every], calls.start_ns[every] + calls.duration_ns[every])
    gaps = idle_gaps(context.view, context.selection)
    gpus, count = max(1, len(context.profile.iterations.gpu_ids)), context.selection.count
    inside = int(covered(within, gaps.start_ns, gaps.start_ns + gaps.duration_ns).sum()) // gpus // count
    base, idle = context.step_ns, context.idle_ns
    # The profiler makes the calls longer, in the proportion of the steps.
    least = min(inside * min(1.0, base / max(context.recorded_step_ns, 1)), idle)
    expected = (least + idle) / 2
    return stated(
        context,
        _CERTAIN * least,
        expected,
        idle,
        f"The GPU is idle for {ms(inside)} of a recorded step while the CPU is in these calls, and "
        f"for {idle / 1e6:.2f} of {ms(base)} without the profiler. {100 * _CERTAIN:.0f} % of the first is "
        "certain, all of the second possible; the middle of both is expected.",
    )


def _change(context: RuleContext, every: Bools, frees: int) -> str:
    if np.isin(context.view.call_cuda[every], _PINNED).all():
        return (
            "Allocate pinned buffers once and copy into them, or let the DataLoader pin its batches (pin_memory=True)."
        )
    reserved = context.facts.peak_memory_reserved_bytes
    memory = next((gpu.memory_bytes for gpu in context.profile.system.gpus if gpu.memory_bytes), None)
    if reserved and memory and reserved >= _NEARLY_FULL * memory:
        return (
            f"Memory is nearly full ({reserved / 1e9:.0f} of {memory / 1e9:.0f} GB reserved): PyTorch frees its cache "
            "to make room. Use a smaller batch, activation checkpointing or expandable segments."
        )
    if frees:
        return "Memory is not short, so something frees the cache in each step: take torch.cuda.empty_cache() out."
    return "Sizes change from step to step, so that the cache does not fit: pad batches to a few sizes."
