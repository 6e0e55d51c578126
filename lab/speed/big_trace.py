"""Makes a Kineto trace of any size out of a recorded one, by repeating its steps.

The events' own text is kept, as the exporter wrote it, and only numbers in it are changed: what the profiler counts up
(times, correlation ids, External ids, sequence numbers, event and Python frame numbers, flow ids, step numbers) goes on
counting, so that the result is what a longer recording would have been: every launch finds its kernel, every backward
node its forward op, every flow its end, and steps follow each other. A repetition begins when all GPU work of the one
before has ended. What was queued on the GPU before the recording began, and the metadata, are written once.

    python lab/speed/big_trace.py SOURCE OUT --megabytes 400 [--gzip]

A megabyte is 10**6 bytes of JSON, before gzip. The result ends with the first step that reaches the size. The memory
needed is up to ten times the JSON of SOURCE, whatever the size of OUT.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

MEGABYTE = 10**6
_LARGEST_ID = 2**63 - 1
_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset", "gpu_user_annotation", "cuda_sync"}
_RUNTIME = {"cuda_runtime", "cuda_driver", "Runtime", "runtime"}
_BETWEEN = b",\n  "
_STEP = re.compile(r"ProfilerStep#(\d+)")

# What counts up, and with whom it shares its counter. A flow from a launch to its kernel has the correlation as its id.
_COUNTERS = {
    b"ts": "time",
    b"id": "correlation",
    b"correlation": "correlation",
    b"wait_on_cuda_event_record_corr_id": "correlation",
    b"External id": "external",
    b"external id": "external",
    b"Record function id": "record",
    b"Sequence number": "sequence",
    b"Ev Idx": "event",
    b"Profiler Event Index": "event",
    b"Python id": "frame",
    b"Python parent id": "frame",
}
_NUMBER = re.compile(
    rb'"(' + b"|".join(re.escape(key) for key in _COUNTERS) + rb')":\s*(\d+)|"name":\s*"ProfilerStep#(\d+)"'
)
"""Counted numbers of an event. Of a time the whole microseconds: a repetition lasts a whole number of them."""


class _Args(msgspec.Struct):
    correlation: int | None = None
    external_id: int | None = msgspec.field(default=None, name="External id")


class _Event(msgspec.Struct):
    ph: str = ""
    cat: str = ""
    name: str = ""
    id: int | str | None = None
    ts: float = 0.0
    dur: float = 0.0
    args: _Args | None = None


class _Document(msgspec.Struct):
    traceEvents: list[msgspec.Raw]


@dataclass(frozen=True, slots=True)
class Slot:
    """A counted number in an event's text."""

    start: int
    stop: int
    counter: str
    value: int


@dataclass(slots=True)
class Part:
    """Consecutive events as one text with a ``%d`` for each counted number: its value, and the name of its counter."""

    text: bytes
    values: npt.NDArray[np.int64]
    counters: list[str]
    events: int

    def at(self, shift: dict[str, int]) -> bytes:
        """The text with its numbers moved on."""
        moved = self.values + np.array([shift[name] for name in self.counters], dtype=np.int64)
        return self.text % tuple(moved.tolist())


@dataclass(slots=True)
class Recording:
    """A trace taken apart: what is written once, and the steps. ``period`` is by how much each counter goes on."""

    head: bytes
    before: Part
    steps: list[Part]
    after: Part
    tail: bytes
    period: dict[str, int] = field(default_factory=dict)


def take_apart(data: bytes) -> Recording:
    """The parts of a trace.

    Raises:
        ValueError: it is no trace or holds nothing to repeat.
    """
    try:
        texts = [bytes(raw) for raw in msgspec.json.decode(data, type=_Document).traceEvents]
        events = [msgspec.json.decode(text, type=_Event) for text in texts]
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"not a trace that can be repeated ({error})") from None
    if not texts:
        raise ValueError("a trace without events")
    opening = data.index(texts[0], data.index(b'"traceEvents"'))
    closing = data.rindex(texts[-1]) + len(texts[-1])

    step_of = _steps(events)
    count = max(step_of, default=-1) + 1
    if count < 1:
        raise ValueError("a trace without any event that could be repeated")
    slots = [_slots(text) for text in texts]
    rows: list[list[int]] = [[] for _ in range(count)]
    first = min(row for row, step in enumerate(step_of) if step >= 0)
    before, after = [], []
    for row, step in enumerate(step_of):
        if step >= 0:
            rows[step].append(row)
        elif row < first or not _describes(events[row]):
            before.append(row)
        else:
            after.append(row)
    repeated = [row for step in rows for row in step]
    begin = min(events[row].ts for row in rows[0])
    end = max(events[row].ts + events[row].dur for row in repeated)
    return Recording(
        head=data[:opening],
        before=_part(before, texts, slots),
        steps=[_part(step, texts, slots) for step in rows],
        after=_part(after, texts, slots),
        tail=data[closing:],
        period=_periods([slot for row in repeated for slot in slots[row]], int(end - begin) + 2, count),
    )


def _describes(event: _Event) -> bool:
    """Whether the event describes the recording: names of threads, its span and its end."""
    return event.ph == "M" or event.cat == "Trace" or (event.ph == "i" and event.name != "[memory]")


def _steps(events: list[_Event]) -> list[int]:
    """Per event the index of its step; -1 for what is written once.

    Calls belong to the step in which they start, GPU work and flows to that of their launch.
    """
    marks = sorted(
        {m[1]: e.ts for e in events if e.cat not in _DEVICE and e.ph == "X" and (m := _STEP.fullmatch(e.name))}.items(),
        key=lambda item: item[1],
    )
    starts = np.array([ts for _, ts in marks] or [-np.inf])
    numbers = {name: index for index, (name, _) in enumerate(marks)}

    def by_time(event: _Event) -> int:
        return int(np.searchsorted(starts, event.ts, side="right")) - 1

    launched: dict[int, int] = {}
    annotated: dict[int, int] = {}
    flow: dict[tuple[str, str, object], int] = {}
    for event in events:
        if event.ph == "s":
            flow[event.cat, event.name, event.id] = by_time(event)
        elif event.ph == "X" and event.args is not None:
            if event.cat in _RUNTIME and event.args.correlation:
                launched[event.args.correlation] = by_time(event)
            elif event.cat not in _DEVICE and event.args.external_id:
                annotated[event.args.external_id] = by_time(event)

    result = []
    for event in events:
        if _describes(event):
            step = -1
        elif event.ph == "f":
            step = flow.get((event.cat, event.name, event.id), -1)
        elif event.cat in _DEVICE:
            mark = _STEP.fullmatch(event.name)
            args = event.args or _Args()
            if mark:
                step = numbers.get(mark[1], -1)
            else:
                step = launched.get(args.correlation or 0, annotated.get(args.external_id or 0, -1))
        else:
            step = by_time(event)
        result.append(step)
    return result


def _slots(text: bytes) -> list[Slot]:
    found = []
    for match in _NUMBER.finditer(text):
        counter = _COUNTERS[match[1]] if match[1] else "step"
        group = 2 if match[1] else 3
        value = int(match[group])
        # 0 and -1 (written as unsigned) stand for "none", except where 0 is the first number.
        if value > _LARGEST_ID or (value == 0 and counter in ("correlation", "external", "record")):
            continue
        found.append(Slot(*match.span(group), counter, value))
    return found


def _part(rows: list[int], texts: list[bytes], slots: list[list[Slot]]) -> Part:
    pieces: list[bytes] = []
    for row in rows:
        text, done = texts[row], 0
        for slot in slots[row]:
            pieces += (text[done : slot.start].replace(b"%", b"%%"), b"%d")
            done = slot.stop
        pieces += (text[done:].replace(b"%", b"%%"), _BETWEEN)
    kept = [slot for row in rows for slot in slots[row]]
    return Part(
        text=b"".join(pieces[:-1]),
        values=np.array([slot.value for slot in kept], dtype=np.int64),
        counters=[slot.counter for slot in kept],
        events=len(rows),
    )


def _periods(slots: list[Slot], microseconds: int, steps: int) -> dict[str, int]:
    """By how much each counter must go on for no number to come twice."""
    period = {"time": microseconds, "step": steps}
    for counter in {*_COUNTERS.values()} - {"time"}:
        values = [slot.value for slot in slots if slot.counter == counter]
        period[counter] = max(values) - min(values) + 1 if values else 0
    return period


def repeat(recording: Recording, size: int) -> Iterator[bytes]:
    """The text of a trace of at least ``size`` bytes, piece by piece."""
    unmoved = dict.fromkeys(recording.period, 0)
    before = [recording.before.at(unmoved)] if recording.before.events else []
    left = size - len(recording.head) - sum(map(len, before)) - len(recording.after.text) - len(recording.tail)
    yield recording.head
    yield from (text + _BETWEEN for text in before)
    for step in itertools.count():
        turn, index = divmod(step, len(recording.steps))
        shift = {name: turn * period for name, period in recording.period.items()}
        text = (_BETWEEN if step else b"") + recording.steps[index].at(shift)
        yield text
        left -= len(text)
        if left <= 0:
            break
    if recording.after.events:
        # The recording's span and its end move with the last step.
        moved = recording.after.at(unmoved | {"time": shift["time"]})
        yield _BETWEEN + _longer_span(moved, shift["time"])
    yield recording.tail


def _longer_span(text: bytes, microseconds: int) -> bytes:
    """Lets the event that spans the recording begin where it began, and last longer."""

    def spans(match: re.Match[bytes]) -> bytes:
        return match[1] + b"%d" % (int(match[2]) - microseconds) + match[3] + b"%d" % (int(match[4]) + microseconds)

    return re.sub(rb'("cat": *"Trace",[^{}]*?"ts": *)(\d+)([^{}]*?"dur": *)(\d+)', spans, text)


def read(source: Path) -> bytes:
    """The JSON of a trace file, gzip or not."""
    data = source.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def make(source: Path, out: Path, megabytes: float, compress: bool = False) -> int:
    """Writes the trace; returns its size in bytes of JSON.

    Raises:
        ValueError: the source is no trace that can be repeated.
    """
    recording = take_apart(read(source))
    with gzip.open(out, "wb", compresslevel=6) if compress else out.open("wb") as stream:
        return sum(stream.write(piece) for piece in repeat(recording, int(megabytes * MEGABYTE)))


def main(argv: list[str] | None = None) -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description="Make a Kineto trace of any size out of a recorded one.")
    parser.add_argument("source", type=Path, help="a *.pt.trace.json[.gz] that torch.profiler wrote")
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=float, required=True, help="size of the JSON, in 10**6 bytes")
    parser.add_argument("--gzip", action="store_true", help="compress the result")
    args = parser.parse_args(argv)
    try:
        size = make(args.source, args.out, args.megabytes, args.gzip)
    except (OSError, ValueError) as error:
        sys.exit(f"{args.source}: {error}")
    print(f"{args.out}: {size / MEGABYTE:.1f} MB of JSON, {args.out.stat().st_size / MEGABYTE:.1f} MB on disk")


if __name__ == "__main__":
    main()
