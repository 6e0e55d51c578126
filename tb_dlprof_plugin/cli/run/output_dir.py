"""Chooses and creates the directory for the profile of a ``tb-dlprof run``."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.terminal import tell
from tb_dlprof_plugin.store.run_files import RunFile
from tb_dlprof_plugin.store.run_folder import RunFolder, RunFolderError


@dataclass(frozen=True, slots=True)
class OutputDirectory:
    """The run; what an earlier recording left of it; the script's name."""

    run: RunFolder
    before: Sequence[RunFile]
    script: str

    @property
    def directory(self) -> Path:
        """The run's folder, absolute."""
        return self.run.path.absolute()

    def remove_before(self, quiet: bool) -> None:
        """Remove what the earlier recording left, and say what that was. The new run is written."""
        try:
            _, removed = self.run.replace(lambda: None, self.before)
        except (RunFolderError, OSError) as error:
            tell(f"tb-dlprof: the earlier profiles of {self.directory} were not removed: {error}.")
            return
        if removed and not quiet:
            tell(f"tb-dlprof: {self.directory} was replaced; removed: {', '.join(removed)}.")


@contextlib.contextmanager
def output_directory(logdir: Path, name: str | None, command: Sequence[str], force: bool) -> Iterator[OutputDirectory]:
    """Create the run's folder; ends the command with one sentence if that fails, before the script starts.

    The default name is the script's; if that is taken, and not to be replaced, the next with a number. No other command
    of ours writes the run during the block. A folder that nothing was written to is removed at its end.
    """
    script = script_name(command)
    if name is not None:
        try:
            RunFolder.named(logdir, name)
        except RunFolderError as error:
            refuse(f"--run-name {error}")
    stem = script.removesuffix(".py")
    default = stem if stem.strip(".") else "run"
    names = [default] if name is None else [name]
    is_numbered = name is None and not force
    with contextlib.ExitStack() as stack:
        for candidate in itertools.chain(names, (f"{default}-{number}" for number in itertools.count(2))):
            try:
                run, before = stack.enter_context(_taken(logdir, candidate, force, explain=not is_numbered))
                break
            except RunFolderError as error:
                if not is_numbered:
                    refuse(error)
            except FileExistsError:
                refuse(
                    f"{logdir / candidate} is a file, where the run's directory would be; choose another --logdir or "
                    "--run-name"
                )
            except OSError as error:
                refuse(f"{logdir / candidate} cannot be written ({error.strerror}); choose another --logdir")
        yield OutputDirectory(run, before, script)


@contextlib.contextmanager
def _taken(logdir: Path, name: str, force: bool, explain: bool) -> Iterator[tuple[RunFolder, list[RunFile]]]:
    run = RunFolder.named(logdir, name)
    with run.locked(0):
        try:
            if not force:
                run.check_free("another --run-name", with_traces=explain)
            before = run.recorded_files()
            if before:
                run.check_no_link()
            tempfile.TemporaryFile(dir=run.path).close()
            yield run, before
        finally:
            with contextlib.suppress(OSError):
                run.path.rmdir()


def script_name(command: Sequence[str]) -> str:
    """The script's name: the first Python file of the command, the module after -m, else the command."""
    for word in command[1:]:
        if word.endswith((".py", ".pyz")):
            return Path(word).name
    for before, word in itertools.pairwise(command):
        if before == "-m":
            return word
    return Path(command[1] if len(command) > 1 and Path(command[1]).is_dir() else command[0]).name
