"""Reads what Dynamo says of compilations: metrics, and the text about a graph break."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import msgspec

from tb_dlprof_plugin.model.run_facts import Compilation, GraphBreak

_PLACE = re.compile(r"Graph break in user code at (.+):(\d+)\s*$", re.MULTILINE)
_REASON = "Graph Break Reason:"
_LEADS_TO_REASON = ":"
"""Ends a line about what Dynamo did then or was about to do; the reason follows."""
_LONGEST = 300
MOST = 200
"""Compilations and breaks of a recording that are kept."""


class CompilationMetrics(msgspec.Struct):
    """The fields that count of Dynamo's metrics, as in the logs and in memory; None is not recorded."""

    compile_id: str | None = None
    co_name: str | None = None
    co_filename: str | None = None
    co_firstlineno: int | None = None
    duration_us: int | None = None
    recompile_reason: str | None = None


def compilation_of(metrics: CompilationMetrics) -> Compilation | None:
    """The compilation of a forward pass; None for what lacks its function or its time."""
    if not metrics.compile_id or not metrics.co_filename or metrics.duration_us is None:
        return None
    return Compilation(
        compile_id=metrics.compile_id,
        place=f"{os.path.basename(metrics.co_filename)}:{metrics.co_firstlineno} {metrics.co_name or ''}".strip(),
        duration_ns=metrics.duration_us * 1000,
        recompile_reason=_cut(metrics.recompile_reason or ""),
    )


def graph_break_of(text: str) -> GraphBreak | None:
    """The break of an artifact ``dynamo_graph_break_reason``; None where it names no line."""
    place = _PLACE.search(text)
    if place is None:
        return None
    return GraphBreak(f"{os.path.basename(place[1])}:{place[2]}", reason_of(text.partition(_REASON)[2]))


def reason_of(text: str) -> str:
    """The first line of Dynamo's reason that is about the user's code."""
    lines = [line.strip() for line in text.splitlines()]
    return _cut(next((line for line in lines if line and not line.endswith(_LEADS_TO_REASON)), ""))


def counted(breaks: Iterable[GraphBreak]) -> list[GraphBreak]:
    """Each line and reason once, with its number, in order of the first."""
    found: dict[tuple[str, str], GraphBreak] = {}
    for one in breaks:
        known = found.setdefault((one.place, one.reason), GraphBreak(one.place, one.reason, 0))
        known.count += one.count
    return list(found.values())[:MOST]


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
