"""Writes copies of traces that exist already, in their place or elsewhere."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.interop.torch_tb_profiler.file_names import copy_name, original_name
from tb_dlprof_plugin.interop.torch_tb_profiler.trace_copy import write_tab_copy
from tb_dlprof_plugin.readers.trace_names import ORIGINALS, is_copy, stem_of


def has_copy(trace: Path) -> bool:
    """Whether a trace is in the directory of originals and its copy next to that directory."""
    return trace.parent.name == ORIGINALS and is_copy(trace.parent.parent / copy_name(stem_of(trace.name)))


def replace_by_copy(trace: Path, progress: Callable[[float], None] | None = None) -> tuple[Path, Path]:
    """Moves a trace to the directory of originals and writes the copy in its place; if that fails, moves it back.

    Args:
        trace: the trace; one that lies among the originals stays there.
        progress: called with the fraction done (0 to 1).

    Returns:
        The copy, and where the trace lies now.

    Raises:
        TraceError: the trace cannot be read.
        OSError: it cannot be moved, the copy cannot be written, or another trace has the original's name.
    """
    run = trace.parent.parent if trace.parent.name == ORIGINALS else trace.parent
    name = original_name(stem_of(trace.name), packed=trace.suffix == ".gz")
    original = run / name
    if original != trace:
        if os.path.lexists(original):
            raise FileExistsError(errno.EEXIST, "exists already; move it to another folder", str(original))
        original.parent.mkdir(exist_ok=True)
        os.rename(trace, original)
    try:
        return write_copy(original, run, name, progress), original
    except BaseException:
        if original != trace:
            os.rename(original, trace)
        raise


def write_copy(trace: Path, folder: Path, original: str = "", progress: Callable[[float], None] | None = None) -> Path:
    """Writes the copy of a trace to a directory, which is made if missing; returns the copy's path.

    Args:
        trace: the trace.
        folder: the directory.
        original: where the trace stays, as the copy is to say; "" if it is not to say so.
        progress: called with the fraction done (0 to 1): the analysis is the first half, writing the second.

    Raises:
        TraceError: the trace cannot be read.
        OSError: the copy cannot be written.
    """
    profile = analyze_trace(trace, progress=progress and (lambda part: progress(part / 2)))
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / copy_name(stem_of(trace.name))
    write_tab_copy(profile, trace, copy, original, progress=progress and (lambda part: progress(0.5 + part / 2)))
    return copy
