"""When inferences ran, from ``trtexec --exportTimes``, and how long layers took, from ``--exportProfile``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tb_dlprof_plugin.readers.errors import UNDECODABLE
from tb_dlprof_plugin.readers.json_file import decoded, number, text_of

_ROW = re.compile(
    r'"name"\s*:\s*"(?P<name>.*)"\s*,\s*"timeMs"\s*:\s*(?P<total>[\d.e+-]+)(?:\s*,\s*"averageMs"\s*:\s*(?P<mean>[\d.e+-]+))?'
)
"""A row of the profile: trtexec does not escape names of layers, which may hold quotation marks."""


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when (ns)."""

    start_ns: int
    stop_ns: int


@dataclass(frozen=True, slots=True)
class Inference:
    """One inference: the CPU's call, copies to the GPU, computing, copies from it."""

    enqueue: Span
    to_gpu: Span
    compute: Span
    from_gpu: Span


def read_times(path: Path) -> list[Inference]:
    """The inferences in order of time; those without a computing time are left out.

    Raises:
        TraceError: the file is no JSON.
    """
    content = decoded(path, text_of(path))
    rows = [row for row in content if isinstance(row, dict)] if isinstance(content, list) else []
    found = []
    for row in rows:
        spans = [_span(row, *names) for names in _SPANS]
        if spans[2].stop_ns > spans[2].start_ns:
            found.append(Inference(*spans))
    return sorted(found, key=lambda one: one.compute.start_ns)


_SPANS = (
    ("startEnqMs", "endEnqMs"), ("startH2dMs", "endH2dMs"), ("startComputeMs", "endComputeMs"),
    ("startD2hMs", "endD2hMs"),
)  # fmt: skip


def _span(row: dict[str, object], start: str, stop: str) -> Span:
    # Older releases write "startInMs" and "startOutMs" for the copies.
    old = {"startH2dMs": "startInMs", "endH2dMs": "endInMs", "startD2hMs": "startOutMs", "endD2hMs": "endOutMs"}
    begin, end = (number(row.get(name, row.get(old.get(name, "")))) for name in (start, stop))
    begin_ns = round(begin * 1e6)
    return Span(begin_ns, max(begin_ns, round(end * 1e6)))


def read_profile(path: Path) -> tuple[int, list[tuple[str, int]]]:
    """How many inferences were averaged, and the layers with their average times (ns), in their order.

    Raises:
        TraceError: the file cannot be read.
    """
    text = text_of(path).decode(errors="replace")
    try:
        content = msgspec.json.decode(text)
    except UNDECODABLE:
        content = [*({"count": int(one)} for one in re.findall(r'"count"\s*:\s*(\d{1,9})', text)[:1]), *_rows(text)]
    rows = [row for row in content if isinstance(row, dict)] if isinstance(content, list) else []
    count = next((int(number(row["count"])) for row in rows if "count" in row), None) or _count_by_times(rows)
    layers = []
    for row in rows:
        if isinstance(row.get("name"), str):
            mean = number(row.get("averageMs")) or number(row.get("timeMs")) / max(1, count)
            layers.append((row["name"], round(max(0.0, mean) * 1e6)))
    return max(1, count), layers


def _count_by_times(rows: list[dict[str, object]]) -> int:
    """How many inferences were averaged where the file does not say so: total over average of the longest layer."""
    longest = max(rows, key=lambda row: number(row.get("averageMs")), default={})
    average = number(longest.get("averageMs"))
    return max(1, round(number(longest.get("timeMs")) / average)) if average > 0 else 1


def _rows(text: str) -> list[dict[str, object]]:
    """The rows of a profile with unescaped names."""
    found = []
    for row in _ROW.finditer(text):
        try:
            found.append({"name": row["name"], "timeMs": float(row["total"]), "averageMs": float(row["mean"] or 0)})
        except ValueError:
            continue
    return found
