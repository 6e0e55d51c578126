"""Lists the traces of a run on disk, and reads one in pieces that fit into a response.

A request names a run that TensorBoard knows and a trace that the listing named. Paths from requests are never used on
the file system: only a regular file with a trace's name, in the run's directory itself or the one for originals.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tb_dlprof_plugin.readers.trace_names import ORIGINAL_ENDINGS, ORIGINALS, TRACE_ENDINGS, stem_of
from tb_dlprof_plugin.web.errors import RequestError

PIECE_BYTES = 1_000_000
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""The file may have been replaced since it was listed: by a link, which is not followed, or by a pipe, which a reader
would wait for."""
_MOST_FILES = 1_000
"""Most traces of a run: their names must fit into a response of 1 MB."""


@dataclass(frozen=True, slots=True)
class Found:
    """A trace: its name relative to the run's directory; ``version`` changes when it is written over."""

    name: str
    path: Path
    size_bytes: int
    version: str

    @property
    def stem(self) -> str:
        """The key that the original and the copy of one trace have in common."""
        return stem_of(self.path.name)


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
    chosen = next((folder for folder in (own, *above) if any(f.stem == stem for f in _found(folder))), own)
    return chosen, root.name if chosen == root else chosen.relative_to(root).as_posix()


def traces_in(directory: Path) -> list[Found]:
    """All traces of a run, by name."""
    return sorted(_found(directory), key=lambda found: found.name)[:_MOST_FILES]


def piece_of(directory: Path, name: str, offset: int, version: str | None) -> bytes:
    """`PIECE_BYTES` of a trace from ``offset`` on, fewer at its end, none after it.

    Raises:
        RequestError: there is no such trace, or it was written over since it was listed.
    """
    found = next((one for one in _found(directory) if one.name == name), None)
    if found is None:
        raise RequestError(404, f"There is no trace {name!r} in {directory}; press Refresh.")
    try:
        with open(os.open(found.path, _FLAGS), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise RequestError(404, f"The trace {name!r} is no file any more; press Refresh.")
            if version not in (None, _version(status)):
                raise RequestError(404, f"The trace {name!r} was replaced meanwhile; press Refresh.")
            file.seek(offset)
            return file.read(PIECE_BYTES)
    except OSError as error:
        raise RequestError(404, f"The trace {found.path} cannot be read ({error.strerror}).") from None


def _found(directory: Path) -> Iterator[Found]:
    yield from _in_folder(directory, TRACE_ENDINGS, "")
    if not (directory / ORIGINALS).is_symlink():
        yield from _in_folder(directory / ORIGINALS, ORIGINAL_ENDINGS, f"{ORIGINALS}/")


def _in_folder(folder: Path, endings: tuple[str, ...], before: str) -> Iterator[Found]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.endswith(endings) or entry.name.startswith("."):
                continue
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                yield Found(before + entry.name, Path(entry.path), status.st_size, _version(status))


def _version(status: os.stat_result) -> str:
    # Text: the page's numbers do not hold nanoseconds since 1970.
    return f"{status.st_mtime_ns}-{status.st_size}"
