"""The events of an XPlane file's lines as columns, with the stats that are read, each a column of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import Bools, Ints
from tb_dlprof_plugin.readers.xplane.wire import BYTES, FIXED64, VARINT, Buffer, WireField, fields, varint
from tb_dlprof_plugin.readers.xplane.xplane_pb2 import XLine, XPlane, XStat

TEXTS = (
    "kernel_details", "memcpy_details", "memset_details", "hlo_op", "hlo_module", "tf_op", "name", "annotation",
    "allocator_name",
)  # fmt: skip
"""Stats that are texts: their columns hold indices of strings, 0 where an event lacks them."""
NUMBERS = (
    "correlation_id", "device_id", "cuda_graph_id", "program_id", "step_num", "theoretical_occupancy_pct",
    "bytes_allocated", "allocation_bytes", "requested_bytes", "addr",
)  # fmt: skip
"""Stats that are numbers, `MISSING` where an event lacks them; fractions are rounded."""
MISSING = np.iinfo(np.int64).min
ABSOLUTE_FROM_NS = 10**17
"""Times of a line above it count from 1970 (10**17 ns is in 1973), those below from the beginning of the recording."""

_EVENT_METADATA, _EVENT_OFFSET, _EVENT_DURATION, _EVENT_STAT = 1, 2, 3, 4
_STAT_METADATA, _STAT_DOUBLE, _STAT_UINT, _STAT_INT, _STAT_TEXT, _STAT_BYTES, _STAT_REF = range(1, 8)
_ID_TAG = _STAT_METADATA << 3 | VARINT
_MOST_IDS = 2**20
"""Of stat metadata; a plane has some hundred."""
_MOST_PS = 2**61
_LONGEST_RECORDING_NS = 2**46
"""19.5 hours: what begins further away from most events has a broken time."""
_BLOCK = 8192
"""Events that are decoded together. Columns of all at once fit into no cache, and the system would hand out new memory
for each."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line whose events are read: its plane's position, number and name."""

    plane: int
    id: int
    name: str


class EventStats:
    """The columns of `TEXTS` and `NUMBERS` by name. In most recordings most are empty, and of some events few are
    asked for: a column is made, and its rows are taken, when it is first asked for."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._columns: dict[str, Ints] = {}
        self._source: EventStats | None = None
        self._rows: Bools | slice = slice(None)

    def __getitem__(self, name: str) -> Ints:
        column = self._columns.get(name)
        if column is None:
            column = self._empty(name) if self._source is None else self._source[name][self._rows]
            self._columns[name] = column
        return column

    def only(self, rows: Bools | slice, count: int) -> EventStats:
        """Some of the rows, ``count`` of them."""
        part = EventStats(count)
        part._source, part._rows = self, rows
        return part

    def _empty(self, name: str) -> Ints:
        if name in TEXTS:
            return np.zeros(self._count, dtype=np.int64)
        return np.full(self._count, MISSING)


@dataclass(frozen=True, slots=True)
class EventTable:
    """Events in the order of the file. ``line`` is the position in ``lines``; times count from ``base_ns``.

    ``damaged`` counts events that were dropped.
    """

    lines: list[Line]
    line: Ints
    name: Ints
    start_ns: Ints
    duration_ns: Ints
    stats: EventStats
    base_ns: int
    damaged: int

    def __len__(self) -> int:
        return len(self.line)

    def only(self, rows: Bools | slice) -> EventTable:
        """Some of the events."""
        line = self.line[rows]
        return EventTable(
            self.lines,
            line,
            self.name[rows],
            self.start_ns[rows],
            self.duration_ns[rows],
            self.stats.only(rows, len(line)),
            self.base_ns,
            self.damaged,
        )


def read_events(
    planes: list[XPlane], chosen: list[tuple[int, XLine]], strings: StringTable, started_ns: int
) -> EventTable:
    """The events of some lines.

    Args:
        planes: of the file.
        chosen: the lines, each with the position of its plane; those of a plane stand together.
        strings: names and texts are added to it.
        started_ns: when the recording began, in ns since 1970; 0 where that is not known.
    """
    messages: list[bytes] = []
    counts: list[int] = []
    for _, one in chosen:
        counts.append(len(one.events))
        messages += one.events
    line = np.repeat(np.arange(len(chosen)), counts)
    plane = np.array([position for position, _ in chosen], dtype=np.int64)[line]
    damaged = np.zeros(len(messages), dtype=np.bool_)
    metadata, offset, duration = (np.zeros(len(messages), dtype=np.int64) for _ in range(3))
    columns = {_EVENT_METADATA: metadata, _EVENT_OFFSET: offset, _EVENT_DURATION: duration}
    stats = _Stats(planes, {position for position, _ in chosen}, strings, len(messages))
    for first in range(0, len(messages), _BLOCK):
        block = slice(first, first + _BLOCK)
        buffer = Buffer(messages[block])
        stat_fields: list[WireField] = []
        for field in fields(buffer, buffer.start, buffer.stop, damaged[block]):
            if field.wire == VARINT and field.number in columns:
                columns[field.number][block][field.row] = field.value
            elif field.wire == BYTES and field.number == _EVENT_STAT:
                stat_fields.append(field)
        if stat_fields:
            stats.add(buffer, stat_fields, block, plane[block], damaged[block])
    name = np.zeros(len(messages), dtype=np.int64)
    for position, rows in _of_planes(chosen, counts):
        known, row = distinct(metadata[rows])
        name[rows] = _names(planes[position], known, strings)[row]
        stats.add_of_metadata(planes[position], rows, known, row)
    damaged |= (offset < 0) | (duration < 0) | (offset > _MOST_PS) | (duration > _MOST_PS) | (name == 0)

    begin = np.array([xline.timestamp_ns for _, xline in chosen], dtype=np.int64)
    absolute = begin > ABSOLUTE_FROM_NS
    base_ns = started_ns or (int(begin[absolute].min()) if absolute.any() else 0)
    begin = np.where(absolute, begin - base_ns, begin)
    # Both ends are rounded down, so that what lies within stays within.
    start = begin[line] + offset // 1000
    stop = begin[line] + (offset + duration) // 1000
    damaged |= stop - start > _LONGEST_RECORDING_NS
    sound = start[~damaged]
    if len(sound) and int(sound.max()) - int(sound.min()) > _LONGEST_RECORDING_NS:
        middle = int(np.sort(sound)[len(sound) // 2])
        damaged |= (start < middle - _LONGEST_RECORDING_NS) | (start > middle + _LONGEST_RECORDING_NS)
    table = EventTable(
        [Line(position, xline.id, xline.name.decode(errors="replace")) for position, xline in chosen],
        line, name, start, stop - start, stats.columns, base_ns, int(damaged.sum()),
    )  # fmt: skip
    return table.only(~damaged) if damaged.any() else table


def _of_planes(chosen: list[tuple[int, XLine]], counts: list[int]) -> Iterator[tuple[int, slice]]:
    """The events of each plane, which stand together."""
    begin = stop = 0
    for at, (position, _) in enumerate(chosen):
        stop += counts[at]
        if at + 1 == len(chosen) or chosen[at + 1][0] != position:
            if stop > begin:
                yield position, slice(begin, stop)
            begin = stop


def _names(plane: XPlane, known: Ints, strings: StringTable) -> Ints:
    """The string of each metadata's name; 0 for one that the plane does not have."""
    found = [plane.event_metadata.get(one) for one in known.tolist()]
    names = [strings.add(text_of(one.name) or "(no name)") if one is not None else 0 for one in found]
    return np.array(names, dtype=np.int64)


def distinct(*columns: Ints) -> tuple[Ints, Ints]:
    """The distinct rows of columns of one length (of one column its distinct values) and the place of each row among
    them. Columns of small numbers, such as strings and ids, are not sorted."""
    values, row = _distinct_values(columns[0])
    for column in columns[1:]:
        others, other_row = _distinct_values(column)
        _, row = _distinct_values(row * max(1, len(others)) + other_row)
    if len(columns) == 1:
        return values, row
    first = np.zeros(int(row.max(initial=-1)) + 1, dtype=np.int64)
    first[row[::-1]] = np.arange(len(row) - 1, -1, -1)
    return np.stack([column[first] for column in columns], axis=1), row


def _distinct_values(column: Ints) -> tuple[Ints, Ints]:
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    if high - low > 2**20 + 4 * len(column):
        values, row = np.unique(column, return_inverse=True)
        return values, row
    seen = np.zeros(high - low + 1, dtype=np.bool_)
    seen[column - low] = True
    places = np.cumsum(seen) - 1
    return np.flatnonzero(seen) + low, places[column - low]


def text_of(value: bytes) -> str:
    """A text of the file; what is no UTF-8 is replaced."""
    return value.decode(errors="replace")


class _Stats:
    """Fills the columns of the stats that are read."""

    def __init__(self, planes: list[XPlane], used: set[int], strings: StringTable, events: int) -> None:
        self.planes, self.strings = planes, strings
        self.columns = EventStats(events)
        self._wanted = (*TEXTS, *NUMBERS)
        self._ids = self._make_ids(used)
        # By plane and id of a stat's metadata the string that a reference to it means, -1 until it is asked for.
        largest = [one for plane in used for one in planes[plane].stat_metadata if 0 <= one < _MOST_IDS]
        self._texts = np.full((len(planes), max(largest, default=0) + 2), -1, dtype=np.int64)
        self._block = slice(0)

    def add(self, buffer: Buffer, found: list[WireField], block: slice, plane_of_event: Ints, damaged: Bools) -> None:
        """The stats of a block of events; one that is no message costs its event."""
        self._block = block
        event = np.concatenate([field.row for field in found])
        start = np.concatenate([field.start for field in found])
        stop = np.concatenate([field.stop for field in found])
        which = np.full(len(event), -1, dtype=np.int64)
        ids = self._ids
        usual = self._add_usual(buffer, (event, start, stop), plane_of_event, ids)
        left = np.flatnonzero(~usual)
        event, start, stop, which = event[left], start[left], stop[left], which[left]
        broken = np.zeros(len(event), dtype=np.bool_)
        for field in fields(buffer, start, stop, broken):
            if field.number == _STAT_METADATA:
                plane = plane_of_event[event[field.row]]
                sound = (field.value >= 0) & (field.value < ids.shape[1])
                which[field.row] = np.where(sound, ids[plane, np.where(sound, field.value, 0)], -1)
            else:
                # A stat's number comes before its value.
                kept = which[field.row] >= 0
                rows = field.row[kept]
                self._set(
                    buffer, field.number, field.wire, which[rows], event[rows], plane_of_event[event[rows]],
                    field.value[kept], field.start[kept], field.stop[kept],
                )  # fmt: skip
        damaged[event[broken]] = True

    def _add_usual(self, buffer: Buffer, spans: tuple[Ints, Ints, Ints], plane_of_event: Ints, ids: Ints) -> Bools:
        """Takes the stats that are written as they always are, a short number of the metadata and then one value, and
        says which those are: they are read without looking at each field."""
        event, start, stop = spans
        second, third = buffer.data[start + 1], buffer.data[start + 2]
        long = second >> 7
        number = (second & 127).astype(np.int64) + (third & 127).astype(np.int64) * long * 128
        usual = (buffer.data[start] == _ID_TAG) & (third & (long << 7) == 0) & (stop - start > 2 + long)
        # Ids that no stat of interest has lead to the last column, which is empty.
        which = ids.ravel()[(plane_of_event * ids.shape[1])[event] + np.minimum(number, ids.shape[1] - 1)]
        # Other stats need no decoding.
        rows = np.flatnonzero(usual & (which >= 0))
        at = start[rows] + 2 + long[rows]
        tag = buffer.data[at].astype(np.int64)
        value, length = varint(buffer, at + 1)
        begin, after = at + 1, at + 1 + length
        is_bytes, is_double = (tag & 7) == BYTES, (tag & 7) == FIXED64
        begin = np.where(is_bytes, after, begin)
        after = np.where(is_bytes, after + np.clip(value, 0, 2**40), np.where(is_double, at + 9, after))
        fits = (after == stop[rows]) & (tag < 128) & (is_bytes | is_double | ((tag & 7) == VARINT))
        usual[rows[~fits]] = False
        if is_double.any():
            value[is_double] = buffer.words[at[is_double] + 1].view(np.int64)
        if not fits.all():
            rows, tag, value, begin, after = (column[fits] for column in (rows, tag, value, begin, after))
        for kind in np.flatnonzero(np.bincount(tag, minlength=1)).tolist():
            here = np.flatnonzero(tag == kind)
            chosen = rows[here]
            self._set(
                buffer, kind >> 3, kind & 7, which[chosen], event[chosen], plane_of_event[event[chosen]],
                value[here], begin[here], after[here],
            )  # fmt: skip
        return usual

    def _make_ids(self, used: set[int]) -> Ints:
        """By plane and id of a stat's metadata its position among the stats that are read, -1 for others."""
        positions = {name: at for at, name in enumerate(self._wanted)}
        found = [
            (plane, number, positions[name])
            for plane in sorted(used)
            for number, metadata in self.planes[plane].stat_metadata.items()
            if 0 <= number < _MOST_IDS and (name := text_of(metadata.name).lower()) in positions
        ]
        # One column more, of which the last stays empty.
        width = max((number for _, number, _ in found), default=0) + 2
        ids = np.full((len(self.planes), width), -1, dtype=np.int64)
        for plane, number, position in found:
            ids[plane, number] = position
        return ids

    def _set(
        self, buffer: Buffer, number: int, wire: int, which: Ints, event: Ints, plane: Ints, value: Ints, start: Ints,
        stop: Ints,
    ) -> None:  # fmt: skip
        for position in np.flatnonzero(np.bincount(which, minlength=1)).tolist():
            rows = np.flatnonzero(which == position)
            name = self._wanted[position]
            column = self.columns[name][self._block]
            if name in TEXTS:
                if number == _STAT_REF and wire == VARINT:
                    column[event[rows]] = self._referred(plane[rows], value[rows])
                elif number in (_STAT_TEXT, _STAT_BYTES) and wire == BYTES:
                    spans = zip(start[rows].tolist(), stop[rows].tolist(), strict=True)
                    column[event[rows]] = [self.strings.add(text_of(buffer.text(*span))) for span in spans]
            elif number in (_STAT_UINT, _STAT_INT) and wire == VARINT:
                column[event[rows]] = value[rows]
            elif number == _STAT_DOUBLE and wire == FIXED64:
                with np.errstate(invalid="ignore"):
                    column[event[rows]] = np.nan_to_num(value[rows].view(np.float64), nan=MISSING).round()
            elif number in (_STAT_TEXT, _STAT_REF):
                column[event[rows]] = self._numbers(number, buffer, plane, value, start, stop, rows)

    def _referred(self, plane: Ints, value: Ints) -> Ints:
        """The strings that references name."""
        width = self._texts.shape[1]
        place = plane * width + np.where((value >= 0) & (value < width), value, width - 1)
        found: Ints = self._texts.ravel()[place]
        if (found < 0).any():
            for one in np.unique(place[found < 0]).tolist():
                position, reference = divmod(one, width)
                metadata = self.planes[position].stat_metadata
                known = reference in metadata
                self._texts[position, reference] = self.strings.add(text_of(metadata[reference].name)) if known else 0
            found = self._texts.ravel()[place]
        return found

    def _numbers(
        self, number: int, buffer: Buffer, plane: Ints, value: Ints, start: Ints, stop: Ints, rows: Ints
    ) -> list[int]:
        """Numbers that some versions write as texts."""
        result = []
        for row in rows.tolist():
            if number == _STAT_TEXT:
                text = text_of(buffer.text(int(start[row]), int(stop[row])))
            else:
                metadata = self.planes[int(plane[row])].stat_metadata
                text = text_of(metadata[int(value[row])].name) if int(value[row]) in metadata else ""
            result.append(int(text) if text.isascii() and text.isdigit() and len(text) < 19 else MISSING)
        return result

    def add_of_metadata(self, plane: XPlane, rows: slice, known: Ints, row: Ints) -> None:
        """Stats of an event's metadata, which count for each of its events that has none of its own.

        Args:
            plane: of these events.
            rows: the plane's events.
            known: the distinct metadata of these.
            row: per event its place among them.
        """
        for at, number in enumerate(known.tolist()):
            if number not in plane.event_metadata or not plane.event_metadata[number].stats:
                continue
            for name, stat in named_stats(plane, plane.event_metadata[number].stats).items():
                if name not in self._wanted:
                    continue
                value = self.strings.add(stat_text(plane, stat)) if name in TEXTS else stat_number(stat)
                here = np.flatnonzero(row == at) + rows.start
                column = self.columns[name]
                empty = here[column[here] == (0 if name in TEXTS else MISSING)]
                if value is not None:
                    column[empty] = value


def named_stats(plane: XPlane, stats: object) -> dict[str, XStat]:
    """Stats by their names in lower case."""
    known = plane.stat_metadata
    return {
        text_of(known[stat.metadata_id].name).lower(): stat
        for stat in stats  # type: ignore[attr-defined]
        if stat.metadata_id in known
    }


def stat_text(plane: XPlane, stat: XStat | None) -> str:
    """The text of a stat, "" where it has none."""
    if stat is None:
        return ""
    if stat.HasField("ref_value"):
        known = plane.stat_metadata
        return text_of(known[stat.ref_value].name) if stat.ref_value in known else ""
    return text_of(stat.str_value or stat.bytes_value)


def stat_number(stat: XStat | None) -> int | None:
    """The number of a stat, None where it has none."""
    kind = None if stat is None else stat.WhichOneof("value")
    if stat is None or kind is None or kind == "bytes_value" or kind == "ref_value":
        return None
    if kind == "str_value":
        text = stat.str_value.decode(errors="replace")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    value: float = getattr(stat, kind)
    return int(value) if abs(value) < 2**63 else None
