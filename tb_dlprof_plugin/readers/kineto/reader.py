"""Reads the JSON that Kineto writes (``export_chrome_trace``, ``tensorboard_trace_handler``), plain or gzip.

Complete events ("ph": "X") of the categories that `tb_dlprof_plugin.readers.kineto.columns` lists and ``[memory]``
events become
rows; flows and metadata are not needed, because launches join by ``correlation`` and forward to backward by
``Sequence number``. ``ts`` and ``dur`` are microseconds with nanosecond digits. Rounding them to integer nanoseconds is
exact below 2**43 microseconds, where neighbouring float64 values lie closer than a nanosecond: newer traces count from
``baseTimeNanoseconds`` and stay below. Starts that count from 1970 and have a fraction are read digit by digit.

A file is read run by run (`tb_dlprof_plugin.readers.kineto.split`); a run that is not valid JSON goes through
`tb_dlprof_plugin.readers.kineto.json_recovery.stream`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.decoders import json_decoder
from tb_dlprof_plugin.model.lookup import take_rows
from tb_dlprof_plugin.model.run_facts import System
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import (
    DeviceEvents,
    DeviceProperties,
    HostEvents,
    Ints,
    PythonFrames,
    Timeline,
)
from tb_dlprof_plugin.readers.errors import UNDECODABLE, TraceError
from tb_dlprof_plugin.readers.kineto.blocks import read_blocks
from tb_dlprof_plugin.readers.kineto.columns import UNKNOWN_TIME, ColumnBuilder
from tb_dlprof_plugin.readers.kineto.event_decoder import EventDecoder
from tb_dlprof_plugin.readers.kineto.json_recovery.log import Damage
from tb_dlprof_plugin.readers.kineto.process_groups import completed, described_groups, text_of
from tb_dlprof_plugin.readers.kineto.processes import by_process
from tb_dlprof_plugin.readers.kineto.python_exporter import by_thread
from tb_dlprof_plugin.readers.kineto.records import (
    Device,
    Distributed,
    TraceHeader,
)
from tb_dlprof_plugin.readers.kineto.split import TRUNCATED, event_runs, open_events
from tb_dlprof_plugin.readers.trace_names import COPY_MARK, ORIGINALS

if TYPE_CHECKING:
    from tb_dlprof_plugin.readers.kineto.json_recovery.stream import Repair

_TIME_WITH_FRACTION = re.compile(rb'"ts"\s*:\s*"?(\d{1,19})\.\d*[1-9]')
_INEXACT_FROM_US = 2**43
_T = TypeVar("_T", HostEvents, DeviceEvents, PythonFrames)
_LOST = ("gzip_cut", "gzip_damaged", "cut_short", "events_lost", "oversized")
_LONGEST_RECORDING_NS = 2**46  # 19.5 hours: what starts or lasts longer is a broken clock


def read_kineto(path: str | os.PathLike[str], progress: Callable[[float], None] | None = None) -> list[Timeline]:
    """The Timelines of a Kineto trace file, one for each process in it. Repairs and losses are in their notes.

    Args:
        path: the file.
        progress: called with the fraction read (0 to 1).

    Raises:
        TraceError: the file is missing, empty, not a Kineto trace, or holds no event that counts.
    """
    source = Path(path)
    damage = Damage()
    # Closed at once also where this raises: an error's traceback keeps the reading thread until the interpreter ends.
    with contextlib.closing(read_blocks(source, damage, progress)) as blocks:
        head, text = open_events(source, blocks, damage)
        if COPY_MARK.encode() in head:
            raise TraceError(
                f"{source} is a copy for the PyTorch Profiler tab, with other kernel names and steps; pass the trace "
                f"that it was made of, which the hook keeps in the directory {ORIGINALS} next to it."
            )
        reader = _Reader(_is_inexact(text), _is_distributed(head, text), damage)
        header = reader.read(head, text, blocks)
    return by_process(_timeline(source, reader, header), reader.columns.process_of_thread())


class _Document(TraceHeader, kw_only=True):
    """The events as text, and the fields behind them."""

    traceEvents: msgspec.Raw


_DOCUMENT = msgspec.json.Decoder(_Document)
_HEADER = msgspec.json.Decoder(TraceHeader)


def _document(rest: bytes) -> _Document | None:
    """The end of a document from between two events on; None where it is no sound JSON."""
    try:
        return _DOCUMENT.decode(b'{"traceEvents":[' + rest)
    except UNDECODABLE:
        return None


class _Reader:
    """Decodes the runs of one file into columns."""

    def __init__(self, exact: bool, distributed: bool, damage: Damage) -> None:
        self.strings = StringTable()
        self.columns = ColumnBuilder(self.strings, distributed)
        self.damage = damage
        self.events = 0
        self._events = EventDecoder(exact, distributed, damage)

    @cached_property
    def _repair(self) -> Repair:
        # Few files are damaged.
        from tb_dlprof_plugin.readers.kineto.json_recovery.stream import Repair

        return Repair(self._events.decode, self._take, self.damage)

    def read(self, head: bytes, text: bytes, blocks: Iterator[bytes]) -> TraceHeader:
        """Reads all events; ``text`` is what was already read of them. Returns the header."""
        rest, ended = event_runs(text, blocks, self._accept, lambda run: self._repair.read(run, False), self.damage)
        rest = rest.rstrip(b"\0")  # what a crash of the machine leaves
        is_list = not head.startswith(b"{")
        header = TraceHeader() if is_list else self._header(head + b"]}")
        if not ended:
            document = None if is_list else _document(rest)
            events = bytes(document.traceEvents) if document else b"[" + rest
            if (is_list or document) and self._accept(events):
                header.fill(document or TraceHeader())
                return header
            stop, ended = self._repair.read(rest, True)
            rest = rest[stop:]
        if not ended:
            self._cut_short()
        elif not is_list:
            header.fill(self._header(b'{"traceEvents":[]' + rest))
        elif rest.strip():
            self.damage.add("text_behind")
        return header

    def _cut_short(self) -> None:
        if not any(self.damage.has(code) for code in ("oversized", "gzip_cut", "gzip_damaged")):
            self.damage.add("cut_short")

    def _accept(self, text: bytes) -> bool:
        events = self._events.decode(text)
        if events is not None:
            self._take(events)
        return events is not None

    def _take(self, events: list[Any]) -> None:
        self.events += len(events)
        complete, instant = (
            list(compress(events, map(kind.__contains__, map(type, events))))
            for kind in (self._events.complete, self._events.instant)
        )
        self.columns.add(complete, [event for event in instant if event.name == "[memory]"])

    def _header(self, text: bytes) -> TraceHeader:
        try:
            return _HEADER.decode(text)
        except UNDECODABLE as error:
            truncated = str(error) == TRUNCATED
        header = TraceHeader()
        from tb_dlprof_plugin.readers.kineto.json_recovery.event import repair_json

        repaired = repair_json(text)
        if truncated and repaired is None:
            self._cut_short()
            return header
        if repaired is None:
            self.damage.add("header_damaged")
            return header
        self.damage.add("header_mended", bool(repaired.codes))
        if repaired.rest.strip():
            self.damage.add("text_behind")
        for field in msgspec.structs.fields(TraceHeader):
            try:
                raw = msgspec.json.encode(repaired.value.get(field.name))  # a lone surrogate has no UTF-8
                setattr(header, field.name, json_decoder(field.type, strict=False).decode(raw))
            except UNDECODABLE:
                self.damage.add("header_damaged")
        return header


def _is_distributed(head: bytes, text: bytes) -> bool:
    """Whether the file says that it is of a distributed training, before its events or in the first of them."""
    return b'"distributedInfo"' in head or b'"Collective name"' in text


def _is_inexact(text: bytes) -> bool:
    """Whether a float64 is too coarse for the file's starts, by the first of them that has a fraction."""
    first = _TIME_WITH_FRACTION.search(text)
    return first is not None and int(first[1]) >= _INEXACT_FROM_US


def _timeline(source: Path, reader: _Reader, header: TraceHeader) -> Timeline:
    columns, damage = reader.columns, reader.damage
    host, device = columns.host_events(), columns.device_events()
    if columns.unlabelled and not len(device):
        host, device = by_thread(host, reader.strings.values)
        damage.add("python_exporter")
    middle = _middle(host, device)
    host = _sound(host, middle, damage)
    device = _sound(device, middle, damage)
    memory = columns.memory_events()
    memory = take_rows(memory, _is_near(memory.time_ns, middle))
    frames = _sound(columns.frames(), middle, damage)
    damage.add("python_frames", columns.python_frames)
    if not len(host) and not len(device):
        raise TraceError(f"{source} {_nothing_found(reader)}.")
    # Times count from the first event: what follows then fits any integer width and delta coding starts small.
    first = min(int(table.start_ns.min()) for table in (host, device) if len(table))
    communications = columns.communication.events()
    for start in (host.start_ns, device.start_ns, memory.time_ns, frames.start_ns, communications.start_ns):
        start -= first
    rank = header.distributedInfo or Distributed()
    return Timeline(
        source=str(source),
        base_time_unix_ns=(header.baseTimeNanoseconds or 0) + first,
        strings=reader.strings.values,
        host=host,
        device=device,
        launch_configs=columns.launch_configs(),
        device_properties=[_properties(device) for device in header.deviceProperties or []],
        rank=rank.rank,
        world_size=rank.world_size,
        cuda_runtime_version=header.cuda_runtime_version,
        cuda_driver_version=header.cuda_driver_version,
        record_shapes=None if header.record_shapes is None else bool(header.record_shapes),
        notes=damage.notes(),
        memory=memory,
        frames=frames,
        frame_places=columns.frame_places(),
        events=reader.events,
        repaired=damage.repaired,
        input_shapes=columns.input_shapes(),
        input_dtypes=columns.input_dtypes(),
        system=System(hostname=text_of(header.host_name) or None),
        communications=communications,
        process_groups=completed(columns.communication.groups, described_groups(rank.pg_config)),
        backend=text_of(rank.backend),
    )


def _nothing_found(reader: _Reader) -> str:
    """The message for a file without usable events: its faults first."""
    reasons = reader.damage.reasons()
    if reasons and not reader.events and not any(reader.damage.has(code) for code in _LOST):
        return "is not a PyTorch profiler trace; pass the *.pt.trace.json[.gz] file that torch.profiler wrote"
    if reasons:
        return f"{reasons}, and no op and no kernel is left; record it again, or copy it again"
    return "holds no op and no kernel; check that the profiler ran during training steps"


def _properties(device: Device) -> DeviceProperties:
    return DeviceProperties(
        device.id, device.name, device.computeMajor, device.computeMinor, device.numSms, device.totalGlobalMem
    )


def _middle(host: HostEvents, device: DeviceEvents) -> int:
    starts: Ints = np.concatenate((host.start_ns, device.start_ns))
    starts = starts[starts != UNKNOWN_TIME]
    return int(np.sort(starts)[len(starts) // 2]) if len(starts) else 0


def _sound(events: _T, middle: int, damage: Damage) -> _T:
    """The events with usable times, and durations of at least 0."""
    duration = events.duration_ns
    negative = (duration < 0) & (duration != UNKNOWN_TIME)
    damage.add("negative_duration", int(negative.sum()))
    duration[negative] = 0
    kept = _is_near(events.start_ns, middle) & (duration != UNKNOWN_TIME) & (duration < _LONGEST_RECORDING_NS)
    damage.add("absurd_time", int((~kept).sum()))
    return events if kept.all() else take_rows(events, kept)


def _is_near(times: Ints, middle: int) -> npt.NDArray[np.bool_]:
    """Which times are known and can belong to the recording around ``middle``."""
    # Asked for apart: less a middle of 0, UNKNOWN_TIME is the lowest int64, whose np.abs() is negative.
    return (times != UNKNOWN_TIME) & (np.abs(times - middle) < _LONGEST_RECORDING_NS)
