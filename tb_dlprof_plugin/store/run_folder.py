"""A run's folder: where it lies, the lock on it, and the replacement of what an earlier recording left in it.

A run is its own folder: runs below it are never touched. The new files are written first. Then exactly the files that
were listed before are removed, if they are still the same.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeVar

from tb_dlprof_plugin.model.profile import Source
from tb_dlprof_plugin.model.whole_file import whole_file
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.run_files import RunFile, event_files_in, recorded_traces, remove_all

_PATIENCE_S = 60.0
"""For another command that writes the same run, which takes a second unless it records."""
_POLL_S = 0.05
_MOST_NAMED = 8

_T = TypeVar("_T")


class RunFolderError(Exception):
    """A run that cannot be written; the message is a clause that names it and says what to do."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run below a log directory."""

    logdir: Path
    name: str

    @classmethod
    def named(cls, logdir: Path, name: str) -> RunFolder:
        """The folder of the run of that name, which need not exist.

        Raises:
            RunFolderError: the name leads out of the log directory, or names none below it.
        """
        parts = run_name_parts(name)
        return cls(logdir, "/".join(parts))

    @property
    def path(self) -> Path:
        """The folder."""
        return self.logdir / self.name

    def event_files(self) -> list[RunFile]:
        """Our event files of this run, by name."""
        return event_files_in(self.path)

    def recorded_files(self) -> list[RunFile]:
        """What the hook left of this run: event files, and the traces that it wrote for their profiles."""
        files = self.event_files()
        return [*files, *recorded_traces(self.path, _sources(files))]

    def check_free(self, option: str, with_traces: bool = True) -> None:
        """Raises RunFolderError if the run has profiles: it says what ``--force`` would remove, and names an option."""
        events = self.event_files()
        if not events:
            return
        files = [*events, *recorded_traces(self.path, _sources(events))] if with_traces else events
        named = [file.name for file in files[:_MOST_NAMED]]
        named += [f"{len(files) - _MOST_NAMED} more"] if len(files) > _MOST_NAMED else []
        profiles = "1 profile" if len(events) == 1 else f"{len(events)} profiles"
        raise RunFolderError(
            f"{self.path} already has {profiles}; give {option}, or --force, which removes {len(files)} file"
            f"{'' if len(files) == 1 else 's'} of this run ({', '.join(named)}) and nothing else"
        )

    @contextlib.contextmanager
    def locked(self, patience_s: float | None = None) -> Iterator[None]:
        """No other command of ours writes this run during the block. The folder is made if it is missing.

        File systems and systems that cannot lock a directory have no lock.

        Raises:
            RunFolderError: another command still writes the run after ``patience_s``, by default a minute.
            OSError: the folder cannot be made or opened.
        """
        until = time.monotonic() + (_PATIENCE_S if patience_s is None else patience_s)
        while True:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = _lock(self.path)
            if descriptor is not None:
                break
            if time.monotonic() >= until:
                raise RunFolderError(f"another tb-dlprof writes {self.path}; wait for its end, or name another run")
            time.sleep(_POLL_S)
        try:
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def replace(self, write: Callable[[], _T], old: Sequence[RunFile]) -> tuple[_T, list[str]]:
        """Calls ``write``, which writes the new run whole, then removes the old files; the names of those removed.

        Nothing is removed where ``write`` raises, and nothing through a link below the log directory.

        Raises:
            RunFolderError: the folder is a link, or lies behind one.
            OSError: a file cannot be removed.
        """
        if old:
            self.check_no_link()
        result = write()
        return result, remove_all(old)

    def take(self, recorded: Path) -> None:
        """Copies all files of a folder into this one, event files last; each has its name once it is whole.

        Raises OSError.
        """
        files = (path for path in recorded.rglob("*") if path.is_file())
        for path in sorted(files, key=lambda path: "tfevents" in path.name):
            target = self.path / path.relative_to(recorded)
            target.parent.mkdir(exist_ok=True)
            with whole_file(target) as file, path.open("rb") as source:
                shutil.copyfileobj(source, file)

    def check_no_link(self) -> None:
        """Raises RunFolderError where the folder, or one between it and the log directory, is a link."""
        place = self.logdir
        for part in PurePath(self.name).parts:
            place = place / part
            if place.is_symlink():
                raise RunFolderError(
                    f"{place} is a link to {os.readlink(place)}, and a run is not replaced through a link; name that "
                    "folder itself"
                )


def run_name_parts(name: str) -> tuple[str, ...]:
    """The folders of a run below the log directory, such as ("mlp", "fp32").

    Raises:
        RunFolderError: the name leads out of the log directory, or names none below it.
    """
    path = PurePath(name)
    if not name.strip() or path.is_absolute() or path.drive or ".." in path.parts or "\0" in name:
        raise RunFolderError(f"{name!r} is not the name of a directory below the logdir")
    return path.parts


def _sources(files: Sequence[RunFile]) -> Iterator[Source]:
    """Of the profiles in event files; what cannot be read names no trace."""
    from tb_dlprof_plugin.store.logdir import read_profiles

    for file in files:
        with contextlib.suppress(ProfileError):
            yield from (stored.profile.source for stored in read_profiles(file.path))


def _lock(folder: Path) -> int | None:
    """An open descriptor that holds the lock, -1 where there are no locks; None where another process has it."""
    try:
        import fcntl
    except ImportError:
        return -1
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        return descriptor
    # The process that had the lock may have removed the folder at its end.
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(descriptor), os.stat(folder)):
            return descriptor
    os.close(descriptor)
    return None
