"""A trace read a second time, by the standard library alone: what the accounts of the package are compared with.

No code of the package is used. Times are read as decimals, so that a nanosecond is a nanosecond, and rounded once.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

GPU_KINDS = {
    "kernel": "kernel",
    "Kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "Memcpy": "memcpy",
    "gpu_memset": "memset",
    "Memset": "memset",
}
LAUNCH_CATEGORIES = {"cuda_runtime", "cuda_driver", "hip_runtime", "Runtime", "runtime"}
HOST_CATEGORIES = {"cpu_op", "Operator", "user_annotation", "overhead", *LAUNCH_CATEGORIES}
LARGEST = 150_000_000
"""Bytes of JSON; a larger file takes the standard library too long."""

Interval = tuple[int, int]


@dataclass(frozen=True)
class Event:
    """A complete event; ``start_ns`` as the file counts."""

    name: str
    cat: str
    start_ns: int
    duration_ns: int
    thread: tuple[str, str]
    args: dict[str, Any]

    @property
    def interval(self) -> Interval:
        return self.start_ns, self.start_ns + self.duration_ns


@dataclass(frozen=True)
class RawTrace:
    """``base_ns`` is what the file says that its times count from."""

    base_ns: int
    events: list[Event]
    memory: list[dict[str, Any]]

    def gpu(self) -> list[Event]:
        return [event for event in self.events if event.cat in GPU_KINDS]

    def host(self) -> list[Event]:
        return [event for event in self.events if event.cat in HOST_CATEGORIES]

    def launched_correlations(self) -> set[int]:
        """Correlation ids of the runtime and driver calls in the file."""
        found = {event.args.get("correlation") for event in self.events if event.cat in LAUNCH_CATEGORIES}
        return {number for number in found if isinstance(number, int) and number > 0}


def read_raw(path: Path) -> RawTrace | None:
    """The events of a trace; None for a file that is no valid JSON, or too large."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError):
            return None
    if len(data) > LARGEST:
        return None
    try:
        document = json.loads(data, parse_float=Decimal)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    events = document.get("traceEvents") or []
    return RawTrace(
        base_ns=int(document.get("baseTimeNanoseconds") or 0),
        events=[_event(event) for event in events if event.get("ph") == "X"],
        memory=[event.get("args") or {} for event in events if event.get("name") == "[memory]"],
    )


def _event(event: dict[str, Any]) -> Event:
    return Event(
        name=str(event.get("name", "")),
        cat=str(event.get("cat", "")),
        start_ns=nanoseconds(event["ts"]),
        duration_ns=nanoseconds(event.get("dur", 0)),
        thread=(str(event.get("pid")), str(event.get("tid"))),
        args=event.get("args") or {},
    )


def nanoseconds(microseconds: Any) -> int:
    """Microseconds as the file has them, rounded to nanoseconds."""
    return int((Decimal(microseconds) * 1000).to_integral_value())


def device_of(event: Event) -> int:
    """The GPU of an event on a GPU."""
    device = event.args.get("device", event.thread[0])
    return int(device) if str(device).isdigit() else 0


def union_ns(intervals: Iterable[Interval], window: Interval | None = None) -> int:
    """Time that intervals cover, each moment once; within a window, if one is given."""
    return sum(stop - start for start, stop in disjoint(_clip(intervals, window)))


def _clip(intervals: Iterable[Interval], window: Interval | None) -> Iterator[Interval]:
    for start, stop in intervals:
        if window is None:
            yield start, stop
        elif start < window[1] and stop > window[0]:
            yield max(start, window[0]), min(stop, window[1])


def disjoint(intervals: Iterable[Interval]) -> Iterator[Interval]:
    """The same moments as sorted intervals that do not touch."""
    open_: Interval | None = None
    for start, stop in sorted(intervals):
        if open_ is None or start > open_[1]:
            if open_ is not None:
                yield open_
            open_ = start, stop
        elif stop > open_[1]:
            open_ = open_[0], stop
    if open_ is not None:
        yield open_
