"""Lists, opens and removes event files and traces of a run: regular files in its own folder, behind no link.

A name from a profile, a trace or a request is untrusted and never becomes a path. It is only compared with the names
that a listing of the folder returned, and a `RunFile` is made by such a listing alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tb_dlprof_plugin.model.profile import Source
from tb_dlprof_plugin.readers.trace_names import ORIGINAL_ENDINGS, ORIGINALS, TRACE_ENDINGS, stem_of

_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""The file may have been replaced since it was listed: by a link, which is not followed, or by a pipe, which a reader
would wait for."""
_EVENT_FILE = re.compile(r"events\.out\.tfevents\.\d{10}\.\d{9}\..+\.tb_dlprof", re.DOTALL)
"""As `event_file_name` makes it."""
_RECORDED_AT = re.compile(r"\.\d{16,20}")
"""After the worker's name in the name of a trace that the hook wrote: its time (unix ns)."""


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file of a run: its name relative to the run's folder; ``version`` changes when it is written over."""

    name: str
    path: Path
    size_bytes: int
    version: str

    @property
    def stem(self) -> str:
        """The key that the original and the copy of one trace have in common."""
        return stem_of(self.path.name)

    def open(self) -> BinaryIO:
        """The file, opened for reading.

        Raises:
            OSError: it cannot be read, or a link or something else that is no regular file has taken its place.
        """
        descriptor = os.open(self.path, _FLAGS)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "no regular file any more", str(self.path))
        return os.fdopen(descriptor, "rb")

    def remove(self) -> bool:
        """Removes the file; False if it is gone, or if another file, a link or a directory has taken its place.

        Raises:
            OSError: it cannot be removed.
        """
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(self.path)
            if stat.S_ISREG(status.st_mode) and version_of(status) == self.version:
                os.unlink(self.path)
                return True
        return False


def event_files_in(folder: Path) -> list[RunFile]:
    """Our event files of the run in a folder, by name: those in the folder itself, which are the run's own.

    Raises:
        OSError: the folder is there and cannot be listed.
    """
    return sorted(_files(folder, "", lambda name: bool(_EVENT_FILE.fullmatch(name))), key=lambda file: file.name)


def traces_in(folder: Path) -> list[RunFile]:
    """Traces of the run in a folder, by name: in the folder itself, and in the one for originals.

    What cannot be listed is passed over.
    """
    files: list[RunFile] = []
    with contextlib.suppress(OSError):
        files += _files(folder, "", _visible(TRACE_ENDINGS))
        if not (folder / ORIGINALS).is_symlink():
            files += _files(folder / ORIGINALS, f"{ORIGINALS}/", _visible(ORIGINAL_ENDINGS))
    return sorted(files, key=lambda file: file.name)


def recorded_traces(folder: Path, sources: Iterable[Source]) -> list[RunFile]:
    """The traces in a folder that the hook wrote there for these profiles, and their copies, by name.

    The hook names a trace ``<worker>.<time>``. What was imported has another name, and stays its owner's.
    """
    stems = {stem for source in sources if _is_hooks(stem := stem_of(source.trace_file), source.worker)}
    return [file for file in traces_in(folder) if file.stem in stems]


def remove_all(files: Collection[RunFile]) -> list[str]:
    """Removes files; the names of those that were there.

    Raises:
        OSError: one cannot be removed.
    """
    return [file.name for file in files if file.remove()]


def entry_named(folder: Path, path: str) -> Path | None:
    """The entry of a folder whose path a file's content states; None where a listing has no such entry, or a link."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if os.path.abspath(entry.path) == os.path.abspath(path) and not entry.is_symlink():
                return Path(entry.path)
    return None


def version_of(status: os.stat_result) -> str:
    """Text that changes when a file is written over."""
    # Text: the page's numbers do not hold nanoseconds since 1970.
    return f"{status.st_mtime_ns}-{status.st_size}"


def _is_hooks(stem: str, worker: str) -> bool:
    return bool(worker) and stem.startswith(worker) and bool(_RECORDED_AT.fullmatch(stem[len(worker) :]))


def _visible(endings: tuple[str, ...]) -> Callable[[str], bool]:
    return lambda name: name.endswith(endings) and not name.startswith(".")


def _files(folder: Path, before: str, is_wanted: Callable[[str], bool]) -> Iterator[RunFile]:
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if not is_wanted(entry.name):
                continue
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                yield RunFile(before + entry.name, Path(entry.path), status.st_size, version_of(status))
