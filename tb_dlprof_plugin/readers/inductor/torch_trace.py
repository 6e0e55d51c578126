"""Reads the logs that torch writes into the folder of TORCH_TRACE, as far as they explain compiled kernels.

An entry is a line with JSON behind its prefix, and its payload in lines that begin with a tab. Of each compilation
the generated wrapper (``inductor_output_code``) comes first, then the stacks of its kernels, then the key in the FX
graph cache, on a hit as on a miss.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tb_dlprof_plugin.model.compiled_graph import CompiledGraph
from tb_dlprof_plugin.model.run_facts import Compilation, CudagraphSkip, GraphBreak
from tb_dlprof_plugin.readers.errors import UNDECODABLE, TraceError
from tb_dlprof_plugin.readers.inductor.compilation_text import (
    CompilationMetrics,
    compilation_of,
    counted,
    graph_break_of,
    joined_passes,
    skip_of,
)
from tb_dlprof_plugin.readers.inductor.wrapper_code import kernels_of_wrapper

_CODE = "inductor_output_code"
_STACKS = "inductor_provenance_tracking_kernel_stack_traces"
_KEYS = ("fx_graph_cache_miss", "fx_graph_cache_hit")
_BREAK = "dynamo_graph_break_reason"
_WANTED = tuple(f'"{name}"'.encode() for name in (_CODE, _STACKS, *_KEYS, _BREAK, "compilation_metrics"))


class _Artifact(msgspec.Struct):
    name: str = ""


class _Entry(msgspec.Struct):
    """The head of an entry; the other fields are not about kernels."""

    inductor_output_code: Any = None
    artifact: _Artifact | None = None
    compilation_metrics: CompilationMetrics | None = None
    frame_id: int | None = None
    frame_compile_id: int | None = None
    attempt: int | None = None
    rank: int | None = None

    @property
    def compilation(self) -> tuple[int | None, ...]:
        return self.frame_id, self.frame_compile_id, self.attempt, self.rank


class _Cached(msgspec.Struct):
    key: str | None = None


_ENTRY = msgspec.json.Decoder(_Entry)
_STACK_LISTS = msgspec.json.Decoder(dict[str, list[str]])
_CACHED = msgspec.json.Decoder(_Cached)


@dataclass(frozen=True, slots=True)
class TorchTrace:
    """The compiled graphs of a folder, each key once; compilations in their order, breaks, skipped CUDA graphs."""

    graphs: list[CompiledGraph]
    compilations: list[Compilation]
    graph_breaks: list[GraphBreak]
    cudagraph_skips: list[CudagraphSkip]


def read_torch_trace(folder: Path) -> TorchTrace:
    """What the logs of a folder say of compilations.

    Args:
        folder: of TORCH_TRACE, or one of its logs.

    Raises:
        TraceError: there is no log, no compilation in it, or it was made with provenance off.
    """
    if folder.is_file() and tarfile.is_tarfile(folder):
        raise TraceError(f"{folder} is an archive; unpack it and pass the folder.")
    try:
        logs = [folder] if folder.is_file() else sorted(folder.rglob("*torch_trace*.log*"))
        graphs, compiled = dict[str, CompiledGraph](), 0
        compilations, breaks, skips = list[Compilation](), list[GraphBreak](), list[CudagraphSkip]()
        for log in logs:
            for one in _read(log):
                if isinstance(one, Compilation):
                    compilations.append(one)
                elif isinstance(one, GraphBreak):
                    breaks.append(one)
                elif isinstance(one, CudagraphSkip):
                    skips.append(one)
                else:
                    compiled += 1
                    if one.kernels:
                        graphs[one.key] = one
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"{folder} cannot be read ({error}); pass the folder of TORCH_TRACE.") from None
    if not logs:
        raise TraceError(f"{folder} holds no log of TORCH_TRACE (*torch_trace*.log); pass the folder it was set to.")
    if not compiled and not breaks:
        raise TraceError(
            f"{folder} holds no compilation by Inductor; record it from the start of the script, before the first call "
            "of the compiled model."
        )
    if compiled and not graphs:
        raise TraceError(
            f"{folder} holds {compiled} compiled graphs, all without provenance; set INDUCTOR_PROVENANCE=1 with "
            "TORCH_TRACE (torch 2.9 or later), empty Inductor's cache, and record again."
        )
    return TorchTrace(list(graphs.values()), joined_passes(compilations), counted(breaks), counted(skips))


def _read(log: Path) -> Iterator[CompiledGraph | Compilation | GraphBreak | CudagraphSkip]:
    """The graphs, compilations, breaks and skipped CUDA graphs of one log, in order."""
    code, stacks = dict[tuple[int | None, ...], str](), dict[tuple[int | None, ...], dict[str, list[str]]]()
    for entry, payload in _entries(log):
        name, of = entry.artifact.name if entry.artifact else "", entry.compilation
        try:
            if entry.compilation_metrics is not None:
                if compilation := compilation_of(entry.compilation_metrics):
                    yield compilation
                if entry.compilation_metrics.cudagraph_skip_reason:
                    yield skip_of(entry.compilation_metrics.cudagraph_skip_reason)
            elif name == _BREAK:
                if graph_break := graph_break_of(payload.decode(errors="replace")):
                    yield graph_break
            elif entry.inductor_output_code is not None:
                code[of] = payload.decode(errors="replace")
                stacks.pop(of, None)
            elif name == _STACKS:
                stacks[of] = _STACK_LISTS.decode(payload)
            elif name in _KEYS and of in code:
                key = _CACHED.decode(payload).key
                if key:
                    yield CompiledGraph(key, kernels_of_wrapper(code.pop(of), stacks.pop(of, {})))
        except UNDECODABLE:
            continue  # a log that was cut: the graph stays unknown


def _entries(log: Path) -> Iterator[tuple[_Entry, bytes]]:
    """The entries that count, each with its payload."""
    entry, lines = None, list[bytes]()
    with gzip.open(log) if log.suffix == ".gz" else log.open("rb") as file:
        for line in file:
            if line.startswith(b"\t"):
                if entry is not None:
                    lines.append(line[1:])
                continue
            if entry is not None:
                yield entry, b"".join(lines)
            entry, lines = None, []
            if any(name in line for name in _WANTED):
                try:
                    entry = _ENTRY.decode(line[line.index(b"{") :])
                except UNDECODABLE:
                    continue
    if entry is not None:
        yield entry, b"".join(lines)
