"""The envelope of every tool: an answer, its figures with intervals, what cannot be said, where it is shown."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from tb_dlprof_plugin.model.visible import visible

SCHEMA_VERSION = 1
DEFAULT_CHARACTERS = 8_000
MOST_CHARACTERS = 50_000
LEVEL = 0.95
"""Of all intervals that are estimated."""
_DIGITS = 6
"""Significant ones: more are no news, and cost characters."""

Source = Literal["recorded", "measured", "light", "simulated", "forecast", "planned"]
"""Where a figure comes from: the recording itself; steps timed without the profiler; the window of kernels alone; a
replay of the recording; a forecast or a plan of another configuration."""
SOURCES: dict[str, Source] = {"measured": "measured", "light": "light", "simulated": "simulated"}
"""Of a step's estimate; any other is "recorded"."""


class ToolFailure(Exception):
    """What was asked for is not there; one sentence that says what is."""


@dataclass(frozen=True)
class Figure:
    """A number with its interval: ``low`` to ``high`` holds it with probability ``level``; 1 for what was counted.

    Where ``value`` is None, `Reply.cannot_say` has an entry of the same name.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    level: float | None
    source: Source


@dataclass(frozen=True)
class CannotSay:
    """What is not known, why, and what recording would tell."""

    what: str
    why: str
    what_would_help: str = ""


@dataclass(frozen=True)
class Evidence:
    """Where the page shows it."""

    page: str
    row: str = ""


@dataclass(frozen=True)
class Reply:
    """What every tool answers.

    ``rows`` are the table that the answer is about; ``rows_are`` says what their numbers are. ``shown`` of ``total``
    rows are here; the next begin at ``next_offset``, None after the last.
    """

    answer: str
    figures: list[Figure] = field(default_factory=list)
    cannot_say: list[CannotSay] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    rows_are: str = ""
    shown: int = 0
    total: int = 0
    next_offset: int | None = None
    schema_version: int = SCHEMA_VERSION


def counted(name: str, value: float | None, unit: str) -> Figure:
    """A figure that was read off the recording."""
    return Figure(name, value, value, value, unit, None if value is None else 1.0, "recorded")


def estimated(
    name: str, value: float | None, low: float | None, high: float | None, unit: str, source: Source
) -> Figure:
    """A figure that is None where its interval is not known."""
    known = None not in (value, low, high)
    return Figure(name, value if known else None, low, high, unit, LEVEL if known else None, source)


def fitted(
    answer: str,
    *,
    figures: list[Figure],
    cannot_say: list[CannotSay],
    evidence: list[Evidence],
    rows: Sequence[dict[str, Any]] = (),
    rows_are: str = "",
    total: int | None = None,
    offset: int = 0,
    characters: int = DEFAULT_CHARACTERS,
) -> Reply:
    """The reply with as many of the rows as its characters allow; what is cut can be asked for by its offset.

    Text of the recording is `visible` and stays data. Numbers keep six digits.

    Args:
        answer: a sentence.
        figures: the numbers in it.
        cannot_say: what is not known.
        evidence: where the page shows it.
        rows: those from ``offset`` on that were asked for.
        rows_are: what the rows' numbers are.
        total: rows there are; those given by default.
        offset: place of the first row.
        characters: of the reply as JSON, at most `MOST_CHARACTERS`.
    """
    longest = max(1_000, min(characters, MOST_CHARACTERS))
    total = offset + len(rows) if total is None else total
    given: list[dict[str, Any]] = _clean(rows)
    without_rows: Reply = _clean(Reply(answer, figures, cannot_say, evidence, [], rows_are, total=total))

    def reply(count: int) -> Reply:
        after = offset + count
        following = after if after < total and rows else None
        return dataclasses.replace(without_rows, rows=given[:count], shown=count, next_offset=following)

    count = len(given)
    while count and (length := _length(reply(count))) > longest:
        # Rows are much alike: a proportional cut needs few rounds.
        count = min(count - 1, int(count * longest / length))
    found = reply(count)
    while (over := _length(found) - longest) > 0 and (found.cannot_say or found.evidence or len(found.answer) > over):
        if len(found.evidence) > 1:
            found = dataclasses.replace(found, evidence=found.evidence[: len(found.evidence) // 2])
        elif len(found.cannot_say) > 1 and not _is_named(found, found.cannot_say[-1]):
            found = dataclasses.replace(found, cannot_say=found.cannot_say[:-1])
        else:
            found = dataclasses.replace(found, answer=found.answer[: max(len(found.answer) - over - 1, 1)] + "…")
            break
    return found


def _is_named(reply: Reply, unknown: CannotSay) -> bool:
    return any(figure.name == unknown.what for figure in reply.figures)


def _length(reply: Reply) -> int:
    return len(msgspec.json.encode(reply))


def _clean(value: Any) -> Any:
    """Visible text, numbers of six digits; NaN and infinity are None, as JSON has neither."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {visible(str(key)): _clean(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(one) for one in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: _clean(getattr(value, one.name)) for one in dataclasses.fields(value)}
        return dataclasses.replace(value, **parts)
    return value
