"""Rewrites collectives for the PyTorch Profiler tab's Distributed view: the kernels that each launched, and its sizes.

torch-tb-profiler 0.4.3 takes a collective from its annotation, by one of five names, and its kernels from an ``External
id`` that they share with it. Today's kernels have that of the op around the annotation; and the annotation lasts as
long as the call on the host, which the view would add to the time on the GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tb_dlprof_plugin.interop.torch_tb_profiler.rewrite import Event
from tb_dlprof_plugin.model.profile import CallKind, Ints, KernelKind, Profile
from tb_dlprof_plugin.model.tree import nearest, parents

PREFIX = "nccl:"
HOST_ARGUMENT = "host duration (us)"
"""How long the call took on the host: the annotation itself lasts no time."""
_OWN_NAME = "name"
_FIRST_ID = 1 << 41
"""External ids of collectives: those of ops count from 0."""
_KNOWN = ("reduce_scatter", "all_gather", "all_reduce", "broadcast", "reduce")
"""The names that the view supports, each before those that are part of it."""
_ALIASES = {"allgather": "all_gather", "allreduce": "all_reduce"}


class Communication:
    """The collectives of one recording, looked up by their start."""

    def __init__(self, profile: Profile) -> None:
        calls, ops, launches = profile.calls, profile.ops, profile.launches
        self._ids: dict[int, int] = {}
        self._kernels: dict[int, int] = {}
        named = profile.ops_named(lambda name: name.startswith(PREFIX))
        collective = ((ops.kind == CallKind.ANNOTATION) & named)[calls.op]
        if not collective.any() or not len(launches):
            return
        is_kernel = profile.kernels.kind[launches.kernel] == KernelKind.KERNEL
        rows = np.flatnonzero(is_kernel & (launches.call >= 0))
        around: Ints = nearest(collective, parents(calls.depth))[launches.call[rows]]
        rows, around = rows[around >= 0], around[around >= 0]
        for call, start in zip(around.tolist(), launches.start_ns[rows].tolist(), strict=True):
            self._kernels[start] = self._ids[int(calls.start_ns[call])] = _FIRST_ID + call

    def kernel(self, args: dict[str, Any], start_ns: int) -> None:
        """Gives a kernel that a collective launched the collective's id."""
        if start_ns in self._kernels:
            args["External id"] = self._kernels[start_ns]

    def annotation(self, event: Event, start_ns: int) -> None:
        """Gives a collective its id, and a name and sizes that the view can read."""
        args = event.get("args")
        if not isinstance(args, dict):
            args = event["args"] = {}
        if not _are_sizes(args.get("Input Dims"), args.get("Input type")):
            # The view multiplies them; an invalid value makes it fail for all workers.
            for key in ("Input Dims", "Input dims", "Input type"):
                args.pop(key, None)
        if start_ns in self._ids:
            args.update({"External id": self._ids[start_ns], HOST_ARGUMENT: event["dur"]})
            event["dur"] = 0
            shown = _known_name(event["name"])
            if shown != event["name"]:
                args[_OWN_NAME], event["name"] = event["name"], shown


def _known_name(name: str) -> str:
    plain = name
    for alias, known in _ALIASES.items():
        plain = plain.replace(alias, known)
    return next((PREFIX + known for known in _KNOWN if known in plain), name)


def _are_sizes(dims: object, types: object) -> bool:
    return (
        isinstance(dims, list)
        and isinstance(types, list)
        and len(dims) == len(types)
        and all(isinstance(dim, list) and all(isinstance(size, int) for size in dim) for dim in dims)
    )
