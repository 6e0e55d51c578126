"""Chooses and creates the directory for the profile of a ``tb-dlprof run``."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.store.event_file import event_files


@dataclass(frozen=True, slots=True)
class OutputDirectory:
    """The run's directory, absolute; the event files that were in it before; the script's name."""

    directory: Path
    before: frozenset[Path]
    script: str

    def remove_if_empty(self) -> None:
        """Remove a directory that nothing was written to."""
        with contextlib.suppress(OSError):
            self.directory.rmdir()


def choose_output_directory(logdir: Path, name: str | None, command: Sequence[str], force: bool) -> OutputDirectory:
    """Create the run's directory; ends the command with one sentence if that fails, before the script starts.

    The default name is the script's; if that is taken, and not to be replaced, the next with a number.
    """
    script = script_name(command)
    if name is not None and (not name.strip() or Path(name).is_absolute() or ".." in Path(name).parts):
        refuse(f"--run-name {name!r} is not the name of a directory below the logdir")
    run = logdir
    try:
        run = logdir / (name or _free_name(logdir, script.removesuffix(".py") or "run", force))
        directory = run.absolute()
        before = _profiles(directory)
        if before and not force:
            refuse(f"{run} holds a profile already; give another --run-name, or --force to replace it")
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except FileExistsError:
        refuse(f"{run} is a file, where the run's directory would be; choose another --logdir or --run-name")
    except OSError as error:
        refuse(f"{run} cannot be written ({error.strerror}); choose another --logdir")
    return OutputDirectory(directory, before, script)


def _free_name(logdir: Path, name: str, force: bool) -> str:
    """The name; if it is taken, and not to be replaced, the next with a number."""
    if force:
        return name
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(one for one in names if not _profiles(logdir / one))


def script_name(command: Sequence[str]) -> str:
    """The script's name: the first Python file of the command, the module after -m, else the command."""
    for word in command[1:]:
        if word.endswith((".py", ".pyz")):
            return Path(word).name
    for before, word in itertools.pairwise(command):
        if before == "-m":
            return word
    return Path(command[1] if len(command) > 1 and Path(command[1]).is_dir() else command[0]).name


def _profiles(directory: Path) -> frozenset[Path]:
    if not directory.is_dir():
        return frozenset()
    return frozenset(path for path in event_files(directory) if path.parent == directory)
