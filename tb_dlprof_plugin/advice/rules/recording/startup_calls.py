"""CUDA calls that a training makes while it starts and hardly ever later: memory from the driver, and code to load."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.model.intervals import union
from tb_dlprof_plugin.model.profile import CallKind, Ints
from tb_dlprof_plugin.names.cuda_calls import CudaCall
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.call_names import calls_named

_ALLOCATES = (CudaCall.MALLOC, CudaCall.HOST_MALLOC, CudaCall.MEMORY_CREATE, CudaCall.MEMORY_MAP)
_LOADING = ("Runtime Triggered Module Loading", "Lazy Function Loading")
"""The profiler's names for the driver's work inside a call that needs code for the first time."""


@dataclass(frozen=True, slots=True)
class OnceOnly:
    """Number and time (ns) of such calls, and both in words."""

    calls: int
    time_ns: int
    text: str


def once_only(view: ProfileView, iterations: Ints) -> OnceOnly:
    """Of these iterations, given by index."""
    inside = np.isin(view.call_iteration, iterations)
    loads = view.is_cuda_call(CudaCall.CODE_LOAD)
    loads |= calls_named(view, CallKind.OVERHEAD, lambda name: name.startswith(_LOADING))
    allocates = view.is_cuda_call(*_ALLOCATES)
    start, duration = view.profile.calls.start_ns, view.profile.calls.duration_ns
    parts, calls, time = [], 0, 0
    for rows, what in ((inside & allocates, "to the driver for memory"), (inside & loads, "to load code")):
        if rows.any():
            # Loads nest, on several rows of the trace.
            starts, stops = union(start[rows], start[rows] + duration[rows])
            count, taken = int(rows.sum()), int((stops - starts).sum())
            parts.append(f"{count} call{'s' if count > 1 else ''} {what} ({ms(taken)})")
            calls, time = calls + count, time + taken
    return OnceOnly(calls, time, " and ".join(parts))
