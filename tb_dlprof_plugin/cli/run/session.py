"""One ``tb-dlprof run`` from the script's start to the last line of the summary."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tb_dlprof_plugin.capture.launcher.protocol import ProcessStatus, RunRequest, read_statuses
from tb_dlprof_plugin.cli.fail_on import FailOn, exit_status
from tb_dlprof_plugin.cli.run.framework_recordings import import_recordings
from tb_dlprof_plugin.cli.run.options import Level, RunOptions
from tb_dlprof_plugin.cli.run.output_dir import OutputDirectory
from tb_dlprof_plugin.cli.run.results import (
    Written,
    job_of_written,
    read_written,
    wait_for_analyses,
    why_nothing,
)
from tb_dlprof_plugin.cli.run.script import Script
from tb_dlprof_plugin.cli.run.summary import TOP_FINDINGS, print_details, print_summary, print_totals, print_where
from tb_dlprof_plugin.cli.terminal import tell
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.model.whole_file import whole_file
from tb_dlprof_plugin.reports.model_data import model_data
from tb_dlprof_plugin.reports.registry import BASE_NAME, make_report, write_reports

_LOOK_EVERY_S = 0.5
_OVERDUE_S = 60.0
"""The longest wait for the end of a recording after --duration, if no iteration ends."""


@dataclass
class RunSession:
    """The script, the directory of its profile, and the files to write at the end."""

    command: Sequence[str]
    output: OutputDirectory
    options: RunOptions
    request: RunRequest
    folder: Path
    reports: list[str]
    formats: list[str]
    _looked_s: float = field(default=0.0, init=False)
    _announced: bool = field(default=False, init=False)
    _of_job: int = field(default=0, init=False)

    @property
    def _base_name(self) -> str:
        return self.options.base_name or BASE_NAME

    def run(self) -> int:
        """The script's exit status, negative for a signal; 0 where ``--duration`` ended it, then that of `--fail-on`.

        Raises:
            ScriptError: it cannot be started.
        """
        self.request.write(self.folder)
        if self.options.level is Level.verbose:
            tell(f"tb-dlprof: {' '.join(self.command)}")
        script = Script(self.command, self.folder)
        status = script.wait(lambda: self._look(script))
        try:
            written = self._finish(status)
        except KeyboardInterrupt:
            tell(f"tb-dlprof: not waiting any longer; the profile will be in {self.output.directory}.")
            written = True
        except Exception as error:
            tell(f"tb-dlprof: the end of the run failed: {type(error).__name__}: {error}.")
            written = False
        status = 0 if script.stopped and written else status
        return self._of_job if status == 0 else status

    def _look(self, script: Script) -> None:
        """Check the progress of the script's processes while it runs."""
        now = time.monotonic()
        if now - self._looked_s < _LOOK_EVERY_S:
            return
        self._looked_s = now
        processes = read_statuses(self.folder)
        recorded = [process for process in processes if process.phase == "recorded"]
        recording = [process for process in processes if process.phase == "recording"]
        if recorded and not recording and not self._announced:
            self._announced = True
            if self.request.duration_s is not None:
                script.stop()
            if self.options.level >= Level.normal and not all(process.ended for process in recorded):
                goes_on = "the script is stopped" if script.stopped else "the script goes on"
                tell(f"tb-dlprof: {_range(recorded[0])} recorded; {goes_on}.")
        if self.request.duration_s is None or script.stopped:
            return
        since = min((one.recording_since_s for one in recording if one.recording_since_s is not None), default=None)
        if since is not None and time.time() > since + self.request.duration_s + _OVERDUE_S:
            tell(f"tb-dlprof: no iteration ended within {_OVERDUE_S:.0f} s after --duration; the script is stopped.")
            script.stop()

    def _finish(self, status: int) -> bool:
        """Whether there is a profile."""
        processes = read_statuses(self.folder)
        failures = wait_for_analyses(processes, self.output.directory, self.options.level >= Level.normal)
        if not any(process.analyses for process in processes):
            failures += import_recordings(processes, self.output.directory, self.request.session)
        for failure in failures:
            tell(f"tb-dlprof: {failure}")
        written = read_written(self.output.run, self.output.before)
        if not written:
            if not failures:
                tell(f"tb-dlprof: {why_nothing(processes, self.output.script, status, self.request.between_marks)}")
            return False
        self.output.remove_before(quiet=self.options.level is Level.quiet)
        paths = self._write_files(written[0])
        job = job_of_written(self.output.directory, written)
        self._print(written, processes, paths, job)
        if self.options.fail_on is FailOn.straggler and job is not None:
            self._of_job = exit_status(job)
        return True

    def _write_files(self, written: Written) -> list[Path]:
        """Write the reports and the dump; a warning if they cannot be written."""
        view, ref = written.view, written.ref
        made = {
            name: make_report(name, view, ref, view.selection(), profile_name=self._base_name) for name in self.reports
        }
        try:
            paths = list(write_reports(made, self.formats, self.options.output_path, self._base_name))
            if self.options.dump_model_data:
                path = self.options.output_path / f"{self._base_name.replace(' ', '_')}_model_data.json"
                with whole_file(path) as file:
                    file.write(msgspec.json.encode(model_data(view, ref)))
                paths.append(path)
        except OSError as error:
            folder = self.options.output_path
            tell(f"tb-dlprof: {folder} cannot be written ({error.strerror}); run `tb-dlprof report` again.")
            return []
        return paths

    def _print(
        self, written: list[Written], processes: list[ProcessStatus], paths: list[Path], job: Job | None
    ) -> None:
        if self.options.level is Level.quiet:
            return
        if self.options.level is Level.minimal:
            tell(f"tb-dlprof: the profile is in {self.output.directory}.")
            return
        verbose = self.options.level is Level.verbose
        if self.request.simple:
            print_totals(written, self.output.script)
        else:
            print_summary(written, self.output.script, None if verbose else TOP_FINDINGS, job)
        if verbose:
            print_details(written, processes)
        if paths:
            tell(f"  Written:  {', '.join(map(str, paths))}")
        print_where(self.output.directory, self.request.simple, len(written))


def _range(process: ProcessStatus) -> str:
    if process.first is None:
        return "a stretch of time is"
    if process.first == process.last:
        return f"iteration {process.first} is"
    return f"iterations {process.first} to {process.last} are"
