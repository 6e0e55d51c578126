"""The Compiled code page: what each launch of torch.compile's wrappers computes, and what is not known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.advice.compile_saving import compile_saving
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.compiled_code import CompiledTime, ModuleTime, compiled_modules, compiled_time
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.roofline import gpu_name
from tb_dlprof_plugin.model.formatting import short_kernel_name
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.run_facts import Compilation
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.names.compiled import is_generated
from tb_dlprof_plugin.names.gpu_peaks import ceilings_of
from tb_dlprof_plugin.pages.columns import Column
from tb_dlprof_plugin.pages.common import ITSELF, SelectedRange, selected_range
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef

_MOST_ROWS = 1500
"""About 500 bytes each: a page is at most 1 MB."""
_LONGEST_TEXT = 300
_MOST_MODULES = 1000
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
    bytes: Annotated[
        int | None,
        Column("Bytes", "An estimate: the size of its arguments, read or written once each launch.", terminal=False),
    ]
    bytes_per_second: Annotated[
        float | None,
        Column("Bandwidth", "An estimate: these bytes by its time.", unit="bytes_per_second", gpu=True),
    ]
    bandwidth_percent: Annotated[
        float | None,
        Column(
            "% of peak",
            "Of the GPU's memory bandwidth; above 100 % what it takes is in the cache, or not read whole.",
            gpu=True,
        ),
    ]


class CompiledModuleRow(msgspec.Struct, frozen=True):
    """What the ops of a module take in compiled code; ``module`` is "" for shared kernels whose parts are unknown."""

    module: Annotated[
        str, Column("Module", "The module whose ops are computed.", missing="several, not split", width=260)
    ]
    time_ns: Annotated[int, Column("Time", "Of its own kernels, with its parts of shared ones.", sums=True)]
    alone_ns: Annotated[int, Column("Own kernels", "Kernels that compute its ops alone.", sums=True)]
    shared_ns: Annotated[
        int, Column("Shared", "Its parts of kernels of several modules, by the bytes that its ops move.", sums=True)
    ]
    percent: Annotated[float | None, Column("%", "Share of the time of compiled code.", bar=True)]


class BreakRow(msgspec.Struct, frozen=True):
    """A line at which a graph ended: what is around it runs as graphs of their own, and nothing is fused across."""

    place: Annotated[str, Column("Line", "The line of your code at which the graph breaks.", width=200)]
    reason: Annotated[str, Column("Reason", "Why, in the words of Dynamo.", width=420)]
    count: Annotated[int, Column("Times", "How often Dynamo came to it.")]


class SkipRow(msgspec.Struct, frozen=True):
    """A reason for which graphs are launched kernel by kernel, where CUDA graphs were asked for."""

    place: Annotated[str, Column("Line", "The line of your code that causes it.", missing="no line", width=200)]
    reason: Annotated[str, Column("Reason", "Why, in the words of Inductor.", width=420)]
    count: Annotated[int, Column("Graphs", "How many graphs have no CUDA graph because of it.")]


class CompilationRow(msgspec.Struct, frozen=True):
    """What the compilations of one function cost, and the guard that failed before the last one."""

    place: Annotated[str, Column("Function", "The function that was compiled.", width=200)]
    count: Annotated[int, Column("Compilations", "How often it was compiled; all but the first are recompiles.")]
    duration_ns: Annotated[int, Column("Time", "What these took, with their backward passes.")]
    kernels_ns: Annotated[int, Column("Kernels", "Of it, the compilation of kernels by Triton or the C++ compiler.")]
    autotune_ns: Annotated[int, Column("Autotuning", "Of it, measuring variants of kernels.")]
    cache_hits: Annotated[int, Column("Cache hits", "Graphs that were in Inductor's cache.")]
    cache_misses: Annotated[int, Column("Misses", "Graphs that were not in Inductor's cache.")]
    note: Annotated[
        str,
        Column("Guard that failed", "What differed from the compiled versions, or why it runs eagerly.", missing="–",
               width=420),
    ]  # fmt: skip


class CompiledPage(msgspec.Struct, frozen=True):
    """``rows`` by falling time. Sums over the selected iterations (ns), None where no compiled code ran:
    ``region_ns``, the time of compiled code, is that of kernels with ops of one module, of several (shared), of kernels
    whose ops are known but not their modules, and of what could not be matched with a wrapper's launch (unknown).
    ``modules`` splits kernels of several modules by bytes. ``graph_breaks``, ``skips`` and ``compilations`` are those
    of the process, before the recording as well."""

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
    modules: list[CompiledModuleRow]
    total_modules: int
    graph_breaks: list[BreakRow]
    skips: list[SkipRow]
    compilations: list[CompilationRow]
    compilations_ns: int


def compiled_page(view: ProfileView, ref: RunRef, selection: Selection) -> CompiledPage:
    """The launches of torch.compile's wrappers in the selected iterations."""
    time = compiled_time(view, selection)
    ran = np.flatnonzero(time.launches > 0) if time is not None else np.zeros(0, dtype=np.int64)
    rows = _rows(view, time, ran) if time is not None else []
    modules, facts = compiled_modules(view, selection), view.profile.facts
    return CompiledPage(
        ref=ref,
        headline=_headline(view, time) if time else _eager(view, selection),
        range=selected_range(view, selection),
        has_gpu=view.profile.has_gpu,
        region_ns=time.region_ns if time else None,
        module_ns=time.module_ns if time else None,
        shared_ns=time.shared_ns if time else None,
        without_module_ns=time.without_module_ns if time else None,
        unknown_ns=time.unknown_ns if time else None,
        rows=rows,
        total_rows=len(ran),
        modules=[_module_row(one, time) for one in modules[:_MOST_MODULES]] if time is not None else [],
        total_modules=len(modules),
        graph_breaks=[struct_from(BreakRow, one) for one in facts.graph_breaks],
        skips=[struct_from(SkipRow, one) for one in facts.cudagraph_skips],
        compilations=_compilations(facts.compilations),
        compilations_ns=sum(one.duration_ns + one.backward_ns for one in facts.compilations),
    )


def _module_row(one: ModuleTime, time: CompiledTime) -> CompiledModuleRow:
    total = one.alone_ns + one.shared_ns
    path = "" if one.path is None else _cut(one.path) or ITSELF
    return CompiledModuleRow(path, total, one.alone_ns, one.shared_ns, percent(total, time.region_ns))


def _compilations(compilations: list[Compilation]) -> list[CompilationRow]:
    """By falling time."""
    found: dict[str, CompilationRow] = {}
    for one in compilations:
        known = found.get(one.place, CompilationRow(one.place, 0, 0, 0, 0, 0, 0, ""))
        note = f"runs eagerly: {one.failure}" if one.failure else one.recompile_reason
        found[one.place] = CompilationRow(
            place=one.place,
            count=known.count + 1,
            duration_ns=known.duration_ns + one.duration_ns + one.backward_ns,
            kernels_ns=known.kernels_ns + one.kernels_ns,
            autotune_ns=known.autotune_ns + one.autotune_ns,
            cache_hits=known.cache_hits + one.cache_hits,
            cache_misses=known.cache_misses + one.cache_misses,
            note=note or known.note,
        )
    return sorted(found.values(), key=lambda row: -row.duration_ns)


def _eager(view: ProfileView, selection: Selection) -> str:
    """What to say of a run without compiled code: what compiling would save, where that can be known."""
    text = "No code of torch.compile ran in the selected iterations."
    context = RuleContext(view, selection)
    for graphs, words in ((False, "torch.compile"), (True, 'With mode="reduce-overhead" it')):
        found = compile_saving(context, graphs)
        if isinstance(found, str) or found.unknown_because:
            return text
        least = f"at least {ms(found.low_ns)}" if found.low_ns >= 0 else f"or cost up to {ms(-found.low_ns)}"
        text += f" {words} would save about {ms(found.expected_ns)} a step, at most {ms(found.high_ns)}, {least}."
    return text


def _headline(view: ProfileView, time: CompiledTime) -> str:
    kernels = view.profile.compiled_kernels
    if not kernels.places.any() and not (kernels.module_count > 0).any():
        named = "Launches of compiled code have the names and shapes of the trace. " if time.launches.any() else ""
        return (
            f"{named}What the kernels of torch.compile compute was not recorded: record with the hook before the first "
            "call of the model (torch 2.9 or later), or import the trace with --torch-trace."
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


@dataclass(frozen=True, slots=True)
class CompiledLaunch:
    """The cells of a launch that do not depend on what else ran."""

    kernel: str
    ops: str
    places: str
    modules: str
    shared: bool
    bytes: int | None
    bytes_per_second: float | None
    bandwidth_percent: float | None


def compiled_launch(view: ProfileView, row: int, launches: int, time_ns: int) -> CompiledLaunch:
    """A row of `CompiledKernels`, whose kernels took ``time_ns`` in so many launches."""
    kernels, strings = view.profile.compiled_kernels, view.profile.strings
    moved, ceilings = int(kernels.bytes[row]), ceilings_of(gpu_name(view))
    known = moved >= 0 and time_ns > 0 and view.profile.has_gpu and is_generated(strings[kernels.name[row]])
    speed = moved * launches * 1e9 / time_ns if known else None
    return CompiledLaunch(
        kernel=_cut(short_kernel_name(strings[kernels.name[row]])),
        ops=_cut(strings[kernels.ops[row]]),
        places=_cut(strings[kernels.places[row]]),
        modules=_modules(strings[kernels.modules[row]], int(kernels.module_count[row])),
        shared=bool(kernels.module_count[row] > 1),
        bytes=moved if moved >= 0 else None,
        bytes_per_second=speed,
        bandwidth_percent=100 * speed / ceilings.bytes_per_second if speed is not None and ceilings else None,
    )


def _rows(view: ProfileView, time: CompiledTime, ran: Ints) -> list[CompiledRow]:
    kernels, strings = view.profile.compiled_kernels, view.profile.strings
    first: dict[int, int] = {}
    for row, graph in enumerate(kernels.graph.tolist()):
        first.setdefault(graph, row)
    order = ran[np.argsort(-time.time_ns[ran], kind="stable")][:_MOST_ROWS]
    return [
        struct_from(
            CompiledRow,
            compiled_launch(view, row, int(time.launches[row]), int(time.time_ns[row])),
            graph=strings[kernels.graph[row]][:_KEY_LENGTH],
            number=row - first[int(kernels.graph[row])] + 1,
            launches=int(time.launches[row]),
            time_ns=int(time.time_ns[row]),
            percent=percent(int(time.time_ns[row]), time.region_ns),
        )
        for row in order.tolist()
    ]


def _modules(text: str, count: int) -> str:
    """The paths; that of the compiled module, which is "", by a word."""
    return ", ".join(path or ITSELF for path in _cut(text).split(", ")) if count else ""


def _cut(text: str) -> str:
    """Texts come from the recorded program, of any length."""
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
