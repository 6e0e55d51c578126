"""Lists the traces of a run on disk, and reads one in pieces that fit into a response.

A request names a run that TensorBoard knows and a trace that the listing named. Paths from requests are never used on
the file system: only a regular file with a trace's name, in the run's directory itself or the one for originals.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.pages.trace_links import TraceLinks, no_trace_links, trace_links
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers.trace_names import is_copy, stem_of
from tb_dlprof_plugin.store import run_files
from tb_dlprof_plugin.store.run_files import RunFile
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.open_runs import OpenRuns

PIECE_BYTES = 1_000_000
_MOST_FILES = 1_000
"""Most traces of a run: their names must fit into a response of 1 MB."""


def trace_links_of(runs: OpenRuns, view: ProfileView, ref: RunRef) -> TraceLinks:
    """The traces of a run."""
    try:
        directory, tab_run = run_directory(runs.logdir, ref.run, view.profile.source.trace_file)
    except RequestError as error:
        return no_trace_links(ref, str(error))
    files = [(f.name, str(f.path), f.size_bytes, f.version, is_copy(f.path)) for f in traces_in(directory)]
    return trace_links(view.profile, ref, str(directory), tab_run, files)


def trace(
    runs: OpenRuns,
    view: ProfileView,
    ref: RunRef,
    name: Annotated[str, Option("Name of a trace that `trace_links_of` listed.")],
    version: Annotated[str | None, Option("As listed: another one means that it was written over.")] = None,
    offset: Annotated[int, Option("Bytes that the page has already.")] = 0,
) -> bytes:
    """A piece of a trace from ``offset`` on."""
    directory, _ = run_directory(runs.logdir, ref.run, view.profile.source.trace_file)
    return piece_of(directory, name, offset, version)


def run_directory(logdir: str, run: str, trace_file: str) -> tuple[Path, str]:
    """The directory with a run's traces, and its name in the PyTorch Profiler tab.

    It is the run's own, or one above it, inside the logdir, if the hook writes events to a subdirectory.

    Raises:
        RequestError: the logdir is not one directory on this machine.
    """
    if not logdir:
        raise RequestError(404, "TensorBoard runs without --logdir, so the traces cannot be found; start it with one.")
    if "://" in logdir:
        raise RequestError(
            404, f"The logdir {logdir} is remote, and traces are read from local disks only; copy the run to one."
        )
    root = Path(os.path.abspath(os.path.expanduser(logdir)))
    own = Path(os.path.normpath(root / run))
    if not own.is_relative_to(root) or not own.is_dir():
        raise RequestError(404, f"Run {run!r} has no directory of its own below the logdir {logdir}.")
    stem = stem_of(trace_file)
    above = [folder for folder in own.parents if stem and folder.is_relative_to(root)]
    chosen = next((folder for folder in (own, *above) if any(f.stem == stem for f in run_files.traces_in(folder))), own)
    return chosen, root.name if chosen == root else chosen.relative_to(root).as_posix()


def traces_in(directory: Path) -> list[RunFile]:
    """All traces of a run, by name."""
    return run_files.traces_in(directory)[:_MOST_FILES]


def piece_of(directory: Path, name: str, offset: int, version: str | None) -> bytes:
    """`PIECE_BYTES` of a trace from ``offset`` on, fewer at its end, none after it.

    Raises:
        RequestError: there is no such trace, or it was written over since it was listed.
    """
    found = next((one for one in run_files.traces_in(directory) if one.name == name), None)
    if found is None:
        raise RequestError(404, f"There is no trace {name!r} in {directory}; press Refresh.")
    try:
        with found.open() as file:
            if version not in (None, run_files.version_of(os.fstat(file.fileno()))):
                raise RequestError(404, f"The trace {name!r} was replaced meanwhile; press Refresh.")
            file.seek(offset)
            return file.read(PIECE_BYTES)
    except OSError as error:
        raise RequestError(404, f"The trace {found.path} cannot be read ({error.strerror}).") from None
