"""What compilations cost: Dynamo's metrics of the last ones, and the lines at which it broke graphs.

Dynamo keeps metrics of the last 64 compilations, read when a recording ends. A break's line is in no counter: the
method that logs it is wrapped. Nothing here raises into the compilation.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import msgspec

from tb_dlprof_plugin.capture.compiled.after_import import after_import
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import Compilation, GraphBreak, RunFacts
from tb_dlprof_plugin.readers.inductor.compilation_text import (
    MOST,
    CompilationMetrics,
    compilation_of,
    counted,
    reason_of,
)


class CompilationWatch:
    """Of this process: the graph breaks since `install`."""

    def __init__(self) -> None:
        self._breaks: list[GraphBreak] = []
        self._installed = False

    def install(self) -> None:
        """Begin to note breaks. Never raises; the second call does nothing."""
        if not self._installed:
            self._installed = True
            after_import("torch._dynamo.symbolic_convert", self._wrap)

    def fill(self, facts: RunFacts) -> None:
        """Write compilations and breaks into the facts."""
        facts.compilations, facts.graph_breaks = recent_compilations(), counted(self._breaks)

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
    return found[-MOST:]


COMPILATIONS = CompilationWatch()
"""Of this process, as what torch.compile makes is."""
