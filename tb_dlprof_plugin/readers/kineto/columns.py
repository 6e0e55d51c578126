"""Converts decoded events to the columns of a Timeline, run by run, without keeping events.

Everything per event happens inside C loops (`map`, `attrgetter`, `numpy.fromiter`), because a Python bytecode an event
costs as much as decoding it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import compress
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.shapes import InputShapes, InputTable
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import (
    DeviceEvents,
    DeviceKind,
    HostEvents,
    HostKind,
    Ints,
    LaunchConfig,
    MemoryEvents,
    PythonFrames,
)
from tb_dlprof_plugin.readers.errors import UNDECODABLE
from tb_dlprof_plugin.readers.input_text import parse_dtypes, parse_shapes
from tb_dlprof_plugin.readers.kineto.communication import CommunicationBuilder
from tb_dlprof_plugin.readers.kineto.python_exporter import PROCESSES

HOST_KINDS = {
    "cpu_op": HostKind.OP,
    "Operator": HostKind.OP,
    "user_annotation": HostKind.ANNOTATION,
    "overhead": HostKind.OVERHEAD,
}
RUNTIME_CATEGORIES = {
    "cuda_runtime",
    "cuda_driver",
    "hip_runtime",
    "xpu_runtime",
    "mtia_runtime",
    "privateuse1_runtime",
    "privateuse1_driver",
    "Runtime",
    "runtime",
}
DEVICE_KINDS = {
    "kernel": DeviceKind.KERNEL,
    "Kernel": DeviceKind.KERNEL,
    "gpu_memcpy": DeviceKind.MEMCPY,
    "Memcpy": DeviceKind.MEMCPY,
    "gpu_memset": DeviceKind.MEMSET,
    "Memset": DeviceKind.MEMSET,
}
LARGEST_ID = 2**63 - 1
_LARGEST_NUMBER = 2**31 - 1  # of a device or stream
_LARGEST_COORDINATE = 2**62 - 1
_LARGEST_MEMORY = 2**52  # bytes, 4 PiB: what an x86-64 processor can address at most (52 bits)
_MOST_DIGITS = 19  # of a number below 2**63; int() of thousands raises
_K = TypeVar("_K", bound=Hashable)
_FIRST_ROWS, _CHUNK_ROWS, _GROWTH = 2**14, 2**22, 4
"""Of a column's first chunk, of the largest, and from one to the next. 32 MiB are what the C library takes from the
system by themselves, and gives back: thousands of small pieces would leave holes that no larger column fits into, a
third of the peak of a trace of 2 GB."""

_collective = attrgetter("collective")
_name, _cat, _pid, _tid, _ts, _dur, _args = map(attrgetter, ("name", "cat", "pid", "tid", "ts", "dur", "args"))


class _GrowingColumn:
    """A column that grows at its end."""

    __slots__ = ("_chunks", "_filled")

    def __init__(self) -> None:
        self._chunks: list[npt.NDArray[Any]] = []
        self._filled = 0

    def append(self, piece: npt.NDArray[Any]) -> None:
        """All pieces have one type."""
        done = 0
        while done < len(piece):
            if not self._chunks or self._filled == len(self._chunks[-1]):
                rows = min(_GROWTH * len(self._chunks[-1]), _CHUNK_ROWS) if self._chunks else _FIRST_ROWS
                self._chunks.append(np.empty(rows, dtype=piece.dtype))
                self._filled = 0
            count = min(len(piece) - done, len(self._chunks[-1]) - self._filled)
            self._chunks[-1][self._filled : self._filled + count] = piece[done : done + count]
            self._filled += count
            done += count

    def whole(self) -> npt.NDArray[Any]:
        """The column; nothing is left here."""
        chunks, self._chunks = self._chunks, []
        if not chunks:
            return np.zeros(0, dtype=np.int64)
        chunks[-1] = chunks[-1][: self._filled]
        return np.concatenate(chunks)


_Columns = dict[str, _GrowingColumn]


class _Numbered(dict[_K, int], Generic[_K]):
    """Numbers keys as they come; a key seen before costs one look-up."""

    def __init__(self, number: Callable[[_K], int]) -> None:
        self._number = number

    def __missing__(self, key: _K) -> int:
        number = self[key] = self._number(key)
        return number


class ColumnBuilder:
    """Columns under construction, one `add` for each run of events.

    ``distributed`` says that events are decoded with `records.CommunicationArgs`. ``python_frames`` counts the Python
    frames seen, ``unlabelled`` the events without a category.
    """

    def __init__(self, strings: StringTable, distributed: bool = False) -> None:
        self._distributed = distributed
        self._strings = strings
        self._names: _Numbered[str] = _Numbered(lambda name: strings.add(_without_overload(name)))
        self._places_of_frames = StringTable()
        self._frame_places: _Numbered[str] = _Numbered(self._place_of_frame)
        self._input_shapes: InputTable[InputShapes] = InputTable(())
        self._input_dtypes: InputTable[InputDtypes] = InputTable(())
        self._shapes: _Numbered[bytes] = _Numbered(lambda raw: self._input_shapes.add(parse_shapes(raw)))
        self._dtypes: _Numbered[bytes] = _Numbered(lambda raw: self._input_dtypes.add(parse_dtypes(raw)))
        self._thread_ids: _Numbered[tuple[str, str]] = _Numbered(lambda _: len(self._thread_ids))
        self._threads: _Numbered[tuple[object, object]] = _Numbered(
            # One thread is 7 in one event and "7" in the next.
            lambda key: self._thread_ids[str(key[0]), str(key[1])]
        )
        self._places: _Numbered[tuple[object, ...]] = _Numbered(self._place)
        self._device_stream: list[tuple[int, int]] = []
        self._configs: dict[LaunchConfig, int] = {LaunchConfig(): 0}
        self._config_keys: _Numbered[tuple[Any, ...]] = _Numbered(self._config)
        self._host: _Columns = {}
        self._device: _Columns = {}
        self._memory: _Columns = {}
        self._frames: _Columns = {}
        self.communication = CommunicationBuilder(strings)
        self.python_frames = 0
        self.unlabelled = 0

    def _place_of_frame(self, name: str) -> int:
        from tb_dlprof_plugin.readers.kineto.python_frames import place_of

        return self._places_of_frames.add(place_of(name))

    def add(self, complete: Sequence[Any], memory: Sequence[Any]) -> None:
        """Takes in complete events and ``[memory]`` events."""
        cats = list(map(_cat, complete))
        calls = list(compress(complete, map(RUNTIME_CATEGORIES.__contains__, cats)))
        host = list(compress(complete, map(HOST_KINDS.__contains__, cats)))
        device = list(compress(complete, map(DEVICE_KINDS.__contains__, cats)))
        if len(calls) + len(host) + len(device) < len(complete):
            unlabelled = [event for event in complete if not event.cat and event.pid in PROCESSES]
            self.unlabelled += len(unlabelled)
            self._add_ops(unlabelled, [int(HostKind.OP)] * len(unlabelled))
            frames = [event for event in complete if event.cat == "python_function"]
            self.python_frames += len(frames)
            modules = [event for event in frames if event.name.startswith("nn.Module: ")]
            self._add_ops(modules, [int(HostKind.PYTHON_MODULE)] * len(modules))
            self._add_frames(frames)
        self._add_ops(host, map(HOST_KINDS.__getitem__, map(_cat, host)))
        self._add_calls(calls)
        self._add_device(device)
        self._add_memory(memory)

    def _add_ops(self, events: list[Any], kinds: Iterable[int]) -> None:
        if not events:
            return
        args = list(map(_args, events))
        _append(
            self._host,
            **self._common(events, args),
            kind=np.fromiter(kinds, np.int64, len(events)),
            correlation=np.full(len(events), -1, dtype=np.int64),
            sequence_number=_ints(args, "sequence"),
            forward_thread=_ints(args, "forward_thread"),
            shapes=_raw_column(self._shapes, args, "input_dims", "old_input_dims"),
            dtypes=_raw_column(self._dtypes, args, "input_types"),
        )
        notes = list(compress(events, map(_collective, args))) if self._distributed else []
        if notes:
            nothing = np.full(len(notes), -1, dtype=np.int64)
            start_ns = _times(list(map(_ts, notes)))
            self.communication.add(start_ns, self._thread(notes), nothing, nothing, list(map(_args, notes)))

    def _add_calls(self, events: list[Any]) -> None:
        """Runtime and driver calls, which are many and have only ids to tell."""
        if not events:
            return
        args, nothing = list(map(_args, events)), np.full(len(events), -1, dtype=np.int64)
        _append(
            self._host,
            **self._common(events, args),
            kind=np.full(len(events), int(HostKind.RUNTIME), dtype=np.int64),
            correlation=_ints(args, "correlation"),
            sequence_number=nothing,
            forward_thread=nothing,
            shapes=np.zeros(len(events), dtype=np.int64),
            dtypes=np.zeros(len(events), dtype=np.int64),
        )

    def _common(self, events: list[Any], args: list[Any]) -> dict[str, Ints]:
        ids = _ints(args, "external_id")
        return {
            "name": np.fromiter(map(self._names.__getitem__, map(_name, events)), np.int64, len(events)),
            "thread": self._thread(events),
            "start_ns": _times(list(map(_ts, events))),
            "duration_ns": _durations(events),
            "external_id": ids if (ids >= 0).any() else _ints(args, "old_external_id"),
        }

    def _add_device(self, events: list[Any]) -> None:
        if not events:
            return
        count, args = len(events), list(map(_args, events))
        ids = _ints(args, "external_id")
        places = zip(
            *(map(attrgetter(key), args) for key in ("device", "stream")),
            map(_pid, events),
            map(_tid, events),
            strict=True,
        )
        configs = zip(
            map(bytes, map(attrgetter("grid"), args)),
            map(bytes, map(attrgetter("block"), args)),
            *(map(attrgetter(key), args) for key in ("registers", "shared_memory", "occupancy")),
            strict=True,
        )
        place = np.fromiter(map(self._places.__getitem__, places), np.int64, count)
        start_ns = _times(list(map(_ts, events)))
        _append(
            self._device,
            name=np.fromiter(map(self._names.__getitem__, map(_name, events)), np.int64, count),
            kind=np.fromiter(map(DEVICE_KINDS.__getitem__, map(_cat, events)), np.int64, count),
            place=place,
            start_ns=start_ns,
            duration_ns=_durations(events),
            correlation=_ints(args, "correlation"),
            external_id=ids if (ids >= 0).any() else _ints(args, "old_external_id"),
            bytes=_within(_ints(args, "bytes"), _LARGEST_COORDINATE),
            config=np.fromiter(map(self._config_keys.__getitem__, configs), np.int64, count),
        )
        if self._distributed:
            communicating = np.fromiter(map(bool, map(_collective, args)), np.bool_, count)
            table = np.array(self._device_stream, dtype=np.int64)[place[communicating]]
            nothing = np.full(len(table), -1, dtype=np.int64)
            own = list(compress(args, communicating.tolist()))
            self.communication.add(start_ns[communicating], nothing, table[:, 0], table[:, 1], own)

    def _add_frames(self, events: list[Any]) -> None:
        """Keeps those that name a place in the user's files; the others are many."""
        places = list(map(self._frame_places.__getitem__, map(_name, events)))
        events = list(compress(events, places))
        if not events:
            return
        _append(
            self._frames,
            place=np.fromiter(filter(None, places), np.int64, len(events)),
            thread=self._thread(events),
            start_ns=_times(list(map(_ts, events))),
            duration_ns=_durations(events),
        )

    def _add_memory(self, events: Sequence[Any]) -> None:
        if not events:
            return
        count, args = len(events), list(map(_args, events))
        on_cpu = np.fromiter((a.device_type in (None, 0) for a in args), np.bool_, count)
        _append(
            self._memory,
            time_ns=_times(list(map(_ts, events))),
            thread=self._thread(events),
            device=np.where(on_cpu, -1, _within(_ints(args, "device_id"), _LARGEST_NUMBER)),
            address=_ints(args, "address"),
            bytes=_sizes(args, "bytes", missing=0),
            allocated=_sizes(args, "allocated"),
            reserved=_sizes(args, "reserved"),
        )

    def host_events(self) -> HostEvents:
        """The host events in the order of `HostEvents`."""
        columns = _joined(self._host, HostEvents.__slots__)
        # Children that start with their parent come after it: longer first.
        keys = [-columns["duration_ns"], columns["start_ns"], columns["thread"]]
        order = np.lexsort(keys)
        if _has_ties([key[order] for key in keys]):
            # Times in whole microseconds: what was called first has the lower id, and launches nothing itself.
            order = np.lexsort([columns["kind"] == HostKind.RUNTIME, columns["external_id"], *keys])
        del keys
        return HostEvents(**_taken(columns, order))

    def device_events(self) -> DeviceEvents:
        """The device events in the order of `DeviceEvents`."""
        columns = _joined(self._device, [*DeviceEvents.__slots__, "place"])
        order = np.argsort(columns["start_ns"], kind="stable")
        place = columns.pop("place")[order]
        del columns["device"], columns["stream"]
        columns = _taken(columns, order)
        table = np.array(self._device_stream, dtype=np.int64).reshape(-1, 2)
        return DeviceEvents(**columns, device=table[place, 0], stream=table[place, 1])

    def memory_events(self) -> MemoryEvents:
        """The memory events in order of time."""
        columns = _joined(self._memory, MemoryEvents.__slots__)
        order = np.argsort(columns["time_ns"], kind="stable")
        return MemoryEvents(**_taken(columns, order))

    def frames(self) -> PythonFrames:
        """The Python frames that name a place in the user's files."""
        return PythonFrames(**_joined(self._frames, PythonFrames.__slots__))

    def frame_places(self) -> list[str]:
        """The places that ``PythonFrames.place`` counts."""
        return self._places_of_frames.values

    def input_shapes(self) -> list[InputShapes]:
        """The different lists of input shapes."""
        return self._input_shapes.values

    def input_dtypes(self) -> list[InputDtypes]:
        """The different lists of input types."""
        return self._input_dtypes.values

    def process_of_thread(self) -> list[str]:
        """The process of each thread, by the thread's number."""
        return [process for process, _ in self._thread_ids]

    def launch_configs(self) -> list[LaunchConfig]:
        """The launch configurations that ``DeviceEvents.config`` counts."""
        return list(self._configs)

    def _thread(self, events: Sequence[Any]) -> Ints:
        keys = zip(map(_pid, events), map(_tid, events), strict=True)
        return np.fromiter(map(self._threads.__getitem__, keys), np.int64, len(events))

    def _place(self, key: tuple[object, ...]) -> int:
        device, stream, pid, tid = key
        # Where neither names the device there is one.
        number = max(0, _number(device if device is not None else pid))
        self._device_stream.append((number, _number(stream if stream is not None else tid)))
        return len(self._device_stream) - 1

    def _config(self, key: tuple[Any, ...]) -> int:
        grid, block, registers, shared_memory, occupancy = key
        config = LaunchConfig(
            grid=_dimensions(grid),
            block=_dimensions(block),
            registers_per_thread=registers if _is_sound(registers) else None,
            shared_memory_bytes=shared_memory if _is_sound(shared_memory) else None,
            occupancy_percent=round(occupancy) if _is_sound(occupancy) else None,
        )
        return self._configs.setdefault(config, len(self._configs))


def _has_ties(keys: list[Ints]) -> bool:
    same = np.ones(max(0, len(keys[0]) - 1), dtype=np.bool_)
    for key in keys:
        same &= key[1:] == key[:-1]
    return bool(same.any())


def _without_overload(name: str) -> str:
    """ "aten::add_.Tensor", as ``capture_overload_names`` has it, is "aten::add_" everywhere else."""
    return name.partition(".")[0] if name.startswith("aten::") else name


def _append(columns: _Columns, **values: npt.NDArray[Any]) -> None:
    for name, piece in values.items():
        columns.setdefault(name, _GrowingColumn()).append(piece)


def _joined(columns: _Columns, names: Iterable[str]) -> dict[str, Ints]:
    return {name: columns.pop(name, _GrowingColumn()).whole() for name in names}


def _taken(columns: dict[str, Ints], order: Ints) -> dict[str, Ints]:
    """The columns in another order, one after the other: of millions of events there is no room for both."""
    return {name: columns.pop(name)[order] for name in list(columns)}


def _ints(args: list[Any], key: str) -> Ints:
    get = attrgetter(key)
    try:
        return np.fromiter(map(get, args), np.int64, len(args))
    except (TypeError, OverflowError):
        # Kineto writes some ids as unsigned: -1, its own "none", is then above int64.
        sound = (-1 if v is None or not -LARGEST_ID <= v <= LARGEST_ID else v for v in map(get, args))
        return np.fromiter(sound, np.int64, len(args))


def _sizes(args: list[Any], key: str, missing: int = -1) -> Ints:
    """Numbers of bytes; ``missing`` where a number is more than any memory holds."""
    values = _ints(args, key)
    # Not by np.abs: that of the lowest int64 is itself.
    return np.where((values >= -_LARGEST_MEMORY) & (values <= _LARGEST_MEMORY), values, missing)


def _within(values: Ints, largest: int) -> Ints:
    return np.where((values >= 0) & (values <= largest), values, -1)


def _times(values: list[Any]) -> npt.NDArray[Any]:
    """Microseconds as integer nanoseconds; `UNKNOWN_TIME` where there is no number, or an absurd one."""
    if isinstance(values[0], msgspec.Raw):
        return _exact_times(values)
    return _nanoseconds(np.fromiter(values, np.float64, len(values)))


def _durations(events: Sequence[Any]) -> npt.NDArray[Any]:
    return _nanoseconds(np.fromiter(map(_dur, events), np.float64, len(events)))


UNKNOWN_TIME = -(2**63)
_THREE_DECIMALS = re.compile(rb"(?:\d{1,16}\.\d{3}\n)*\d{1,16}\.\d{3}")


def _nanoseconds(microseconds: npt.NDArray[np.float64]) -> Ints:
    sound = np.abs(microseconds) < _LARGEST_COORDINATE / 1000  # NaN is not
    if not sound.all():
        microseconds = np.where(sound, microseconds, 0.0)
    # Apart, because a float64 does not hold the product: microseconds since 1970 are whole, and exact so.
    whole = np.floor(microseconds)
    result = whole.astype(np.int64) * 1000 + np.rint((microseconds - whole) * 1000.0).astype(np.int64)
    return result if sound.all() else np.where(sound, result, UNKNOWN_TIME)


def _exact_times(values: list[Any]) -> Ints:
    lines = b"\n".join(values)
    if _THREE_DECIMALS.fullmatch(lines):  # as Kineto writes them
        values = lines.replace(b".", b"").split(b"\n")
        return np.fromiter(map(int, values), np.int64, len(values))
    return np.fromiter(map(_exact_time, map(bytes, values)), np.int64, len(values))


def _exact_time(raw: bytes) -> int:
    whole, _, fraction = raw.strip(b'"').partition(b".")
    if whole.isdigit() and len(whole) <= _MOST_DIGITS and (fraction.isdigit() or not fraction):
        time = int(whole) * 1000 + int((fraction + b"000")[:3]) + (fraction[3:4] >= b"5")
    else:
        try:
            time = round(float(raw.strip(b'"')) * 1000)
        except (ValueError, OverflowError):
            return UNKNOWN_TIME
    return time if abs(time) <= _LARGEST_COORDINATE else UNKNOWN_TIME


def _is_sound(value: float | None) -> bool:
    return value is not None and 0 <= value <= _LARGEST_NUMBER  # NaN is not


def _number(value: object) -> int:
    text = str(value).removeprefix("stream ").strip()
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else -1
    return number if number <= _LARGEST_NUMBER else -1


@functools.lru_cache(maxsize=65536)
def _dimensions(raw: bytes) -> tuple[int, int, int] | None:
    try:
        sizes = msgspec.json.decode(raw, type=tuple[int, int, int])
    except UNDECODABLE:
        return None
    return sizes if all(map(_is_sound, sizes)) else None


def _raw_column(numbers: _Numbered[bytes], args: list[Any], key: str, older_key: str = "") -> Ints:
    raws = list(map(bytes, map(attrgetter(key), args)))
    if older_key and not any(raws):
        raws = list(map(bytes, map(attrgetter(older_key), args)))
    return np.fromiter(map(numbers.__getitem__, raws), np.int64, len(args))
