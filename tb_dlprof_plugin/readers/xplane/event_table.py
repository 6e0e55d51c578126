"""The events of an XPlane file's lines as columns, with the stats that are read, each a column of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import Bools, Ints
from tb_dlprof_plugin.readers.xplane.wire import BYTES, FIXED64, VARINT, Buffer, Field, fields, varint
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
_MOST_PS = 2**62


@dataclass(frozen=True, slots=True)
class Line:
    """A line whose events are read: its plane's position, number and name."""

    plane: int
    id: int
    name: str


@dataclass(frozen=True, slots=True)
class EventTable:
    """Events in the order of the file. ``line`` is the position in ``lines``; times count from ``base_ns``.

    ``stats`` has the columns of `TEXTS` and `NUMBERS`. ``damaged`` counts events that were dropped.
    """

    lines: list[Line]
    line: Ints
    name: Ints
    start_ns: Ints
    duration_ns: Ints
    stats: dict[str, Ints]
    base_ns: int
    damaged: int

    def __len__(self) -> int:
        return len(self.line)

    def only(self, rows: Bools) -> EventTable:
        """Some of the events."""
        return EventTable(
            self.lines,
            self.line[rows],
            self.name[rows],
            self.start_ns[rows],
            self.duration_ns[rows],
            {name: column[rows] for name, column in self.stats.items()},
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
    buffer = Buffer(messages)
    line = np.repeat(np.arange(len(chosen)), counts)
    plane = np.array([position for position, _ in chosen], dtype=np.int64)[line]
    damaged = np.zeros(len(messages), dtype=np.bool_)
    metadata, offset, duration = (np.zeros(len(messages), dtype=np.int64) for _ in range(3))
    stat_fields: list[Field] = []
    columns = {_EVENT_METADATA: metadata, _EVENT_OFFSET: offset, _EVENT_DURATION: duration}
    for field in fields(buffer, buffer.start, buffer.stop, damaged):
        if field.wire == VARINT and field.number in columns:
            columns[field.number][field.row] = field.value
        elif field.wire == BYTES and field.number == _EVENT_STAT:
            stat_fields.append(field)

    stats = _Stats(planes, strings, len(messages))
    if stat_fields:
        stats.add(buffer, stat_fields, plane, damaged)
    name = np.zeros(len(messages), dtype=np.int64)
    for position in np.unique(plane).tolist():
        rows = np.flatnonzero(plane == position)
        name[rows] = _names(planes[position], metadata[rows], strings)
        stats.add_of_metadata(planes[position], rows, metadata[rows])
    damaged |= (offset < 0) | (duration < 0) | (offset > _MOST_PS) | (duration > _MOST_PS) | (name == 0)

    begin = np.array([one.timestamp_ns for _, one in chosen], dtype=np.int64)
    absolute = begin > ABSOLUTE_FROM_NS
    base_ns = started_ns or (int(begin[absolute].min()) if absolute.any() else 0)
    begin = np.where(absolute, begin - base_ns, begin)
    # Both ends are rounded down, so that what lies within stays within.
    start = begin[line] + offset // 1000
    stop = begin[line] + (offset + duration) // 1000
    table = EventTable(
        [Line(position, one.id, one.name.decode(errors="replace")) for position, one in chosen],
        line, name, start, stop - start, stats.columns, base_ns, int(damaged.sum()),
    )  # fmt: skip
    return table.only(~damaged) if damaged.any() else table


def _names(plane: XPlane, metadata: Ints, strings: StringTable) -> Ints:
    """The string of each event's name; 0 for an event without one."""
    known, row = distinct(metadata)
    found = [plane.event_metadata.get(one) for one in known.tolist()]
    names = [strings.add(text_of(one.name) or "(no name)") if one is not None else 0 for one in found]
    return np.array(names, dtype=np.int64)[row] if names else np.zeros(0, dtype=np.int64)


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

    def __init__(self, planes: list[XPlane], strings: StringTable, events: int) -> None:
        self.planes, self.strings = planes, strings
        self.columns = {name: np.zeros(events, dtype=np.int64) for name in TEXTS}
        self.columns |= {name: np.full(events, MISSING) for name in NUMBERS}
        self._wanted = (*TEXTS, *NUMBERS)

    def add(self, buffer: Buffer, found: list[Field], plane_of_event: Ints, damaged: Bools) -> None:
        """The stats of all events; one that is no message costs its event."""
        event = np.concatenate([field.row for field in found])
        start = np.concatenate([field.start for field in found])
        stop = np.concatenate([field.stop for field in found])
        which = np.full(len(event), -1, dtype=np.int64)
        ids = self._ids(plane_of_event)
        usual = self._add_usual(buffer, (event, start, stop), plane_of_event, ids)
        left = ~usual
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
        word = buffer.words[start].view(np.int64)
        second = (word >> 8) & 255
        long = second >> 7
        number = (second & 127) | (((word >> 16) & 127) * long << 7)
        usual = ((word & 255) == _ID_TAG) & ((word >> 23) & long == 0) & (stop - start > 2 + long)
        which = np.where(number < ids.shape[1], ids[plane_of_event[event], np.minimum(number, ids.shape[1] - 1)], -1)
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
        rows, tag, value, begin, after = (column[fits] for column in (rows, tag, value, begin, after))
        for kind in np.flatnonzero(np.bincount(tag, minlength=1)).tolist():
            here = tag == kind
            chosen = rows[here]
            self._set(
                buffer, kind >> 3, kind & 7, which[chosen], event[chosen], plane_of_event[event[chosen]],
                value[here], begin[here], after[here],
            )  # fmt: skip
        result: Bools = usual
        return result

    def _ids(self, plane_of_event: Ints) -> Ints:
        """By plane and id of a stat's metadata its position among the stats that are read, -1 for others."""
        positions = {name: at for at, name in enumerate(self._wanted)}
        found = [
            (plane, number, positions[name])
            for plane in np.unique(plane_of_event).tolist()
            for number, metadata in self.planes[plane].stat_metadata.items()
            if 0 <= number < _MOST_IDS and (name := text_of(metadata.name).lower()) in positions
        ]
        width = max((number for _, number, _ in found), default=0) + 1
        ids = np.full((len(self.planes), width), -1, dtype=np.int64)
        for plane, number, position in found:
            ids[plane, number] = position
        return ids

    def _set(
        self, buffer: Buffer, number: int, wire: int, which: Ints, event: Ints, plane: Ints, value: Ints, start: Ints,
        stop: Ints,
    ) -> None:  # fmt: skip
        for position in np.flatnonzero(np.bincount(which, minlength=1)).tolist():
            rows = which == position
            name = self._wanted[position]
            column = self.columns[name]
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
                column[event[rows]] = self._numbers(number, buffer, plane, value, start, stop, np.flatnonzero(rows))

    def _referred(self, plane: Ints, value: Ints) -> Ints:
        """The strings that references name."""
        pairs, row = distinct(plane, value)
        named = []
        for position, reference in pairs.tolist():
            metadata = self.planes[position].stat_metadata
            named.append(self.strings.add(text_of(metadata[reference].name)) if reference in metadata else 0)
        return np.array(named, dtype=np.int64)[row]

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

    def add_of_metadata(self, plane: XPlane, rows: Ints, metadata: Ints) -> None:
        """Stats of an event's metadata, which count for each of its events that has none of its own."""
        for number in np.unique(metadata).tolist():
            if number not in plane.event_metadata or not plane.event_metadata[number].stats:
                continue
            for name, stat in named_stats(plane, plane.event_metadata[number].stats).items():
                if name not in self.columns:
                    continue
                value = self.strings.add(stat_text(plane, stat)) if name in TEXTS else stat_number(stat)
                here = rows[metadata == number]
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
