"""Reads the JSON that Kineto writes (``export_chrome_trace``, ``tensorboard_trace_handler``), plain or gzip.

Complete events ("ph": "X") of the categories in `_HOST_CATEGORIES` and `_DEVICE_CATEGORIES` become rows; flows,
metadata and Python frames are not needed, because launches join by ``correlation`` and forward to backward by
``Sequence number``. ``ts`` and ``dur`` are microseconds with nanosecond digits: rounding them to integer nanoseconds is
exact below 2**43 microseconds, where neighbouring float64 values lie closer than a nanosecond, which is why newer
traces count from ``baseTimeNanoseconds``.
"""

from __future__ import annotations

import functools
import gzip
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tb_dlprof_plugin.trace.errors import TraceError
from tb_dlprof_plugin.trace.strings import StringTable
from tb_dlprof_plugin.trace.timeline import (
    DeviceEvents,
    DeviceKind,
    DeviceProperties,
    HostEvents,
    HostKind,
    LaunchConfig,
    MemoryEvents,
    Timeline,
    TraceNote,
)

_HOST_CATEGORIES = {
    "cpu_op": HostKind.OP,
    "Operator": HostKind.OP,
    "cuda_runtime": HostKind.RUNTIME,
    "cuda_driver": HostKind.RUNTIME,
    "Runtime": HostKind.RUNTIME,
    "runtime": HostKind.RUNTIME,
    "user_annotation": HostKind.ANNOTATION,
    "overhead": HostKind.OVERHEAD,
}
_DEVICE_CATEGORIES = {
    "kernel": DeviceKind.KERNEL,
    "Kernel": DeviceKind.KERNEL,
    "gpu_memcpy": DeviceKind.MEMCPY,
    "Memcpy": DeviceKind.MEMCPY,
    "gpu_memset": DeviceKind.MEMSET,
    "Memset": DeviceKind.MEMSET,
}
_GZIP_MAGIC = b"\x1f\x8b"
_LARGEST_ID = 2**63 - 1
_LARGEST_NUMBER = 2**31 - 1  # of a device or stream


class _Args(msgspec.Struct, gc=False, rename={"external_id": "External id", "sequence": "Sequence number"}):
    external_id: int | None = None
    sequence: int | None = None
    forward_thread: int | None = msgspec.field(default=None, name="Fwd thread id")
    input_types: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input type")
    input_dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input Dims")
    correlation: int | None = None
    device: int | None = None
    stream: int | str | None = None
    bytes: int | None = None
    # Triton's host events carry text here, kernels three numbers: decoded where a kernel is read.
    grid: msgspec.Raw = msgspec.Raw()
    block: msgspec.Raw = msgspec.Raw()
    registers: int | None = msgspec.field(default=None, name="registers per thread")
    shared_memory: int | None = msgspec.field(default=None, name="shared memory")
    occupancy: float | None = msgspec.field(default=None, name="est. achieved occupancy %")
    device_type: int | None = msgspec.field(default=None, name="Device Type")
    device_id: int | None = msgspec.field(default=None, name="Device Id")
    amount: int | None = msgspec.field(default=None, name="Bytes")
    address: int | None = msgspec.field(default=None, name="Addr")
    allocated: int | None = msgspec.field(default=None, name="Total Allocated")
    reserved: int | None = msgspec.field(default=None, name="Total Reserved")


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float = 0.0
    dur: float = 0.0
    args: _Args | None = None


class _Device(msgspec.Struct):
    id: int = 0
    name: str = ""
    computeMajor: int | None = None
    computeMinor: int | None = None
    numSms: int | None = None
    totalGlobalMem: int | None = None


class _Distributed(msgspec.Struct):
    rank: int | None = None
    world_size: int | None = None


class _Trace(msgspec.Struct):
    traceEvents: list[_Event]
    baseTimeNanoseconds: int = 0
    deviceProperties: list[_Device] = []
    distributedInfo: _Distributed | None = None
    cuda_runtime_version: int | None = None
    cuda_driver_version: int | None = None
    record_shapes: int | None = None


def read_kineto(path: str | os.PathLike[str]) -> Timeline:
    """The Timeline of a Kineto trace file.

    Raises:
        TraceError: the file is missing, empty, cut short or not a Kineto trace.
    """
    source = Path(path)
    data = _read_bytes(source)
    try:
        trace = msgspec.json.decode(data, type=_Trace)
    except msgspec.ValidationError as error:
        raise TraceError(
            f"{source} is JSON but not a PyTorch profiler trace ({error}); "
            "pass the *.pt.trace.json file that torch.profiler wrote."
        ) from None
    except msgspec.DecodeError as error:
        raise TraceError(
            f"{source} holds broken JSON ({error}); it was probably cut short while it was written: record it again."
        ) from None
    return _build(source, trace)


def _read_bytes(source: Path) -> bytes:
    try:
        data = source.read_bytes()
    except OSError as error:
        raise TraceError(f"{source} cannot be read ({error.strerror}); check the path.") from None
    if data.startswith(_GZIP_MAGIC):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise TraceError(f"{source} is a damaged gzip file ({error}); record the trace again.") from None
    if not data.strip():
        raise TraceError(f"{source} is empty; the training process probably ended before the trace was written.")
    return data


def _build(source: Path, trace: _Trace) -> Timeline:
    strings = StringTable()
    events = [event for event in trace.traceEvents if event.ph == "X"]
    notes: list[TraceNote] = []
    negative = sum(1 for event in events if event.dur < 0)
    if negative:
        notes.append(
            TraceNote("negative_duration", "Events with a negative duration were read as lasting 0 ns.", negative)
        )
    starts = np.rint(np.array([event.ts for event in events], dtype=np.float64) * 1000.0).astype(np.int64)
    durations = np.rint(np.array([event.dur for event in events], dtype=np.float64) * 1000.0).astype(np.int64)
    np.maximum(durations, 0, out=durations)
    memory = [event for event in trace.traceEvents if event.name == "[memory]" and event.args is not None]
    # Times count from the first event: what follows then fits any integer width and delta coding starts small.
    first = int(starts.min()) if len(starts) else 0
    starts -= first

    host_rows = [i for i, event in enumerate(events) if event.cat in _HOST_CATEGORIES]
    device_rows = [i for i, event in enumerate(events) if event.cat in _DEVICE_CATEGORIES]
    python_frames = sum(1 for event in events if event.cat == "python_function")
    if python_frames:
        notes.append(TraceNote("python_frames", "Python frames were recorded; they are not used.", python_frames))
    if not host_rows and not device_rows:
        raise TraceError(f"{source} holds no op and no kernel; check that the profiler ran during training steps.")

    configs: dict[LaunchConfig, int] = {LaunchConfig(): 0}
    return Timeline(
        source=str(source),
        base_time_unix_ns=trace.baseTimeNanoseconds + first,
        strings=strings.values,
        host=_host_events([events[i] for i in host_rows], starts[host_rows], durations[host_rows], strings),
        device=_device_events(
            [events[i] for i in device_rows], starts[device_rows], durations[device_rows], strings, configs
        ),
        launch_configs=list(configs),
        device_properties=[
            DeviceProperties(d.id, d.name, d.computeMajor, d.computeMinor, d.numSms, d.totalGlobalMem)
            for d in trace.deviceProperties
        ],
        rank=trace.distributedInfo.rank if trace.distributedInfo else None,
        world_size=trace.distributedInfo.world_size if trace.distributedInfo else None,
        cuda_runtime_version=trace.cuda_runtime_version,
        cuda_driver_version=trace.cuda_driver_version,
        record_shapes=None if trace.record_shapes is None else bool(trace.record_shapes),
        notes=notes,
        memory=_memory_events(memory, first),
        events=len(trace.traceEvents),
    )


def _memory_events(events: list[_Event], first: int) -> MemoryEvents:
    args = [event.args or _Args() for event in events]
    times = np.rint(np.array([event.ts for event in events], dtype=np.float64) * 1000.0).astype(np.int64) - first
    order = np.argsort(times, kind="stable")
    on_cpu = np.array([a.device_type in (None, 0) for a in args], dtype=np.bool_)
    device = _ints(_or_missing(a.device_id) for a in args)
    return MemoryEvents(
        time_ns=times[order],
        thread=np.zeros(len(events), dtype=np.int64),
        device=np.where(on_cpu, -1, device)[order],
        address=_ints(_or_missing(a.address) for a in args)[order],
        bytes=_ints(a.amount or 0 for a in args)[order],
        allocated=_ints(_or_missing(a.allocated) for a in args)[order],
        reserved=_ints(_or_missing(a.reserved) for a in args)[order],
    )


def _host_events(events: list[_Event], starts: Any, durations: Any, strings: StringTable) -> HostEvents:
    empty = _Args()
    args = [event.args or empty for event in events]
    threads: dict[tuple[object, object], int] = {}
    # Thread ids are only unique within a process; the pair is numbered so that one integer names it.
    thread = _ints(_thread_id(event, threads) for event in events)
    # Children that start with their parent come after it: longer first.
    order = np.lexsort((-durations, starts, thread))
    return HostEvents(
        name=_ints(strings.add(event.name) for event in events)[order],
        kind=_ints(_HOST_CATEGORIES[event.cat] for event in events)[order],
        thread=thread[order],
        start_ns=starts[order],
        duration_ns=durations[order],
        correlation=_ints(_or_missing(a.correlation) for a in args)[order],
        external_id=_ints(_or_missing(a.external_id) for a in args)[order],
        sequence_number=_ints(_or_missing(a.sequence) for a in args)[order],
        forward_thread=_ints(_or_missing(a.forward_thread) for a in args)[order],
        shapes=_ints(_raw_text(a.input_dims, strings) for a in args)[order],
        dtypes=_ints(_raw_text(a.input_types, strings) for a in args)[order],
    )


def _device_events(
    events: list[_Event], starts: Any, durations: Any, strings: StringTable, configs: dict[LaunchConfig, int]
) -> DeviceEvents:
    empty = _Args()
    args = [event.args or empty for event in events]
    order = np.argsort(starts, kind="stable")
    return DeviceEvents(
        name=_ints(strings.add(event.name) for event in events)[order],
        kind=_ints(_DEVICE_CATEGORIES[event.cat] for event in events)[order],
        # Where neither names the device there is one.
        device=_ints(
            max(0, _number(a.device if a.device is not None else e.pid)) for a, e in zip(args, events, strict=True)
        )[order],
        stream=_ints(_number(a.stream if a.stream is not None else e.tid) for a, e in zip(args, events, strict=True))[
            order
        ],
        start_ns=starts[order],
        duration_ns=durations[order],
        correlation=_ints(_or_missing(a.correlation) for a in args)[order],
        external_id=_ints(_or_missing(a.external_id) for a in args)[order],
        bytes=_ints(_or_missing(a.bytes) for a in args)[order],
        config=_ints(configs.setdefault(_launch_config(a), len(configs)) for a in args)[order],
    )


def _launch_config(args: _Args) -> LaunchConfig:
    return LaunchConfig(
        grid=_dimensions(bytes(args.grid)),
        block=_dimensions(bytes(args.block)),
        registers_per_thread=args.registers,
        shared_memory_bytes=args.shared_memory,
        occupancy_percent=None if args.occupancy is None else round(args.occupancy),
    )


def _thread_id(event: _Event, threads: dict[tuple[object, object], int]) -> int:
    return threads.setdefault((event.pid, event.tid), len(threads))


def _ints(values: Iterable[int]) -> Any:
    return np.fromiter(values, dtype=np.int64)


def _or_missing(value: int | None) -> int:
    """Kineto writes some ids as unsigned: -1, its own "none", is then above int64."""
    return -1 if value is None or value > _LARGEST_ID else value


def _number(value: object) -> int:
    text = str(value).removeprefix("stream ").strip()
    number = int(text) if text.isascii() and text.isdigit() else -1
    return number if number <= _LARGEST_NUMBER else -1


@functools.lru_cache(maxsize=65536)
def _dimensions(raw: bytes) -> tuple[int, int, int] | None:
    try:
        return msgspec.json.decode(raw, type=tuple[int, int, int])
    except msgspec.DecodeError:
        return None


def _raw_text(raw: msgspec.Raw, strings: StringTable) -> int:
    return strings.add(bytes(raw).decode("utf-8", "replace"))
