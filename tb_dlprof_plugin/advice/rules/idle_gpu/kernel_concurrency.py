"""Independent kernels run one after another.

Kernels that fill less than half of the GPU and could run side by side: those of modules in parallel branches, where the
trace shows that none takes what another returns. Or those of several CUDA streams that never overlap, although none
waits for an event of another.

Why it matters: Kernels of one stream run one after another. A kernel of a few thread blocks leaves the rest of the GPU
idle. A kernel of another stream could use it.

What to change: Do the branches' work in one op over a further dimension: `torch.stack`, `torch.bmm`, `torch.vmap`. Or
give each branch a stream of its own; autograd then runs its backward pass on that stream too.

When to leave it: The branches share state that the trace does not show, or memory is short: each stream keeps a cache
of its own.

To confirm: Record again: on the Launches page the kernels of these modules should overlap, or be fewer.

In other tools:
- nvprof / Visual Profiler: Low Kernel Concurrency

Read on:
- [PyTorch: CUDA streams](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams)
- [PyTorch: torch.vmap](https://docs.pytorch.org/docs/stable/generated/torch.vmap.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.idle_gpu.independent_modules import Branches, branches
from tb_dlprof_plugin.advice.rules.idle_gpu.sm_occupancy import Filling, filling
from tb_dlprof_plugin.advice.savings import shorter_step
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.profile import Bools, Floats
from tb_dlprof_plugin.names.cuda_calls import CudaCall
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("SMALL_KERNEL_FILL", "SMALL_KERNEL_NS", "SMALL_KERNELS_SHARE_PERCENT", "SMALL_KERNELS_SAVING_PERCENT"),
    group="small kernels",
)

SIDE_BY_SIDE = 0.05
"""Share of small kernels' time that overlaps with kernels of other streams, from which streams run concurrently. Ours:
the Visual Profiler publishes no threshold for "Low Kernel Concurrency"."""

_STREAMS = """# Made once: streams = [torch.cuda.Stream() for _ in branches]
for branch, x, stream in zip(branches, inputs, streams):
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        outputs.append(branch(x))
for stream in streams:
    torch.cuda.current_stream().wait_stream(stream)
"""
_OWN_STREAM_SHARE = 0.1
"""Of the small kernels' time, from which a stream counts."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where small kernels take a notable share and are shown to be independent."""
    filled = filling(context.view, context.selection)
    if not filled.kernels.any() or not filled.multiprocessors.any():
        return Silent("The kernels' grids or the GPU's multiprocessors were not recorded.", applicable=False)
    launches = context.profile.launches
    part = filled.blocks / np.maximum(filled.multiprocessors, 1)
    small = filled.kernels & (filled.multiprocessors > 0) & (part <= thresholds.SMALL_KERNEL_FILL)
    small &= launches.duration_ns >= thresholds.SMALL_KERNEL_NS
    every = context.per_step(filled.kernels)
    share = percent(context.per_step(small), every) or 0.0
    if share < thresholds.SMALL_KERNELS_SHARE_PERCENT:
        return Silent(
            f"Kernels of {thresholds.SMALL_KERNEL_NS / 1e3:.0f} us or more that leave half of the GPU idle take "
            f"{share:.1f} % of the kernels' time."
        )
    if _streams(context, small) > 1:
        return _of_streams(context, small, filled, part)
    groups = branches(context.view, context.selection)
    mine = np.zeros(len(launches), dtype=np.bool_)
    side_by_side = np.ones(len(launches))
    for group in groups:
        inside = small & group.of_launch
        mine |= inside
        fit = np.maximum(np.floor(1 / np.maximum(part, 1e-9)), 1)
        side_by_side = np.where(inside, np.maximum(np.minimum(len(group.paths), fit), side_by_side), side_by_side)
    if 2 * context.per_step(mine) < context.per_step(small):
        return Silent(
            f"Small kernels take {share:.1f} % of the kernels' time, but it cannot be shown that they do not depend on "
            "each other."
        )
    largest = max(groups, key=lambda group: context.per_step(small & group.of_launch))
    return _finding(context, mine, side_by_side, share, largest)


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Streams where there was one."""
    before, after = (filling(view, view.selection()).streams for view in (base, candidate))
    return f"{after} CUDA streams" if after > before and before == 1 else ""


def _streams(context: RuleContext, small: Bools) -> int:
    """Streams with a notable part of the small kernels, of the device that has most."""
    launches = context.profile.launches
    most = 0
    for device in np.unique(launches.device[small]).tolist():
        here = small & (launches.device == device)
        time = np.bincount(np.unique(launches.stream[here], return_inverse=True)[1], weights=launches.duration_ns[here])
        most = max(most, int((time >= _OWN_STREAM_SHARE * time.sum()).sum()))
    return most


def _of_streams(context: RuleContext, small: Bools, filled: Filling, part: Floats) -> Finding | Silent:
    if _waits_by_events(context):
        return Silent("The streams wait for each other by events: that their kernels are independent cannot be shown.")
    alone = percent(context.per_step(small & filled.alone), context.per_step(small)) or 0.0
    number = _streams(context, small)
    if alone < 100 * (1 - SIDE_BY_SIDE):
        return Silent(f"{100 - alone:.0f} % of the small kernels' time overlaps with kernels of other streams.")
    fit = np.maximum(np.floor(1 / np.maximum(part, 1e-9)), 1)
    share = percent(context.per_step(small), context.per_step(filled.kernels)) or 0.0
    return _finding(context, small, np.where(small, np.minimum(number, fit), 1.0), share, None)


def _waits_by_events(context: RuleContext) -> bool:
    waits = context.view.is_cuda_call(CudaCall.STREAM_WAIT_EVENT)
    return bool((waits & context.view.selected_calls(context.selection)).any())


def _who(group: Branches | None) -> str:
    if group is None:
        return "Kernels of several streams never run side by side."
    names = ", ".join(group.paths[:3]) + (f" and {len(group.paths) - 3} more" if len(group.paths) > 3 else "")
    return f"The modules {names} do the same work on inputs of their own, one after another."


def _finding(
    context: RuleContext, mine: Bools, side_by_side: Floats, share: float, group: Branches | None
) -> Finding | Silent:
    time, count = context.per_step(mine), context.selection.count
    one = 1 / side_by_side
    estimate = shorter_step(
        context,
        Change(gpu=np.where(mine, np.minimum(3 * one, 1.0), 1.0)),
        Change(gpu=np.where(mine, np.minimum(1.2 * one, 1.0), 1.0)),
        Change(gpu=np.where(mine, one, 1.0)),
        f"{ms(time)} of kernels could run {side_by_side[mine].max():.0f} at a time. Side by side they take as "
        "long as one of them, up to three times as long where they compete for memory.",
    )
    if estimate.percent < thresholds.SMALL_KERNELS_SAVING_PERCENT:
        return Silent(
            f"Independent small kernels take {ms(time)} of a step; side by side they should save only "
            f"{estimate.percent:.1f} % of it."
        )
    number = int(mine.sum()) // count
    return RULE.finding(
        title=f"Independent small kernels run one after another for {ms(time, 1)} of each step",
        seen=f"{_who(group)} {number} such kernels a step fill less than half of the GPU each and take "
        f"{time / 1e6:.2f} of {ms(context.step_ns)}.",
        readings=[
            Reading("Small kernels, of the kernels' time", share, "percent", thresholds.SMALL_KERNELS_SHARE_PERCENT),
            Reading("Independent ones per step", time, "ns"),
            Reading("How many fit side by side", float(side_by_side[mine].max()), "count"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.SMALL_KERNELS_SAVING_PERCENT),
        ],
        evidence=[*op_rows(context, mine), EvidenceRow("Launches", None, None, "launches", "")],
        change="Stack the branches' inputs and weights and do their work in one op, or run each branch on a stream of "
        "its own."
        if group
        else "Look for what makes the streams wait for each other: events, the default stream, or allocations.",
        code=_STREAMS,
        saving=estimate,
    )
