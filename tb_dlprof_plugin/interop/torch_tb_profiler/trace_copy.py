"""The copy of a trace that torch-tb-profiler 0.4.3 understands, so that it shows our device times and steps.

Version 0.4.3, the last, stopped before Kineto renamed its categories. Its errors with today's traces, and the changes
in the copy that avoid them:

- It knows launches as ``runtime`` only: ``cuda_runtime`` and ``cuda_driver`` are written so, and each says whether an
  op made it (``External id``, 0 for none), by which the tab finds the op.
- It takes the steps' copies on the GPU's timeline for more steps: ``gpu_user_annotation`` gets a category that it
  passes over, as does a step that our analysis leaves out because it is not whole.
- It ends a step with its annotation, so that what happens before the next begins is in no step: a step gets the time
  up to there. Without annotations it takes the recording for one step: there our iterations become steps.
- It reads DataLoader, DataParallel and DistributedDataParallel from ops only: these annotations become ``cpu_op``.
- It judges Tensor Cores by its list of names: see `tb_dlprof_plugin.interop.torch_tb_profiler.kernel_names`. A
renamed kernel keeps its own name in its args.
- Its Distributed view finds a collective's kernels by an id that they no longer share with it: see
  `tb_dlprof_plugin.interop.torch_tb_profiler.communication`.
- Its Module view needs Python views: the hook's module ranges, which it would take for ops, become such views where
  none were recorded. It shows the forward pass.
- It adds up floats, which hold ns only near 0: times count from seconds before the recording (`_BASE`).
- One event without a name or a time ends its reading: such events are left out.

Everything else, and so its Trace view, stays as torch wrote it.
"""

from __future__ import annotations

import errno
import math
import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from tb_dlprof_plugin.interop.torch_tb_profiler.communication import PREFIX, Communication
from tb_dlprof_plugin.interop.torch_tb_profiler.kernel_names import tab_name
from tb_dlprof_plugin.interop.torch_tb_profiler.rewrite import Event, EventChanges, rewrite_trace
from tb_dlprof_plugin.model.profile import CallKind, KernelKind, Profile, Verdict
from tb_dlprof_plugin.names.ops import MODULE_PREFIX, OPTIMIZER_STEP, PROFILER_STEP
from tb_dlprof_plugin.readers.trace_names import COPY_MARK, is_copy

MADE_FOR = "torch-tb-profiler 0.4.3"
NAME_ARGUMENT = "kernel name"
"""The argument of a renamed kernel that holds its own name."""

_LAUNCHES = frozenset({"cuda_runtime", "cuda_driver", "runtime"})
_ON_GPU = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})
_AS_OPS = ("enumerate(DataLoader)#", "DataParallel.forward", "DistributedDataParallel.forward")
_COLLECTIVES = (PREFIX, "gloo:")
_ANNOTATED, _BY_OPTIMIZER = "profiler_step", "optimizer_step"
"""What delimits iterations."""
_CLOCK_NS = 512
"""How far apart two readings of one time may lie: microseconds since 1970 are rounded to as much."""
_FIRST_MODULE_ID = 1 << 40
"""Python ids of modules: those of recorded Python views count from 0."""
_BASE = "baseTimeNanoseconds"
_BEFORE_US = 10_000_000
"""No event starts as long before the first that counts."""
_APART_NS = 1
"""Between two steps: the sum of two floats must not reach into the next."""
_VERDICT = {int(Verdict.YES): True, int(Verdict.NO): False, int(Verdict.UNKNOWN): None}


def write_tab_copy(
    profile: Profile,
    trace: str | os.PathLike[str],
    copy: str | os.PathLike[str],
    original: str = "",
    progress: Callable[[float], None] | None = None,
) -> None:
    """Write the copy of a trace for the PyTorch Profiler tab.

    Args:
        profile: the profile of the trace.
        trace: the trace.
        copy: where the copy goes, ``*.pt.trace.json.gz``.
        original: where the trace stays, recorded in the copy; "" if it is not kept.
        progress: called with the fraction read (0 to 1).

    Raises:
        TraceError: the trace cannot be read.
        OSError: the copy cannot be written, or its name is that of a file that is no copy.
    """
    if os.path.lexists(copy) and not is_copy(Path(copy)):
        raise FileExistsError(
            errno.EEXIST, "exists, and is no copy for the PyTorch Profiler tab; move it to another folder", str(copy)
        )
    first = {COPY_MARK: MADE_FOR, **({"original": original} if original else {})}

    def begin(header: dict[str, Any]) -> EventChanges:
        translation = _Translation(profile, header)
        header[_BASE] = translation.base_ns
        return translation

    rewrite_trace(Path(trace), Path(copy), begin, first, progress)


class _Translation:
    """EventChanges the events of one trace."""

    def __init__(self, profile: Profile, header: dict[str, Any]) -> None:
        base = header.get(_BASE)
        base_ns = base if isinstance(base, int) else 0
        self._shift_us = max(0, (profile.base_time_unix_ns - base_ns) // 1000 - _BEFORE_US)
        self.base_ns = base_ns + self._shift_us * 1000
        """Where the copy's times count from (ns since 1970, or since whatever the trace counts from)."""
        self._first_ns = profile.base_time_unix_ns - self.base_ns
        self._names, self._by_time = _kernel_names(profile)
        self._steps = _steps(profile)
        self._found_by = profile.iterations.found_by
        self._steps_thread: dict[str, Any] | None = None
        self._modules = _Modules(profile)
        self._communication = Communication(profile)

    def change(self, event: Event) -> bool:
        """EventChanges an event in place; False where the tab must not see it."""
        if not isinstance(event.get("name"), str):
            return False
        start = event.get("ts")
        if _is_time(start):
            event["ts"] = round(start - self._shift_us, 3)
        if event.get("ph") != "X":
            return True
        if not (_is_time(start) and _is_time(event.get("dur"))):
            return False
        category = event.get("cat")
        if category in _LAUNCHES:
            event["cat"] = "runtime"
            _with_external_id(event)
        elif category in _ON_GPU:
            args = _with_external_id(event)
            if category == "kernel":
                args.setdefault("device", event.get("pid"))
                self._communication.kernel(args, self._ns_of(event))
                self._rename(event, args)
        elif category == "gpu_user_annotation":
            event["cat"] = "gpu_annotation"
        elif category == "user_annotation":
            self._annotation(event)
        elif category == "cpu_op" and event["name"].startswith(MODULE_PREFIX):
            self._modules.change(event)
        elif not isinstance(category, str):
            event["cat"] = "none"
        return True

    def _annotation(self, event: Event) -> None:
        name = event["name"]
        if name.startswith(_AS_OPS):
            event["cat"] = "cpu_op"
        elif name.startswith(_COLLECTIVES):
            self._communication.annotation(event, self._ns_of(event))
        elif name.startswith(PROFILER_STEP) and self._steps:
            if name in self._steps and self._found_by == _ANNOTATED:
                event.update(self._time_of(name))
            else:
                event["cat"] = "unfinished_step"
        elif name.startswith(OPTIMIZER_STEP) and self._steps_thread is None:
            self._steps_thread = {"pid": event.get("pid"), "tid": event.get("tid")}

    def more(self) -> list[Event]:
        """Steps where the recording has none and optimizer steps end iterations: on the thread that makes them."""
        if self._found_by != _BY_OPTIMIZER or self._steps_thread is None:
            return []
        # Without an External id, by which the tab would give them the launches that no op made.
        return [
            {"ph": "X", "cat": "user_annotation", "name": name, **self._steps_thread, **self._time_of(name), "args": {}}
            for name in self._steps
        ]

    def _ns_of(self, event: Event) -> int:
        """When an event starts, as the profile counts."""
        start_us: float = event["ts"]
        return round(start_us * 1000) - self._first_ns

    def _time_of(self, step: str) -> dict[str, float]:
        start_ns, stop_ns = self._steps[step]
        return {
            "ts": round((self._first_ns + start_ns) / 1000, 3),
            "dur": round((stop_ns - start_ns - _APART_NS) / 1000, 3),
        }

    def _rename(self, event: Event, args: dict[str, Any]) -> None:
        name = event["name"]
        shown = self._names.get(name)
        if shown is None and name in self._by_time:
            starts, names = self._by_time[name]
            place = bisect_left(starts, self._ns_of(event) - _CLOCK_NS)
            shown = names[min(place, len(names) - 1)]
        if shown is not None and shown != name:
            args[NAME_ARGUMENT] = name
            event["name"] = shown


class _Modules:
    """Module ranges for the Module view: calls of ``nn.Module`` in a tree of Python views."""

    def __init__(self, profile: Profile) -> None:
        ops, strings = profile.ops, profile.strings
        paths = {strings[row] for row in np.unique(ops.module[ops.kind == CallKind.MODULE]).tolist()}
        self._ids = {path: _FIRST_MODULE_ID + number for number, path in enumerate(sorted(paths))}
        self._root = profile.facts.model or "model"
        self._stacks = any(note.code == "python_frames" for note in profile.notes)

    def change(self, event: Event) -> None:
        path = event["name"].removeprefix(MODULE_PREFIX)
        event["name"] = f"nn.Module: {path or self._root}"
        if self._stacks or path not in self._ids:
            event["cat"] = "module"
            return
        event["cat"] = "python_function"
        number = self._ids[path]
        event["args"] = {
            "Python id": number,
            "Python parent id": self._parent(path),
            "Python module id": number - _FIRST_MODULE_ID,
        }

    def _parent(self, path: str) -> int | None:
        """The nearest module around this one that is called; lists of modules are not."""
        while path:
            path = path.rpartition(".")[0]
            if path in self._ids:
                return self._ids[path]
        return None


def _steps(profile: Profile) -> dict[str, tuple[int, int]]:
    """When each step begins and ends on the host (ns of the profile), by its annotation; empty where there is none."""
    iterations = profile.iterations
    if iterations.found_by not in (_ANNOTATED, _BY_OPTIMIZER):
        return {}
    columns = (iterations.number, iterations.host_start_ns, iterations.host_stop_ns)
    return {
        f"{PROFILER_STEP}{number}": (start, stop)
        for number, start, stop in zip(*(column.tolist() for column in columns), strict=True)
    }


def _kernel_names(profile: Profile) -> tuple[dict[str, str], dict[str, tuple[list[int], list[str]]]]:
    """The name of each kernel in the tab. Where the launching op decides: starts (ns) and names of all its launches."""
    kernels, launches, strings = profile.kernels, profile.launches, profile.strings
    rows: dict[str, list[int]] = defaultdict(list)
    for row in np.flatnonzero(kernels.kind == KernelKind.KERNEL).tolist():
        rows[strings[kernels.name[row]]].append(row)
    names: dict[str, str] = {}
    by_time: dict[str, tuple[list[int], list[str]]] = {}
    for name, of_name in rows.items():
        shown = {row: tab_name(name, _VERDICT[int(kernels.tensor_core[row])]) for row in of_name}
        if len(set(shown.values())) == 1:
            names[name] = shown[of_name[0]]
        else:
            chosen = np.flatnonzero(np.isin(launches.kernel, of_name))
            by_time[name] = (
                launches.start_ns[chosen].tolist(),
                [shown[row] for row in launches.kernel[chosen].tolist()],
            )
    return names, by_time


def _with_external_id(event: Event) -> dict[str, Any]:
    args = event.get("args")
    if not isinstance(args, dict):
        args = event["args"] = {}
    if args.get("External id") is None and args.get("external id") is None:
        args["External id"] = 0
    return args


def _is_time(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and math.isfinite(value)
