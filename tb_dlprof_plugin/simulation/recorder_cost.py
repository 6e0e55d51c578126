"""Estimates the CPU cost of recording, for recordings without a measured step without the profiler.

The cost is one of events: each op, each CUDA call and each range costs about the same, and shapes cost more. On a
slower machine it costs proportionally more, so it is a share of the launching time. The recording itself does not
improve the estimate: a model with costs per event in units of the machine's own launch calls was off by as much (median
7 % of the step, as with these shares), because steps of one process differ by more within a minute.

Launches of Triton kernels by torch.compile cost more than other events: Inductor's launcher records each with its
arguments and the facts of its kernel, which it puts together only while a profiler runs (``CachingAutotuner.run`` of
torch/_inductor/runtime/triton_heuristics.py).

Fitted on 56 CPU-paced recordings with module ranges (lab/precision_pairs, demo) and 32 of bare
``torch.profiler`` on an H200, whose steps without the profiler were timed right before and after.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.names.ops import TRITON_KERNEL
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.call_names import calls_named, launching_calls

EVENTS_SHARE = 0.20
SHAPES_SHARE = 0.15
"""Share of the CPU's recorded time that goes into recording events, and into their shapes."""
RANGE_SHARE = 0.4
"""The same for module ranges, times their number per op."""
LIGHT_SHARE = 0.12
"""What recording CUDA calls and GPU activities alone costs: the median of 35 CPU-paced light windows, compared with the
steps right before and after."""
SPREAD = 0.25
"""Two standard deviations of the logarithm of the remaining CPU time over that predicted by these shares."""
BARE_LEFT = (0.56, 0.72, 1.0)
"""Of the CPU's time what is left without a bare ``torch.profiler`` with shapes, at least, expected and at most. On the
H200 of the 32 recordings 0.65 was; on a slower host of an H100 0.67 to 1.07 in 11 of 12 (`lab.precision_pairs.unseen`,
opened half), where a step differs by more from turn to turn."""
JOB_SPREAD = 0.45
"""The same of a rank of a job: hosts delay each other. Of six jobs of two H200s whose hosts set the pace
(lab/ranks, and two ResNet-50 by ``torch.profiler`` alone) 0.70 to 1.30 of the predicted time remained."""
NSYS_SHARE = 0.55
"""The same of Nsight Systems with NVTX ranges around ops, by ``emit_nvtx`` or XLA: it records each CUDA call
and range by a call of its own. On three CPU-paced recordings (lab/formats) 0.37 to 0.45 of the time remained."""
NSYS_SPREAD = 0.4
TRITON_CALLS = 2.5
"""What recording one launch of a Triton kernel costs, as a multiple of the call that launches it. On one compiled
recording of ``torch.profiler`` 16.9 us at 6.7 us a call; on another, which it was not fitted on, 16.1 us at 6.6."""
_STACKS_LEAST = 0.5
"""Python stacks cost by the depth of the program: with them, up to this share less remains."""


@dataclass(frozen=True, slots=True)
class CpuShare:
    """Time that launching takes without the profiler over that with it; with the ends of its interval."""

    low: float
    expected: float
    high: float


@per_selection
def unprofiled_share(view: ProfileView, _: Selection) -> CpuShare:
    """The remaining share of the CPU's recorded time without the recorder."""
    profile, spread = view.profile, spread_of(view)
    kind = profile.ops.kind[profile.calls.op]
    ops, ranges = int((kind == CallKind.OP).sum()), int((kind == CallKind.MODULE).sum())
    if not ops:
        left = 1.0 - LIGHT_SHARE
        return CpuShare(left * math.exp(-spread), left, 1.0)
    if profile.source.format in ("nsys", "nvprof"):
        left = 1.0 - NSYS_SHARE
        return CpuShare(left * math.exp(-NSYS_SPREAD), left, min(left * math.exp(NSYS_SPREAD), 1.0))
    if not ranges and _has_shapes(view) and spread == SPREAD and not profile.facts.with_stack:
        low, left, high = BARE_LEFT
        triton = _triton_share(view)
        return CpuShare(max(low - triton, 0.3), max(left - triton, 0.3), max(high - triton, 0.3))
    left = 1.0 - EVENTS_SHARE - RANGE_SHARE * ranges / ops
    if _has_shapes(view):
        left -= SHAPES_SHARE
    left = max(left - _triton_share(view), 0.3)
    low = left * (_STACKS_LEAST if profile.facts.with_stack else 1.0)
    return CpuShare(low * math.exp(-spread), left, min(left * math.exp(spread), 1.0))


def spread_of(view: ProfileView) -> float:
    """`SPREAD`, or `JOB_SPREAD` of a rank that works with others."""
    return JOB_SPREAD if (view.profile.facts.world_size or 1) > 1 else SPREAD


def _triton_share(view: ProfileView) -> float:
    """Share of the steps that goes into the recording of launches of Triton kernels."""
    calls = view.profile.calls
    triton = calls_named(view, CallKind.OP, lambda name: name.startswith(TRITON_KERNEL)) & (view.call_iteration >= 0)
    steps_ns = int(view.profile.iterations.duration_ns.sum())
    launching = launching_calls(view) & take_or(triton, view.call_parent, False)
    if not launching.any() or steps_ns <= 0:
        return 0.0
    return TRITON_CALLS * float(np.median(calls.duration_ns[launching])) * int(triton.sum()) / steps_ns


def _has_shapes(view: ProfileView) -> bool:
    profile = view.profile
    if profile.facts.record_shapes is not None:
        return profile.facts.record_shapes
    return any(profile.input_shapes[row] for row in np.unique(profile.ops.shapes).tolist())
