"""``tb-dlprof run --nsys``: any program under the user's own Nsight Systems, and the recording imported at its end.

For what has no Python of ours in it: C++, TensorRT's server, TensorFlow. Of a PyTorch training, single iterations can
be asked for: they are counted as without nsys, and those before and after are timed. The report stays in the run's
directory.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import msgspec

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.capture.launcher.protocol import ProcessStatus, RunRequest, read_statuses
from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.run.options import Level, RunOptions
from tb_dlprof_plugin.cli.run.output_dir import OutputDirectory
from tb_dlprof_plugin.cli.run.results import Written, read_written, why_nothing
from tb_dlprof_plugin.cli.run.script import environment
from tb_dlprof_plugin.cli.run.summary import print_details, print_summary, print_totals, print_where
from tb_dlprof_plugin.cli.terminal import tell
from tb_dlprof_plugin.fleet.run_writer import write_run
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.nsys.report_file import find_nsys
from tb_dlprof_plugin.readers.nsys.trace_format import REPORT_ENDINGS
from tb_dlprof_plugin.readers.options import Markers, ReadOptions

_TRACED = "cuda,nvtx,cudnn,cublas"
_PYTORCH = "autograd-shapes-nvtx"
"""Value of nsys' own ``--pytorch``, with which it turns ``emit_nvtx`` on; its help says whether it has the option."""
_HELP_S = 60


@dataclass(frozen=True)
class NsysRun:
    """What is run, and how it is recorded; ``folder`` is where the request for single iterations and the processes'
    statuses lie."""

    command: Sequence[str]
    output: OutputDirectory
    options: RunOptions
    request: RunRequest
    folder: Path

    def line(self, nsys: str, pytorch: bool) -> list[str]:
        """The command line; ``pytorch`` says that this nsys can turn on PyTorch's ranges."""
        line = [
            nsys, "profile", f"--trace={_TRACED}", "--sample=none", "--cpuctxsw=none", f"--output={self._report}",
        ]  # fmt: skip
        if self.options.cuda_graph_nodes:
            line.append("--cuda-graph-trace=node")
        if pytorch and not self.options.simple and not self.options.by_iteration:
            line.append(f"--pytorch={_PYTORCH}")
        if self.options.delay:
            line.append(f"--delay={_seconds(self.options.delay)}")
        if self.options.duration is not None:
            line.append(f"--duration={_seconds(self.options.duration)}")
        if self.options.profile_range or self.options.by_iteration:
            line += ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
        return [*line, *shlex.split(self.options.nsys_opts), *self.command]

    def run(self) -> int:
        """The program's exit status as nsys returns it; at least 1 where nothing was recorded."""
        nsys = find_nsys()
        if nsys is None:
            refuse(
                "there is no nsys on PATH; install Nsight Systems (https://developer.nvidia.com/nsight-systems), or "
                "leave out --nsys to record a Python training with the hook"
            )
        line = self.line(nsys, _has_pytorch_option(nsys))
        if self.options.level is Level.verbose:
            tell(f"tb-dlprof: {shlex.join(line)}")
        env = None
        if self.options.by_iteration:
            self.request.write(self.folder)
            env = environment(self.folder)
        status = _wait(line, env)
        written = self._import(status)
        if not written:
            return status or 1
        self.output.remove_before(quiet=self.options.level is Level.quiet)
        self._print(written)
        return status

    @cached_property
    def _report(self) -> Path:
        """Without its ending, which nsys adds; one that is there already is not written over."""
        folder = self.output.directory
        names = itertools.chain([folder.name], (f"{folder.name}-{number}" for number in itertools.count(2)))
        return next(folder / name for name in names if not any(folder.glob(f"{glob.escape(name)}.*")))

    def _import(self, status: int) -> list[Written]:
        names = [self._report.with_name(self._report.name + ending) for ending in REPORT_ENDINGS]
        report = next((one for one in names if one.is_file()), None)
        processes = read_statuses(self.folder) if self.options.by_iteration else []
        if report is None and self.options.by_iteration and not any(one.phase == "recorded" for one in processes):
            tell(f"tb-dlprof: {why_nothing(processes, self.output.script, status, False)}")
            tell("tb-dlprof: without --iter-start and --iter-stop the whole program is recorded.")
            return []
        if report is None:
            tell("tb-dlprof: nsys wrote no report; its own messages above say why.")
            return []
        options = ReadOptions(Markers.NONE if self.options.simple else Markers.AUTO)
        try:
            profiles = analyze_ranks(report, session=self.output.directory.name, options=options)
            for profile in _with_timed_steps(profiles, processes):
                write_run(self.output.directory, profile)
        except (TraceError, OSError) as error:
            tell(f"tb-dlprof: {error}")
            return []
        return read_written(self.output.run, self.output.before)

    def _print(self, written: list[Written]) -> None:
        if self.options.level is Level.quiet:
            return
        if self.options.level is Level.minimal:
            tell(f"tb-dlprof: the profile is in {self.output.directory}.")
            return
        if self.options.simple:
            print_totals(written, self.output.script)
        else:
            print_summary(written, self.output.script)
        if self.options.level is Level.verbose:
            print_details(written, [])
        print_where(self.output.directory, self.options.simple)


def _with_timed_steps(profiles: Sequence[Profile], processes: Sequence[ProcessStatus]) -> Iterator[Profile]:
    """The profiles with the steps that their processes timed without nsys: nsys numbers processes as they started."""
    recorded = sorted((one for one in processes if one.phase == "recorded"), key=lambda one: one.pid)
    if len(recorded) != len(profiles):
        yield from profiles
        return
    for profile, process in zip(profiles, recorded, strict=True):
        facts = msgspec.structs.replace(
            profile.facts, unprofiled_before_ns=process.before_ns, unprofiled_after_ns=process.after_ns
        )
        yield replace(profile, facts=facts)


def _seconds(value: float) -> str:
    return str(max(1, round(value)))


def _has_pytorch_option(nsys: str) -> bool:
    try:
        done = subprocess.run(
            [nsys, "profile", "--help"], capture_output=True, text=True, errors="replace", timeout=_HELP_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return _PYTORCH in done.stdout


def _wait(line: Sequence[str], env: dict[str, str] | None) -> int:
    with _interrupts_left_to_the_program():
        try:
            return subprocess.run(line, env=env, check=False).returncode
        except OSError as error:
            refuse(f"{line[0]} cannot be started: {error.strerror}")


@contextlib.contextmanager
def _interrupts_left_to_the_program() -> Iterator[None]:
    """Ctrl-C reaches the whole foreground group: nsys ends the program and writes what it has."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
