"""What the events on host lines are: ops, calls of CUDA or HIP, annotations, Python frames, memory."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import Ints, MemoryEvents, PythonFrames, StepMarks
from tb_dlprof_plugin.readers.xplane.event_table import MISSING, EventTable, distinct


class HostEventKind(IntEnum):
    """What an event of a host line is."""

    DROPPED = 0
    ANNOTATION = 1
    OP = 2
    RUNTIME = 3
    OVERHEAD = 4
    FRAME = 5
    MEMORY = 6


_TF_OP = re.compile(r"(?P<node>[^\s:$][^\s:]*):(?P<type>[A-Z_]\w*)")
_RUNTIME = re.compile(r"(?P<call>(?:cu|cuda|hip|hsa_)[A-Z]\w*)\b")
_UNKNOWN_CALL = "<UNKNOWN>"
_FRAME = re.compile(r"\$(?P<file>[^\s:]+\.py):(?P<line>\d+) (?P<function>.+)", re.DOTALL)
_DROPPED = re.compile(r"ThreadpoolListener::|end: |\$")
_OVERHEAD = frozenset({"BUFFER_FLUSH", "RESOURCE", "OVERHEAD_CUPTI_BUFFER_FLUSH"})
_ALLOCATION, _FREE = "MemoryAllocation", "MemoryDeallocation"
_GPU_ALLOCATOR = re.compile(r"GPU_(\d+)_", re.IGNORECASE)
_FRAMEWORK_FILES = frozenset({
    "api.py", "api_util.py", "array.py", "basearray.py", "backprop.py", "compiler.py", "config.py", "constant_op.py",
    "context.py", "core.py", "dispatch.py", "distribute_lib.py", "execute.py", "function.py", "function_type_utils.py",
    "lax.py", "lax_numpy.py", "layer.py", "linear_util.py", "mirrored_run.py", "mlir.py", "ops.py", "partial_eval.py",
    "pjit.py", "polymorphic_function.py", "profiler.py", "pxla.py", "sharding_impls.py", "source_info_util.py",
    "tensor_conversion.py", "tracing_compilation.py", "traceback_util.py", "traceback_utils.py", "trainer.py",
    "tree_util.py", "ufuncs.py", "util.py", "weakref_lru_cache.py", "xla_bridge.py",
})  # fmt: skip
"""Files of JAX, TensorFlow and Keras on the way to a call. A frame has no directory that could tell."""


@dataclass(frozen=True, slots=True)
class Classified:
    """Per event its `HostEventKind` and the string of the name that it gets."""

    kind: Ints
    name: Ints


def tf_op(name: str) -> tuple[str, str] | None:
    """Node and type of "model/dense/MatMul:MatMul"; None for a text that is no such name."""
    found = _TF_OP.fullmatch(name)
    return (found["node"], found["type"]) if found else None


def classify(events: EventTable, strings: StringTable) -> Classified:
    """What the events of host lines are."""
    known, row = distinct(events.name)
    texts = [strings.values[one] for one in known.tolist()]
    kinds = np.array([_kind(text) for text in texts], dtype=np.int64)
    calls = np.array([_call(text, strings) for text in texts], dtype=np.int64)
    kind = kinds[row] if len(kinds) else np.zeros(0, dtype=np.int64)
    name = events.name.copy()
    # TensorFlow of 2020 names a launch after its kernel: the number of the launch is what tells.
    launch = (events.stats["correlation_id"] > 0) & (kind != HostEventKind.OP)
    kind = np.where(launch, int(HostEventKind.RUNTIME), kind)
    # XLA on a CPU records the instructions themselves.
    kind = np.where((events.stats["hlo_op"] > 0) & (kind == HostEventKind.ANNOTATION), int(HostEventKind.OP), kind)
    is_call = kind == HostEventKind.RUNTIME
    if is_call.any():
        name[is_call] = np.where(calls[row][is_call] > 0, calls[row][is_call], strings.add("launch"))
    return Classified(kind, name)


def _kind(name: str) -> HostEventKind:
    if name in (_ALLOCATION, _FREE):
        return HostEventKind.MEMORY
    if _FRAME.fullmatch(name):
        return HostEventKind.FRAME
    if _DROPPED.match(name):
        return HostEventKind.DROPPED
    if name in _OVERHEAD:
        return HostEventKind.OVERHEAD
    if name == _UNKNOWN_CALL or _RUNTIME.match(name):
        return HostEventKind.RUNTIME
    return HostEventKind.OP if _TF_OP.fullmatch(name) else HostEventKind.ANNOTATION


def _call(name: str, strings: StringTable) -> int:
    """The name of a CUDA or HIP call without what follows it, as in "cuGraphLaunch (CudaGraph:621)"; 0 for others."""
    if name == _UNKNOWN_CALL:
        return strings.add("call without a recorded name")
    found = _RUNTIME.match(name)
    return strings.add(found["call"]) if found else 0


def python_frames(events: EventTable, strings: StringTable) -> tuple[PythonFrames, list[str]]:
    """Calls of Python functions, without those of the standard library and of the frameworks, and their places."""
    places: dict[str, int] = {}
    known, row = distinct(events.name)
    of_name = []
    for name in known.tolist():
        found = _FRAME.fullmatch(strings.values[name])
        hidden = found is None or found["file"] in _FRAMEWORK_FILES or found["file"][:-3] in sys.stdlib_module_names
        text = "" if found is None or hidden else f"{found['file']}:{found['line']} {found['function']}"
        of_name.append(places.setdefault(text, len(places)) if text else -1)
    place = np.array(of_name, dtype=np.int64)[row] if of_name else np.zeros(0, dtype=np.int64)
    kept = place >= 0
    frames = PythonFrames(place[kept], events.line[kept], events.start_ns[kept], events.duration_ns[kept])
    return frames, list(places)


def memory_events(events: EventTable, strings: StringTable, device: int | None) -> MemoryEvents:
    """Allocations and frees of one GPU and of the host; sizes as the allocator rounds them."""
    stats = events.stats
    size = np.where(stats["allocation_bytes"] > 0, stats["allocation_bytes"], stats["requested_bytes"])
    known, row = distinct(stats["allocator_name"])
    of_allocator = [_GPU_ALLOCATOR.search(strings.values[one]) for one in known.tolist()]
    devices = [-1 if found is None else int(found[1][:9]) for found in of_allocator]
    where = np.array(devices, dtype=np.int64)[row] if devices else np.zeros(0, dtype=np.int64)
    kept = np.flatnonzero((size > 0) & ((where == -1) | (where == (-2 if device is None else device))))
    kept = kept[np.argsort(events.start_ns[kept], kind="stable")]
    free = events.name[kept] == strings.add(_FREE)
    total = stats["bytes_allocated"][kept]
    unknown = np.full(len(kept), -1, dtype=np.int64)
    return MemoryEvents(
        time_ns=events.start_ns[kept],
        thread=events.line[kept],
        device=where[kept],
        address=np.where(stats["addr"][kept] >= 0, stats["addr"][kept], -1),
        bytes=np.where(free, -size[kept], size[kept]),
        allocated=np.where(total >= 0, total, -1),
        reserved=unknown,
    )


def marked_steps(events: EventTable) -> StepMarks | None:
    """Iterations that the program marks by ``StepTraceAnnotation`` or ``tf.profiler.experimental.Trace``; None without.

    Of several kinds of marks (training and evaluation) those count that took most of the time.
    """
    number = events.stats["step_num"]
    rows = np.flatnonzero((number != MISSING) & (number >= 0) & (events.duration_ns > 0))
    if not len(rows):
        return None
    names = np.unique(events.name[rows])
    time = [int(events.duration_ns[rows][events.name[rows] == name].sum()) for name in names]
    rows = rows[events.name[rows] == names[int(np.argmax(time))]]
    line = np.bincount(events.line[rows]).argmax()
    rows = rows[events.line[rows] == line]
    rows = rows[np.argsort(events.start_ns[rows], kind="stable")]
    rows = rows[np.append(True, np.diff(number[rows]) != 0)]
    return marks(
        number[rows], events.start_ns[rows], events.start_ns[rows] + events.duration_ns[rows], "step_annotation"
    )


def marks(number: Ints, start: Ints, stop: Ints, found_by: str) -> StepMarks:
    """Iterations in order of time; where their numbers follow, one begins where the other ends: the loop's own work
    between them is part of a step, too."""
    stop = stop.copy()
    follows = number[1:] == number[:-1] + 1
    stop[:-1] = np.where(follows, start[1:], np.minimum(stop[:-1], start[1:]))
    return StepMarks(number, start, stop, found_by)
