"""Results of a ``tb-dlprof run``: waits for the analyses, reads the profiles, or explains why there is none."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tb_dlprof_plugin.api.distributed import distributed
from tb_dlprof_plugin.capture.analysis_job import STDERR, remove_job_folder
from tb_dlprof_plugin.capture.launcher.protocol import Analysis, ProcessStatus
from tb_dlprof_plugin.cli.terminal import tell
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.choice import newest_of_ranks
from tb_dlprof_plugin.store.logdir import EventFileStore
from tb_dlprof_plugin.store.run_files import RunFile, entry_named
from tb_dlprof_plugin.store.run_folder import RunFolder
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.trial.process_state import runs

_WAITING = re.compile(r"\.(?P<stem>.+)\.waiting\.json", re.DOTALL)
"""The name of a trace whose analysis has not ended."""
_QUIET_S = 1.0
"""A wait shorter than this is not worth a line."""
_SIGNALS_OF_SHELLS = 128
"""What shells add to the number of the signal that ended a command, for its exit status."""
_FRAMEWORKS = "torch, jax or tensorflow"
_NOT_CALLED = {
    "jax": "no function of jax.jit was called again and again",
    "tensorflow": "no tf.function was called again and again",
    "torch": "no optimizer stepped and no model was called",
}
_OWN_PROFILER = {
    True: "on_trace_ready=tb_dlprof_plugin.trace_handler(...) in it makes profiles of that",
    False: "`tb-dlprof import` makes a run of what that writes",
}


@dataclass(frozen=True, slots=True)
class Written:
    """A profile of this run."""

    view: ProfileView
    ref: RunRef


def wait_for_analyses(processes: list[ProcessStatus], run_directory: Path, show_progress: bool) -> list[str]:
    """Wait until all traces are analysed; a sentence for each that failed."""
    running = [analysis for process in processes for analysis in process.analyses]
    failures: list[str] = []
    line = _ProgressLine(show_progress)
    began_s = time.monotonic()
    try:
        while running:
            for analysis in [one for one in running if _has_ended(one)]:
                running.remove(analysis)
                if os.path.isdir(analysis.folder):
                    failures.append(_failure(analysis, run_directory))
            waited_s = time.monotonic() - began_s
            if running and waited_s > _QUIET_S:
                traces = "the recording" if len(running) == 1 else f"{len(running)} recordings"
                line.show(f"tb-dlprof: analysing {traces} ({_megabytes(running)}), {waited_s:.0f} s")
            if running:
                time.sleep(0.05 if waited_s < _QUIET_S else 0.2)
    finally:
        line.clear()
    return failures


def read_written(run: RunFolder, before: Sequence[RunFile]) -> list[Written]:
    """The profiles of the event files that were not there ``before``, by rank, each rank's newest.

    Raises:
        ProfileError: one cannot be read.
    """
    name = run.path.name
    earlier = {file.name for file in before}
    store = EventFileStore({name: [file.path for file in run.event_files() if file.name not in earlier]})
    return [Written(store.view(blob), blob.ref) for blob in newest_of_ranks(store.of_run(name))]


def job_of_written(run_directory: Path, written: list[Written]) -> Job | None:
    """The answers about all ranks of this run; None where one rank was recorded.

    Raises:
        ProfileError: what is stored of them cannot be read. ValueError: a rank was recorded twice.
    """
    return distributed(run_directory) if len(written) > 1 else None


def why_nothing(processes: list[ProcessStatus], script: str, status: int, between_marks: bool) -> str:
    """One sentence with the reason why nothing was recorded, and what to do.

    Args:
        processes: those that imported a framework, or began to; one for each framework of a process.
        script: its name.
        status: its exit status, negative for the signal that ended it.
        between_marks: only what is between the script's own marks was to be recorded.
    """
    ended = _how_it_ended(status)
    broken = next((one for one in processes if one.phase == "not_imported"), None)
    processes = [one for one in processes if one.phase != "not_imported"]
    if broken is not None and not processes:
        return f"{script} did not get past the import of {broken.framework}, so nothing was recorded: {broken.said}."
    if not processes and ended:
        return f"{script} {ended}, and no import of {_FRAMEWORKS} was seen before that, so nothing was recorded."
    if not processes:
        return (
            f"{script} did not import {_FRAMEWORKS}, so nothing was recorded; a Python that is started with -I, -E or "
            "-S, or with another PYTHONPATH, cannot be recorded. `tb-dlprof run --nsys` records any program."
        )
    for process in processes:
        if process.phase == "left_alone":
            return f"{script} was not recorded: {process.said}; {_OWN_PROFILER[process.framework == 'torch']}."
        if process.phase == "failed":
            return f"Nothing was recorded: {process.said}."
    if between_marks and not any(process.phase == "recording" for process in processes):
        return f"{script} did not call torch.cuda.profiler.start(), so nothing was recorded; leave out --profile-range."
    waiting = [process for process in processes if process.phase == "waiting"]
    if waiting:
        process = max(waiting, key=lambda one: one.iterations)
        return _too_short(process, script)
    if any(process.phase == "recording" for process in processes):
        return f"{script} was ended while it was recorded, so there is no profile."
    if ended:
        return f"{script} {ended} before {_before_work(processes)}, so nothing was recorded."
    return f"{script} imported {_imported(processes)}, but {_no_work(processes)}, so nothing was recorded."


def _imported(processes: list[ProcessStatus]) -> str:
    return " and ".join(sorted({process.framework for process in processes}))


def _before_work(processes: list[ProcessStatus]) -> str:
    return "it called a model" if _imported(processes) == "torch" else "it called a compiled function twice"


def _no_work(processes: list[ProcessStatus]) -> str:
    frameworks = {process.framework for process in processes}
    if frameworks == {"torch"}:
        return "no optimizer stepped and no model was called"
    said = [_NOT_CALLED[name] for name in sorted(frameworks)]
    return f"{', and '.join(said)} (--duration records a stretch of time)"


def _how_it_ended(status: int) -> str:
    """Such as "ended with status 1"; "" if it ended well."""
    number = -status if status < 0 else status - _SIGNALS_OF_SHELLS if status > _SIGNALS_OF_SHELLS else 0
    if number == signal.SIGINT:
        return "was interrupted"
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(number).name}"
    return f"ended with status {status}" if status else ""


def _too_short(process: ProcessStatus, script: str) -> str:
    if not process.ended:
        return f"{script} was ended before the recording began, so there is no profile."
    unit = (
        process.unit if process.iterations != 1 else process.unit.replace("steps", "step").replace("calls", "call", 1)
    )
    seen = f"{process.iterations} {unit}"
    start = f", and the recording begins with number {process.starts_at}" if process.starts_at is not None else ""
    if process.iterations < 2:
        return f"{script} ended after {seen}{start}: let it run for more of them."
    first = min(3, process.iterations - 1)
    return (
        f"{script} ended after {seen}{start}, counted from 0: let it run longer, or give "
        f"--iter-start {first} --iter-stop {process.iterations - 1}."
    )


def _has_ended(analysis: Analysis) -> bool:
    """Whether the analysis has ended: its folder is removed once the profile is written; a failed process leaves it."""
    return not os.path.isdir(analysis.folder) or not runs(analysis.pid)


def _failure(analysis: Analysis, run_directory: Path) -> str:
    why = "its analysis was ended"
    # The script's process wrote these paths into a file: they are compared with what is there.
    folder = entry_named(Path(tempfile.gettempdir()), analysis.folder)
    if folder is not None:
        with contextlib.suppress(OSError):
            text = (folder / STDERR).read_text(errors="replace")
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            why = lines[-1].rstrip(".") if lines else why
        remove_job_folder(folder)
    trace = analysis.final_trace
    kept = entry_named(run_directory, analysis.trace)
    waiting = None if kept is None else _WAITING.fullmatch(kept.name)
    if kept is not None and waiting is not None:
        trace = str(run_directory / f"{waiting['stem']}.pt.trace.json")
        with contextlib.suppress(OSError):
            if not os.path.lexists(trace):
                kept.rename(trace)
    command = f"tb-dlprof import {shlex.quote(trace)} --logdir {shlex.quote(str(run_directory.parent))}"
    return f"The profile of {trace} was not written: {why}. Run `{command} --run {shlex.quote(run_directory.name)}`."


def _megabytes(analyses: list[Analysis]) -> str:
    total = 0
    for analysis in analyses:
        with contextlib.suppress(OSError):
            total += os.path.getsize(analysis.trace)
    return f"{total / 1e6:.0f} MB"


class _ProgressLine:
    """A line on standard error that is overwritten; one plain line if that is not a terminal."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._width = 0
        self._terminal = sys.stderr.isatty()

    def show(self, text: str) -> None:
        if not self._wanted or (self._width and not self._terminal):
            return
        tell(text, end="" if self._terminal else " ...\n", over=self._terminal)
        self._width = len(text)

    def clear(self) -> None:
        if self._width and self._terminal:
            tell(" " * self._width, end="\r", over=True)
