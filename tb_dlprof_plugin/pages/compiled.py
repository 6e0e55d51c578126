"""The Compiled code page: what each launch of torch.compile's wrappers computes, and what is not known of it."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.compiled_code import CompiledTime, compiled_time
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.formatting import short_kernel_name
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.run_facts import Compilation
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.columns import Column
from tb_dlprof_plugin.pages.common import SelectedRange, selected_range
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef

_MOST_ROWS = 1500
"""About 500 bytes each: a page is at most 1 MB."""
_LONGEST_TEXT = 300
_KEY_LENGTH = 8


class CompiledRow(msgspec.Struct, frozen=True):
    """One launch of a wrapper. ``number`` counts the launches of its ``graph`` from 1; ``ops``, ``places`` and
    ``modules`` are "" where they are not known."""

    graph: Annotated[
        str, Column("Graph", "The compiled graph: its key in the FX graph cache, shortened.", choice=True, width=100)
    ]
    number: Annotated[int, Column("No.", "The launch's place in the order of the wrapper, from 1.")]
    kernel: Annotated[
        str, Column("Kernel", "The generated kernel, or the library's call as the wrapper has it.", width=260)
    ]
    ops: Annotated[
        str, Column("ATen ops", "The ops of the model that this launch computes.", missing="unknown", width=240)
    ]
    places: Annotated[str, Column("Lines", "The lines of your files that it computes.", missing="unknown", width=180)]
    modules: Annotated[
        str,
        Column("Modules", "The modules whose ops it computes, below the compiled one.", missing="unknown", width=180),
    ]
    shared: Annotated[bool, Column("Shared", "Whether it computes ops of several modules.", terminal=False)]
    launches: Annotated[int, Column("Launches", "How often it ran.", sums=True)]
    time_ns: Annotated[int, Column("Time", "Time of its kernels; without a GPU, of its calls on the CPU.", sums=True)]
    percent: Annotated[float | None, Column("%", "Share of the time of compiled code.", bar=True)]


class BreakRow(msgspec.Struct, frozen=True):
    """A line at which a graph ended: what is around it runs as graphs of their own, and nothing is fused across."""

    place: Annotated[str, Column("Line", "The line of your code at which the graph breaks.", width=200)]
    reason: Annotated[str, Column("Reason", "Why, in the words of Dynamo.", width=420)]
    count: Annotated[int, Column("Times", "How often Dynamo came to it.")]


class RecompileRow(msgspec.Struct, frozen=True):
    """Compilations of one function after its first, by the guard that failed last."""

    place: Annotated[str, Column("Function", "The function that was compiled again.", width=200)]
    count: Annotated[int, Column("Recompiles", "How often it was compiled after the first time.")]
    duration_ns: Annotated[int, Column("Time", "What these compilations took, without their backward passes.")]
    reason: Annotated[
        str, Column("Failed guard", "What differed from the compiled versions, at the last one.", width=420)
    ]


class CompiledPage(msgspec.Struct, frozen=True):
    """``rows`` by falling time. Sums over the selected iterations (ns), None where no compiled code ran:
    ``region_ns``, the time of compiled code, is that of kernels with ops of one module, of several (shared), of kernels
    whose ops are known but not their modules, and of what could not be matched with a wrapper's launch (unknown).
    ``graph_breaks`` and ``recompiles`` are those of the process, before the recording as well."""

    ref: RunRef
    headline: str
    range: SelectedRange
    has_gpu: bool
    region_ns: int | None
    module_ns: int | None
    shared_ns: int | None
    without_module_ns: int | None
    unknown_ns: int | None
    rows: list[CompiledRow]
    total_rows: int
    graph_breaks: list[BreakRow]
    recompiles: list[RecompileRow]


def compiled_page(view: ProfileView, ref: RunRef, selection: Selection) -> CompiledPage:
    """The launches of torch.compile's wrappers in the selected iterations."""
    time = compiled_time(view, selection)
    ran = np.flatnonzero(time.launches > 0) if time is not None else np.zeros(0, dtype=np.int64)
    rows = _rows(view, time, ran) if time is not None else []
    return CompiledPage(
        ref=ref,
        headline=_headline(time),
        range=selected_range(view, selection),
        has_gpu=view.profile.has_gpu,
        region_ns=time.region_ns if time else None,
        module_ns=time.module_ns if time else None,
        shared_ns=time.shared_ns if time else None,
        without_module_ns=time.without_module_ns if time else None,
        unknown_ns=time.unknown_ns if time else None,
        rows=rows,
        total_rows=len(ran),
        graph_breaks=[struct_from(BreakRow, one) for one in view.profile.facts.graph_breaks],
        recompiles=_recompiles(view.profile.facts.compilations),
    )


def _recompiles(compilations: list[Compilation]) -> list[RecompileRow]:
    """By falling time."""
    found: dict[str, RecompileRow] = {}
    for one in compilations:
        if one.recompile_reason:
            known = found.get(one.place, RecompileRow(one.place, 0, 0, ""))
            time_ns = known.duration_ns + one.duration_ns
            found[one.place] = RecompileRow(one.place, known.count + 1, time_ns, one.recompile_reason)
    return sorted(found.values(), key=lambda row: -row.duration_ns)


def _headline(time: CompiledTime | None) -> str:
    if time is None:
        return "No code of torch.compile ran in the selected iterations."
    if not time.launches.any():
        return (
            "What the kernels of torch.compile compute was not recorded: record with the hook before the first call of "
            "the model (torch 2.9 or later), or import the trace with --torch-trace."
        )
    known = percent(time.region_ns - time.unknown_ns, time.region_ns)
    told = "" if known is None else f" of {known:.1f} % of its time"
    parts = [
        f"{percent(part, time.region_ns):.1f} % {what}"
        for part, what in (
            (time.module_ns, "of one module"),
            (time.shared_ns, "shared by several modules"),
            (time.without_module_ns, "without a module"),
            (time.unknown_ns, "unknown"),
        )
        if part
    ]
    return f"Compiled code: the launch{told} is known: {', '.join(parts)}."


def _rows(view: ProfileView, time: CompiledTime, ran: Ints) -> list[CompiledRow]:
    kernels, strings = view.profile.compiled_kernels, view.profile.strings
    first: dict[int, int] = {}
    for row, graph in enumerate(kernels.graph.tolist()):
        first.setdefault(graph, row)
    order = ran[np.argsort(-time.time_ns[ran], kind="stable")][:_MOST_ROWS]
    return [
        CompiledRow(
            graph=strings[kernels.graph[row]][:_KEY_LENGTH],
            number=row - first[int(kernels.graph[row])] + 1,
            kernel=_cut(short_kernel_name(strings[kernels.name[row]])),
            ops=_cut(strings[kernels.ops[row]]),
            places=_cut(strings[kernels.places[row]]),
            modules=_modules(strings[kernels.modules[row]], int(kernels.module_count[row])),
            shared=bool(kernels.module_count[row] > 1),
            launches=int(time.launches[row]),
            time_ns=int(time.time_ns[row]),
            percent=percent(int(time.time_ns[row]), time.region_ns),
        )
        for row in order.tolist()
    ]


def _modules(text: str, count: int) -> str:
    """The paths; that of the compiled module, which is "", by a word."""
    return ", ".join(path or "(itself)" for path in _cut(text).split(", ")) if count else ""


def _cut(text: str) -> str:
    """Texts come from the recorded program, of any length."""
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
