"""Finds the reader of a recording by the file's content, and the recordings of a directory.

A format is a module with what `TraceFormat` lists; it imports its reader when it reads. A new one is added to
`FORMATS`; nothing above this package changes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.kineto import trace_format as kineto
from tb_dlprof_plugin.readers.nsys import trace_format as nsys
from tb_dlprof_plugin.readers.nvprof import trace_format as nvprof
from tb_dlprof_plugin.readers.onnxruntime import trace_format as onnxruntime
from tb_dlprof_plugin.readers.options import DEFAULT, ReadOptions
from tb_dlprof_plugin.readers.tensorrt import trace_format as tensorrt
from tb_dlprof_plugin.readers.xplane import trace_format as xplane


class TraceFormat(Protocol):
    """One format of recordings."""

    @property
    def NAME(self) -> str:
        """What a stored profile calls the format: `Timeline.format`."""
        ...

    @property
    def TITLE(self) -> str:
        """What a file of this format is and how it is named, as part of a sentence."""
        ...

    def recognises(self, path: Path, /) -> bool:
        """Whether the file's content is of this format.

        Raises:
            TraceError: the file cannot be opened or read.
        """
        ...

    def read(
        self, path: Path, options: ReadOptions, progress: Callable[[float], None] | None = None, /
    ) -> list[Timeline]:
        """The file's Timelines, one for each recorded process or rank, in the order of ranks, at least one.

        ``progress`` is called with the fraction read (0 to 1).

        Raises:
            TraceError: the file is damaged or holds nothing that counts; the message names it and says what to do.
        """
        ...

    def files_below(self, folder: Path, /) -> set[Path]:
        """The files of this format in a directory and those below it, found by name."""
        ...

    def run_name(self, path: Path, /) -> str:
        """The name of the run that a file becomes; files of one folder with the same name are ranks of one run."""
        ...


FORMATS: tuple[TraceFormat, ...] = (nsys, nvprof, xplane, tensorrt, onnxruntime, kineto)
"""Asked in this order whether they recognise a file."""


def format_of(path: Path) -> TraceFormat:
    """The format of a trace file.

    Raises:
        TraceError: the file cannot be opened, or no format recognises it; of a file of a format that is known all the
            same, the message says what it is.
    """
    state: os.stat_result | None = None
    with contextlib.suppress(OSError):
        state = path.stat()
    return _format_of(path, None if state is None else (state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=64)
def _format_of(path: Path, _state: tuple[int, int] | None) -> TraceFormat:
    """Kept: commands ask again and again of a file, where it belongs, how its run is called, to read it."""
    from tb_dlprof_plugin.readers.known_not_read import why_not_read

    known_not_read = why_not_read(path)
    if known_not_read is not None:
        raise TraceError(known_not_read)
    for one in FORMATS:
        if one.recognises(path):
            return one
    known = ", ".join(trace_format.TITLE for trace_format in FORMATS)
    raise TraceError(f"{path} is no trace in a known format; pass one of: {known}.")


def recording_of(path: Path) -> Path:
    """The file that stands for a recording of which a file is a part; the file itself where a recording is one file, or
    no format recognises it.

    A format that reads several files together has a function of this name.
    """
    try:
        whole: Callable[[Path], Path] | None = getattr(format_of(path), "recording_of", None)
        return path if whole is None else whole(path)
    except TraceError:
        return path


def read_timelines(
    path: str | os.PathLike[str], options: ReadOptions = DEFAULT, progress: Callable[[float], None] | None = None
) -> list[Timeline]:
    """The Timelines of a recording in any known format. What was repaired or lost is in their notes.

    Args:
        path: the file.
        options: how it is read.
        progress: called with the fraction read (0 to 1).

    Raises:
        TraceError: the file cannot be read or is no trace; the message names it and says what to do.
    """
    source = Path(path)
    timelines = format_of(source).read(source, options, progress)
    if options.torch_trace is not None:
        from tb_dlprof_plugin.readers.inductor.torch_trace import read_torch_trace

        logged = read_torch_trace(options.torch_trace)
        timelines = [
            replace(
                timeline,
                compiled_graphs=tuple(logged.graphs),
                compilations=tuple(logged.compilations),
                graph_breaks=tuple(logged.graph_breaks),
                cudagraph_skips=tuple(logged.cudagraph_skips),
            )
            for timeline in timelines
        ]
    if options.engine is None:
        return timelines
    from tb_dlprof_plugin.readers.tensorrt.join import engine_layers, with_layers

    layers = engine_layers(options.engine)
    return [with_layers(timeline, layers) for timeline in timelines]


def files_below(folder: Path) -> list[Path]:
    """The trace files of all formats in a directory and those below it, found by name, sorted."""
    return sorted(set[Path]().union(*(trace_format.files_below(folder) for trace_format in FORMATS)))
