"""Reads what Dynamo says of compilations: metrics, and the text about a graph break."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from tb_dlprof_plugin.model.run_facts import Compilation, CompileCall, CudagraphSkip, GraphBreak
from tb_dlprof_plugin.readers.inductor.wrapper_code import places_of

_Counted = TypeVar("_Counted", GraphBreak, CudagraphSkip, CompileCall)

_PLACE = re.compile(r"Graph break in user code at (.+):(\d+)\s*$", re.MULTILINE)
_REASON = "Graph Break Reason:"
_LEADS_TO_REASON = ":"
"""Ends a line about what Dynamo did then or was about to do; the reason follows."""
_SKIPPING = "skipping cudagraphs due to "
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
    triton_compile_time_us: int | None = None
    compile_time_autotune_time_us: int | None = None
    runtime_triton_autotune_time_us: int | None = None
    inductor_fx_local_cache_hit_count: int | None = None
    inductor_fx_remote_cache_hit_count: int | None = None
    inductor_fx_local_cache_miss_count: int | None = None
    shape_env_guard_count: int | None = None
    fail_reason: str | None = None
    cudagraph_skip_reason: str | None = None


def compilation_of(metrics: CompilationMetrics) -> Compilation | None:
    """The compilation of a forward pass, or of a backward pass, which has no ``place``; None without its time."""
    if not metrics.compile_id or metrics.duration_us is None:
        return None
    place = (
        f"{os.path.basename(metrics.co_filename)}:{metrics.co_firstlineno} {metrics.co_name or ''}".strip()
        if (metrics.co_filename)
        else ""
    )
    hits = metrics.inductor_fx_local_cache_hit_count, metrics.inductor_fx_remote_cache_hit_count
    autotune = metrics.compile_time_autotune_time_us, metrics.runtime_triton_autotune_time_us
    return Compilation(
        compile_id=metrics.compile_id,
        place=place,
        duration_ns=metrics.duration_us * 1000,
        recompile_reason=_cut(_without_code(metrics.recompile_reason or "")),
        kernels_ns=(metrics.triton_compile_time_us or 0) * 1000,
        autotune_ns=sum(one or 0 for one in autotune) * 1000,
        cache_hits=sum(one or 0 for one in hits),
        cache_misses=metrics.inductor_fx_local_cache_miss_count or 0,
        dynamic=bool(metrics.shape_env_guard_count),
        failure=reason_of(metrics.fail_reason or ""),
    )


def joined_passes(compilations: Iterable[Compilation]) -> list[Compilation]:
    """Each compilation once, with its backward pass; one that failed has the place of its function."""
    found: dict[str, Compilation] = {}
    places: dict[str, str] = {}
    # A backward pass may be logged before its forward pass.
    for one in sorted(compilations, key=lambda one: not one.place):
        function = one.compile_id.partition("/")[0]
        places.setdefault(function, one.place)
        known = found.get(one.compile_id)
        if known is None:
            if one.place or (one.failure and places[function]):
                found[one.compile_id] = msgspec.structs.replace(one, place=one.place or places[function])
        elif not one.place:
            known.backward_ns += one.duration_ns
            for name in ("kernels_ns", "autotune_ns", "cache_hits", "cache_misses"):
                setattr(known, name, getattr(known, name) + getattr(one, name))
    return list(found.values())[-MOST:]


def skip_of(reason: str) -> CudagraphSkip:
    """What Inductor says of a graph without CUDA graphs, with the line that it names."""
    text, _, stack = reason.partition("Found from")
    text = _cut(text.replace(_SKIPPING, "")).rstrip(": ")
    return CudagraphSkip((places_of([stack]) or ("",))[0], text or "unknown")


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


def counted(found: Iterable[_Counted]) -> list[_Counted]:
    """Each that differs once, with its number, in order of the first."""
    result: dict[tuple[object, ...], _Counted] = {}
    for one in found:
        key = msgspec.structs.astuple(msgspec.structs.replace(one, count=0))
        if key in result:
            result[key].count += one.count
        else:
            result[key] = copy.copy(one)
    return list(result.values())[:MOST]


def _without_code(guard: str) -> str:
    """The guard without the line of code behind it, and without the stack below."""
    return guard.partition("\n")[0].partition("  # ")[0].rstrip()


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
