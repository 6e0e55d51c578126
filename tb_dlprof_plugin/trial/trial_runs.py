"""The runs of the log directory that a trial leaves: the baseline, and remedies next to it, each recorded as
``tb-dlprof run`` does, in a process whose outputs go nowhere."""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import subprocess
import time
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path

from tb_dlprof_plugin.capture.launcher.protocol import VARIABLE, ProcessStatus, RunRequest, read_statuses
from tb_dlprof_plugin.fleet.run_writer import write_runs
from tb_dlprof_plugin.model.trial_result import TrialResult
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_folder import RunFolder, RunFolderError
from tb_dlprof_plugin.trial.inside.remedy import Remedy, environment_of
from tb_dlprof_plugin.trial.interruption import MadeFolders
from tb_dlprof_plugin.trial.process_tree import end
from tb_dlprof_plugin.trial.protocol import TrialRequest
from tb_dlprof_plugin.trial.variant import Laboratory, VariantError, why_ended

_LONGEST_S = 300.0
_RECORDING_FACTOR, _ANALYSIS_S = 1.5, 6.0
_POLL_S = 0.1

WaitForAnalyses = Callable[[list[ProcessStatus], Path], list[str]]
"""Waits until the traces of these processes are analysed into a folder; a sentence for each that failed."""


class Record(str, Enum):
    """Which remedies become runs of the log directory."""

    gains = "gains"
    all = "all"
    baseline = "baseline"
    none = "none"


class TrialRuns:
    """The runs of one trial, in one directory.

    Args:
        logdir: TensorBoard's log directory.
        name: of the directory in it.
        record: which remedies become runs.
        wait_for_analyses: of what was recorded.
        say: called with a sentence on what begins or failed.

    Raises:
        OSError: the directory cannot be made.
    """

    def __init__(
        self,
        logdir: Path,
        name: str,
        record: Record,
        wait_for_analyses: WaitForAnalyses,
        say: Callable[[str], None],
    ) -> None:
        self._logdir, self._name, self._record = logdir, name, record
        self._wait_for_analyses, self._say = wait_for_analyses, say
        self._folders = MadeFolders()
        if record is not Record.none:
            self._folders.make(logdir / name)

    def record(self, laboratory: Laboratory, name: str, remedies: Sequence[Remedy]) -> ProfileView | None:
        """Record a run with these remedies; None where that fails, with a message."""
        if self._record is Record.none:
            return None
        run = self._run(name)
        # The script cannot write elsewhere; a complete recording is moved out.
        recorded = laboratory.folder / "recorded" / name
        self._say(f"{name}: recording")
        try:
            recorded.mkdir(parents=True)
            self._run_script(laboratory, remedies, recorded)
            self._folders.make(run.path)
            with run.locked(0):
                _, removed = run.replace(lambda: run.take(recorded), run.recorded_files())
                if removed:
                    self._say(f"{run.path} was replaced; removed: {', '.join(removed)}.")
                stored = [one for file in run.event_files() for one in read_profiles(file.path)]
            return ProfileView(stored[0].profile) if stored else None
        except (VariantError, ProfileError, RunFolderError, OSError) as error:
            self._say(f"{name} was not recorded: {error}.")
            return None

    def earlier(self) -> ProfileView | None:
        """The baseline of an earlier trial; None where there is none that can be read."""
        with contextlib.suppress(ProfileError, RunFolderError, OSError):
            run = self._run("baseline")
            stored = [one for file in run.event_files() for one in read_profiles(file.path)]
            return ProfileView(stored[0].profile) if stored else None
        return None

    def seconds(self, start_s: float) -> float:
        """About how long one recording takes of a script that starts in so many seconds; 0 where none is wanted."""
        return 0.0 if self._record is Record.none else _RECORDING_FACTOR * start_s + _ANALYSIS_S

    def wants(self, is_gain: bool) -> bool:
        """Whether a measured remedy becomes a run."""
        return self._record is Record.all or (self._record is Record.gains and is_gain)

    def path_of(self, name: str) -> str:
        """Of a run, below the log directory."""
        return f"{self._name}/{name}"

    def store(self, result: TrialResult) -> None:
        """Store the result with the profile of the baseline."""
        run = self._run("baseline")
        if self._record is Record.none or not run.path.is_dir():
            return
        try:
            with run.locked():
                old = run.event_files()
                stored = [one.profile for file in old for one in read_profiles(file.path)]
                run.replace(
                    lambda: write_runs(run.path, [dataclasses.replace(one, trial=result) for one in stored]),
                    old if stored else [],
                )
        except (ProfileError, RunFolderError, OSError) as error:
            self._say(f"the result was not stored: {error}.")

    def remove_empty(self) -> None:
        """Remove the folders that were made and that nothing was written to."""
        self._folders.remove_empty()

    def _run(self, name: str) -> RunFolder:
        return RunFolder(self._logdir, self.path_of(name))

    def _run_script(self, laboratory: Laboratory, remedies: Sequence[Remedy], recorded: Path) -> None:
        """Start the script, wait until the recording is complete, and end the script.

        Raises:
            VariantError: it cannot be started, or recorded nothing in time.
        """
        folder = laboratory.new_folder()
        session = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
        RunRequest(run_directory=str(recorded), began_s=time.time(), session=session).write(folder)
        request = TrialRequest(tuple(one.name for one in remedies), "")
        process = laboratory.start(folder, request, {**environment_of(remedies), VARIABLE: str(folder)})
        try:
            _wait_until_recorded(process, folder)
            if process.returncode not in (None, 0):
                raise VariantError(why_ended(laboratory, folder, process.returncode))
            failures = self._wait_for_analyses(read_statuses(folder), recorded)
            if failures:
                raise VariantError(failures[0].rstrip("."))
        finally:
            end(process)


def _wait_until_recorded(process: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + _LONGEST_S
    while process.poll() is None and not _all_recorded(read_statuses(folder)):
        if time.monotonic() > until:
            raise VariantError(f"nothing was recorded within {_LONGEST_S:.0f} s")
        time.sleep(_POLL_S)


def _all_recorded(statuses: Sequence[ProcessStatus]) -> bool:
    recorded = [one for one in statuses if one.phase == "recorded" and one.analyses]
    return bool(recorded) and len(recorded) >= max(one.world_size for one in recorded)
