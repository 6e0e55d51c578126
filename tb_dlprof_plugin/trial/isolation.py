"""How a script runs without changing the user's files: in an overlay, else in a copy of its folder.

`choose` tries which of the two this machine allows. Without either, only ``--in-place`` is left, which keeps nothing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from tb_dlprof_plugin.model.visible import VisibleMessage
from tb_dlprof_plugin.trial import landlock, supervisor
from tb_dlprof_plugin.trial.overlay import remove_folder

_PROBE_S = 30.0
_SHARED_MEMORY = Path("/dev/shm")
_OF_LIBRARIES = ("sem.mp-", "torch_", "psm_", "nccl-", "cuda.shm.", "__KMP_REGISTERED_LIB_")
"""How names of segments begin that libraries choose at random: no script opens another program's by accident."""
_LINKED = (".git", ".hg", ".svn")
"""Folders that a copy does not need: the copy has a link to them."""


class IsolationError(VisibleMessage):
    """The machine allows no isolation. The message says what to do."""


class IsolationKind(str, Enum):
    """Where a script's writes go."""

    overlay = "overlay"
    copy = "copy"
    in_place = "in place"


@dataclass(frozen=True)
class Isolation:
    """How the processes of one trial are isolated.

    Attributes:
        kind: where their writes go.
        folder: the working folder.
        copied_bytes, copied_files: of a copy of it; 0 where none is made.
        shared_memory: whether a process may write to the machine's shared memory; an overlay has its own.
    """

    kind: IsolationKind
    folder: str
    copied_bytes: int = 0
    copied_files: int = 0
    shared_memory: bool = False

    @property
    def sentence(self) -> str:
        """Where the writes of the script go, for the user."""
        if self.kind is IsolationKind.overlay:
            return "The script runs in an overlay: what it writes anywhere is thrown away."
        if self.kind is IsolationKind.in_place:
            return "The script runs in place: what it writes, changes or removes stays so."
        memory = "" if self.shared_memory else ", nor to /dev/shm, which holds other files: loader workers may fail"
        return (
            f"This machine allows no overlay, so each process runs in a copy of {self.folder} "
            f"({self.copied_bytes / 1e6:.0f} MB, {self.copied_files} files) and cannot write elsewhere{memory}."
        )

    def command(self, command: Sequence[str], scratch: Path, folder: Path) -> list[str]:
        """The command that runs ``command`` isolated and supervised; its standard input has to be a pipe.

        Args:
            command: that starts the script.
            scratch: folder of the trial, which stays writable, and which the supervisor removes where ``try`` has gone.
            folder: of this process, below ``scratch``.

        Raises:
            OSError: the working folder cannot be copied.
        """
        if self.kind is IsolationKind.overlay:
            layers = folder / "layers"
            layers.mkdir()
            return supervisor.supervised(command, str(scratch), self.folder, layers=str(layers))
        if self.kind is IsolationKind.in_place:
            return supervisor.supervised(command, str(scratch), self.folder)
        copy = _copy(Path(self.folder), folder / "tree")
        memory = [str(_SHARED_MEMORY)] if self.shared_memory else []
        words = [command[0], *(_in_copy(word, self.folder, copy) for word in command[1:])]
        return supervisor.supervised(words, str(scratch), str(copy), writable=[str(scratch), *memory])


def choose(folder: str, in_place: bool = False) -> Isolation:
    """The best isolation that this machine allows for a script that runs in ``folder``.

    Raises:
        IsolationError: there is none, and ``in_place`` is not wanted.
    """
    if in_place:
        return Isolation(IsolationKind.in_place, folder)
    isolation = Isolation(IsolationKind.overlay, folder)
    if sys.platform == "linux" and _works(isolation):
        return isolation
    if landlock.version() > 0:
        sizes = [size for _, size in _files(Path(folder))]
        # Files there may be anybody's, and Landlock cannot tell them from those that the script makes.
        free = _SHARED_MEMORY.is_dir() and not any(_SHARED_MEMORY.iterdir())
        return replace(
            isolation, kind=IsolationKind.copy, copied_bytes=sum(sizes), copied_files=len(sizes), shared_memory=free
        )
    raise IsolationError(
        "the script cannot be kept from changing files: this machine allows neither an overlay (user namespaces) nor "
        "Landlock; --in-place runs it all the same, and what it writes stays"
    )


def _memory_is_free() -> bool:
    """Whether shared memory has no file that the script could change: Landlock cannot tell old files from new ones."""
    try:
        return all(one.name.startswith(_OF_LIBRARIES) for one in _SHARED_MEMORY.iterdir())
    except OSError:
        return False


def _works(isolation: Isolation) -> bool:
    """Whether a command runs this way; it writes nothing."""
    scratch = Path(tempfile.mkdtemp(prefix="tbt_"))
    try:
        command = isolation.command([sys.executable, "-I", "-S", "-c", ""], scratch, scratch)
        # Its standard input stays open: its end would be that of `try`.
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as it:
            return it.wait(_PROBE_S) == 0
    except (OSError, subprocess.SubprocessError):
        return False
    finally:
        remove_folder(scratch)


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    """What a copy of the folder copies, with its size in bytes."""
    for root, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if not _is_linked(Path(root, one))]
        for name in names:
            path = Path(root, name)
            with contextlib.suppress(OSError):
                seen = path.lstat()
                if stat.S_ISREG(seen.st_mode) or stat.S_ISLNK(seen.st_mode):
                    yield path, seen.st_size


def _is_linked(path: Path) -> bool:
    return path.is_symlink() or path.name in _LINKED or (path / "pyvenv.cfg").is_file()


def _copy(folder: Path, tree: Path) -> Path:
    """A copy of the folder at the same place below ``tree``. Neighbours of it and of the folders above it are links, so
    that paths such as ``../data`` lead where they did."""
    above = tree
    tree.mkdir()
    for part, place in zip(folder.parts[1:], (*reversed(folder.parents),), strict=True):
        with contextlib.suppress(OSError):
            for entry in os.scandir(place):
                if entry.name != part:
                    (above / entry.name).symlink_to(entry.path)
        above /= part
        above.mkdir()
    for root, folders, _ in os.walk(folder):
        here = above / Path(root).relative_to(folder)
        for name in list(folders):
            if _is_linked(Path(root, name)):
                folders.remove(name)
                target = os.readlink(Path(root, name)) if Path(root, name).is_symlink() else Path(root, name)
                (here / name).symlink_to(target)
            else:
                (here / name).mkdir()
    for path, _ in _files(folder):
        # What cannot be read is missing: the script fails there as it does without a copy.
        with contextlib.suppress(OSError):
            shutil.copy2(path, above / path.relative_to(folder), follow_symlinks=False)
    return above


def _in_copy(word: str, folder: str, copy: Path) -> str:
    """A word of the command line; an absolute path in the folder becomes that in the copy."""
    if os.path.isabs(word) and Path(word).is_relative_to(folder) and os.path.lexists(word):
        return str(copy / Path(word).relative_to(folder))
    return word
