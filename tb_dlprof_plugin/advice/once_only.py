"""CUDA calls that a training makes while it starts and hardly ever later: memory from the driver, and code to load."""

from __future__ import annotations

from dataclasses import dataclass

from tb_dlprof_plugin.measures import Frame
from tb_dlprof_plugin.measures.call_names import calls_named
from tb_dlprof_plugin.storage.model import CallKind, Ints

_ALLOCATES = ("cudaMalloc", "cudaHostAlloc", "cudaMallocHost", "cuMemCreate", "cuMemMap", "hipMalloc", "hipHostMalloc")
_LOADS = ("cuModuleLoad", "cuLibraryLoad", "cudaLibraryLoad", "cuModuleGetFunction", "cuLibraryGetKernel")
_NOT = ("Async",)


@dataclass(frozen=True, slots=True)
class OnceOnly:
    """Number and time (ns) of such calls, and both in words."""

    calls: int
    time_ns: int
    text: str


def once_only(frame: Frame, iterations: Ints) -> OnceOnly:
    """Of these iterations, given by index."""
    inside = (frame.call_iteration[:, None] == iterations[None, :]).any(axis=1)
    duration = frame.profile.calls.duration_ns
    parts, calls, time = [], 0, 0
    for prefixes, what in ((_ALLOCATES, "to the driver for memory"), (_LOADS, "to load code")):
        rows = inside & calls_named(
            frame,
            CallKind.RUNTIME,
            lambda name, wanted=prefixes: name.startswith(wanted) and not name.endswith(_NOT),  # type: ignore[misc]
        )
        if rows.any():
            count, taken = int(rows.sum()), int(duration[rows].sum())
            parts.append(f"{count} call{'s' if count > 1 else ''} {what} ({taken / 1e6:.2f} ms)")
            calls, time = calls + count, time + taken
    return OnceOnly(calls, time, " and ".join(parts))
