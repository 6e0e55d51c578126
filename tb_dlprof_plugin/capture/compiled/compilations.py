"""What compilations cost: Dynamo's metrics of the last ones, lines at which it broke graphs, skipped CUDA graphs.

Dynamo keeps metrics of the last 64 compilations, read when a recording ends. A break's line is in no counter: the
method that logs it is wrapped. A graph says whether it got a CUDA graph when it is ready. torch.compile is wrapped,
because a call without effect leaves nothing else. Nothing here raises into the compilation.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from pathlib import Path
from typing import Any

import msgspec

from tb_dlprof_plugin.capture.compiled.after_import import after_import
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import Compilation, CompileCall, CudagraphSkip, GraphBreak, RunFacts
from tb_dlprof_plugin.readers.inductor.compilation_text import (
    MOST,
    CompilationMetrics,
    compilation_of,
    counted,
    joined_passes,
    reason_of,
    skip_of,
)

_INSIDE = re.compile(r"[/\\]torch[/\\]")
_NOT_REPLAYED = "no part of it can be replayed"
_LIBRARY = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_OURS = str(Path(__file__).parents[2])


class CompilationWatch:
    """Of this process: calls of torch.compile, graph breaks and skipped CUDA graphs since `install`."""

    def __init__(self) -> None:
        self._breaks: list[GraphBreak] = []
        self._skips: list[CudagraphSkip] = []
        self._calls: list[CompileCall] = []
        self._dynamic: set[str] = set()
        self._installed = False

    def install(self) -> None:
        """Begin to note them. Never raises; the second call does nothing."""
        if not self._installed:
            self._installed = True
            after_import("torch", self._wrap_compile)
            after_import("torch._dynamo.symbolic_convert", self._wrap)
            after_import("torch._inductor.output_code", self._wrap_graphs)
            after_import("torch._inductor.cudagraph_trees", self._wrap_replays)

    def fill(self, facts: RunFacts) -> None:
        """Write compilations, breaks, skips and calls into the facts."""
        facts.compilations, facts.graph_breaks = recent_compilations(), counted(self._breaks)
        for one in facts.compilations:
            one.dynamic |= one.compile_id in self._dynamic
        facts.cudagraph_skips, facts.compile_calls = counted(self._skips), counted(self._calls)

    def _wrap_compile(self) -> None:
        import torch

        compile_model = torch.compile

        @functools.wraps(compile_model)
        def compile_and_note(*args: Any, **kwargs: Any) -> Any:
            probe(lambda: self._note_call(kwargs))
            return compile_model(*args, **kwargs)

        setattr(torch, "compile", compile_and_note)  # noqa: B010 (typed as overloads)

    def _note_call(self, given: dict[str, Any]) -> None:
        frame = sys._getframe()
        while frame.f_back is not None and _is_inside(frame.f_code.co_filename):
            frame = frame.f_back
        # Libraries compile functions of their own when they are imported, whether or not they are used.
        if len(self._calls) < MOST and not _LIBRARY.search(frame.f_code.co_filename):
            backend, mode = given.get("backend"), given.get("mode")
            place = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
            named = backend if isinstance(backend, str) else "" if backend is None else "(a function)"
            self._calls.append(CompileCall(place, mode if isinstance(mode, str) else "", named))

    def _wrap_graphs(self) -> None:
        from torch._inductor.output_code import CompiledFxGraph

        post_compile = CompiledFxGraph.post_compile

        @functools.wraps(post_compile)
        def post_compile_and_note(graph: Any, inputs: Any, constants: Any, graph_kwargs: Any, *args: Any) -> Any:
            wanted = probe(lambda: bool(graph_kwargs["cudagraphs"]))
            probe(lambda: self._note_sizes(inputs))
            result = post_compile(graph, inputs, constants, graph_kwargs, *args)
            probe(lambda: self._note_graph(graph, bool(wanted), bool(graph_kwargs["cudagraphs"])))
            return result

        setattr(CompiledFxGraph, "post_compile", post_compile_and_note)  # noqa: B010 (a method)

    def _note_sizes(self, inputs: Any) -> None:
        import torch
        from torch._guards import CompileContext

        if any(isinstance(one, torch.SymInt) for one in inputs):
            self._dynamic.add(str(CompileContext.current_compile_id()))

    def _note_graph(self, graph: Any, wanted: bool, kept: bool) -> None:
        from torch._inductor import config

        info = getattr(graph, "cudagraph_info", None)
        reasons = getattr(info, "cudagraph_fail_reasons", None) or []
        reason = getattr(graph, "disabled_cudagraphs_reason", None) or "; ".join(map(str, reasons))
        # A graph that was compiled just now was refused before it got ready.
        wanted = wanted or bool(reason and config.triton.cudagraphs)
        if wanted and not kept and len(self._skips) < MOST:
            # A graph is split into parts that can be replayed; where none can, no reason is logged.
            self._skips.append(skip_of(reason or _NOT_REPLAYED))

    def _wrap_replays(self) -> None:
        from torch._inductor import cudagraph_trees

        log_skip = cudagraph_trees.log_cudagraph_skip_and_bump_counter

        @functools.wraps(log_skip)
        def log_skip_and_note(reason: str) -> None:
            if len(self._skips) < MOST:
                probe(lambda: self._skips.append(skip_of(reason)))
            log_skip(reason)

        setattr(cudagraph_trees, "log_cudagraph_skip_and_bump_counter", log_skip_and_note)  # noqa: B010

    def _wrap(self) -> None:
        from torch._dynamo.symbolic_convert import InstructionTranslatorBase as Translator

        log_graph_break = Translator.log_graph_break

        @functools.wraps(log_graph_break)
        def log_and_note(translator: Any, *args: Any, **kwargs: Any) -> Any:
            probe(lambda: self._note([*args, *kwargs.values()]))
            return log_graph_break(translator, *args, **kwargs)

        setattr(Translator, "log_graph_break", log_and_note)  # noqa: B010 (a method)

    def _note(self, given: list[Any]) -> None:
        from torch._guards import TracingContext

        error = next((one for one in given if isinstance(one, BaseException)), None)
        if getattr(error, "logged", False) or len(self._breaks) >= MOST:
            return
        frame = (getattr(error, "real_stack", None) or TracingContext.extract_stack())[-1]
        reason = next((one for one in given if isinstance(one, str)), "")
        self._breaks.append(GraphBreak(f"{os.path.basename(frame.filename)}:{frame.lineno}", reason_of(reason)))


def recent_compilations() -> list[Compilation]:
    """The last compilations of this process by Dynamo; empty where it was not imported, or keeps no metrics."""
    utils = sys.modules.get("torch._dynamo.utils")
    names = [field.name for field in msgspec.structs.fields(CompilationMetrics)]
    found = []
    for one in utils.get_compilation_metrics() if utils is not None else ():
        metrics = CompilationMetrics(*(getattr(one, name, None) for name in names))
        if compilation := compilation_of(metrics):
            found.append(compilation)
    return joined_passes(found)


def _is_inside(path: str) -> bool:
    """Whether a file is torch's or ours."""
    return bool(_INSIDE.search(path)) or path.startswith(_OURS)


COMPILATIONS = CompilationWatch()
"""Of this process, as what torch.compile makes is."""
