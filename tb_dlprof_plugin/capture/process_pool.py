"""Starts the analysis processes and checks their exit status.

Each trace gets one process. It has its own process session, so that Ctrl-C in the training does not end it. Its exit
status is checked when the next trace is ready, in `wait_for_analysis`, and when the interpreter exits.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import msgspec

from tb_dlprof_plugin.capture.analysis_job import JOB, NO_COPY, STDERR, AfterPart, AnalysisJob
from tb_dlprof_plugin.capture.export import remove
from tb_dlprof_plugin.capture.warn import probe, warn
from tb_dlprof_plugin.model import addresses
from tb_dlprof_plugin.model.visible import visible

EXIT_WAIT_S = 120.0
"""How long the interpreter's exit waits for running analyses by default."""

_AWAITS_AFTER_S = 30.0
"""The longest that an analysis waits for the steps after its recording; it continues without them."""

_QUIET_S = 2.0
"""A wait shorter than this is not worth a message."""

_WORKER_MODULE = "tb_dlprof_plugin.capture.analysis_process"

_running: list[AnalysisProcess] = []
_lock: list[IO[bytes]] = []


class AnalysisProcess:
    """One running analysis.

    Args:
        job: the trace.
        exit_wait_s: how long the interpreter's exit waits for it.
        after: what was measured after the recording so far; called by `complete`, when the analysis may begin. None: it
            begins immediately.

    Raises:
        OSError: the process or its job file could not be created.
    """

    def __init__(
        self, job: AnalysisJob, exit_wait_s: float = EXIT_WAIT_S, after: Callable[[], AfterPart] | None = None
    ) -> None:
        self.job = job
        self._after = after
        job.awaits_after_s = 0.0 if after is None else _AWAITS_AFTER_S
        self.exit_wait_s = exit_wait_s
        self.parent = os.getpid()
        self.announced = False
        """Whether the line about the profile was printed."""
        self.folder = Path(tempfile.mkdtemp(prefix="tb_dlprof_"))
        try:
            job.lock_fd = _lock_fd()
            job_file = self.folder / JOB
            job.write(job_file)
            with open(self.folder / STDERR, "wb") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", _WORKER_MODULE, str(job_file)],
                    stdin=subprocess.PIPE if job.awaits_after_s else subprocess.DEVNULL,
                    stdout=subprocess.PIPE if job.announce_as else subprocess.DEVNULL,
                    stderr=log,
                    cwd=self.folder,
                    env=_environment(),
                    start_new_session=True,
                    pass_fds=() if job.lock_fd is None else (job.lock_fd,),
                )
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def complete(self) -> None:
        """Let the analysis begin, with what was measured after the recording. Never raises; a second call does
        nothing."""
        pipe, self.process.stdin = self.process.stdin, None
        after, self._after = self._after, None
        if pipe is None:
            return
        if self.parent == os.getpid():
            said = None if after is None else probe(lambda: self._encoded(after()))
            # With an end of its own: a forked child may keep the pipe open.
            probe(lambda: pipe.write((said or b"") + b"\n"))
        probe(pipe.close)

    def _encoded(self, after: AfterPart) -> bytes:
        self.job.light = self.job.light or after.light
        return msgspec.json.encode(after)

    def finished(self) -> bool:
        """Whether it ended, well or not."""
        return self.process.poll() is not None

    def announce(self) -> None:
        """Print the line about the profile if there is one. Call after the process ended; a second call does nothing.
        Never raises."""
        pipe, self.process.stdout = self.process.stdout, None
        if pipe is None:
            return
        line = probe(lambda: pipe.read().decode()) or ""
        probe(pipe.close)
        if line:
            self.announced = True
            _say(line)

    def report(self) -> bool:
        """Whether it ended well; warns if not. Call once, after it ended."""
        self.announce()
        code = self.process.returncode
        if code and self.job.light is not None:
            remove(self.job.light.path)
        why = probe(lambda: self._why(code)) if code else None
        shutil.rmtree(self.folder, ignore_errors=True)
        if not code:
            return True
        if code == NO_COPY:
            warn(f"The profile is written, but not the trace for the PyTorch Profiler tab, {self.job.tab_copy}: {why}.")
            return True
        trace = probe(lambda: _salvage(self.job)) or self.job.trace
        warn(f"The profile of {trace} was not written: {why or 'its analysis failed'}. {_advice(trace, self.job)}")
        return False

    def _why(self, code: int) -> str:
        if code < 0:
            name = probe(lambda: signal.Signals(-code).name) or f"signal {-code}"
            return f"its analysis process was killed by {name}"
        text = (self.folder / STDERR).read_text(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1].rstrip(".") if lines else f"its analysis process ended with status {code}"


def start_analysis(
    job: AnalysisJob, exit_wait_s: float = EXIT_WAIT_S, after: Callable[[], AfterPart] | None = None
) -> AnalysisProcess | None:
    """Begin the analysis of a trace; warns and returns None if no process starts. Arguments as of `AnalysisProcess`."""
    try:
        worker = AnalysisProcess(job, exit_wait_s, after)
    except Exception as error:
        if job.light is not None:
            remove(job.light.path)
        trace = probe(lambda: _salvage(job)) or job.trace
        warn(f"The profile of {trace} was not written: no analysis process started ({error}). {_advice(trace, job)}")
        return None
    _running.append(worker)
    return worker


def reap() -> None:
    """Check the processes that have ended, without waiting."""
    for worker in _own():
        if worker.finished():
            _forget(worker)
            worker.report()


def wait_for_analysis(timeout: float | None = None, workers: list[AnalysisProcess] | None = None) -> bool:
    """Wait until the profiles of all traces so far are written.

    Args:
        timeout: seconds; None: no limit.
        workers: wait for these only.

    Returns:
        Whether all were written. A `TbDlprofWarning` names those that failed or still run.
    """
    start = time.monotonic()
    mine = [worker for worker in _own() if workers is None or worker in workers]
    for worker in mine:
        worker.complete()
    told = False
    well = True
    for worker in mine:
        while not worker.finished():
            waited = time.monotonic() - start
            if timeout is not None and waited >= timeout:
                break
            if waited > _QUIET_S and not told:
                told = True
                left = sum(not other.finished() for other in mine)
                _say(f"tb_dlprof: waiting for the analysis of {left} trace{'s' if left > 1 else ''} ...")
            time.sleep(0.02 if waited < _QUIET_S else 0.1)
        if worker.finished():
            _forget(worker)
            well = worker.report() and well
        else:
            well = False
            warn(f"The analysis of {worker.job.trace} still runs after {timeout:g} s; it goes on in the background.")
    if told and well:
        _say("tb_dlprof: done.")
    return well


def _at_exit() -> None:
    mine = _own()
    if not mine:
        return
    try:
        wait_for_analysis(timeout=max(worker.exit_wait_s for worker in mine))
    except KeyboardInterrupt:
        _say("tb_dlprof: not waiting any longer; the analysis goes on in the background.")
    except Exception as error:
        warn(f"Waiting for the analysis failed: {error}.")


# Registered once: in a forked child it finds no process of its own and does nothing.
atexit.register(_at_exit)


def _own() -> list[AnalysisProcess]:
    return [worker for worker in list(_running) if worker.parent == os.getpid()]


def _forget(worker: AnalysisProcess) -> None:
    if worker in _running:
        _running.remove(worker)


def _lock_fd() -> int | None:
    """A file without a name that all workers inherit; None on systems where a child cannot inherit one."""
    if os.name != "posix":
        return None
    if not _lock:
        _lock.append(tempfile.TemporaryFile(prefix="tb_dlprof_"))  # noqa: SIM115 (open as long as the process lives)
    return _lock[0].fileno()


def _environment() -> dict[str, str]:
    """The environment of the analysis process: the same packages, and few threads, to leave the CPUs to the
    training."""
    env = dict(os.environ)
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    # A user's trace.py or types.py next to the training script would hide the standard library's.
    hidden = {"", os.getcwd(), os.path.dirname(os.path.abspath(script)) if script else ""}
    package_root = str(Path(__file__).resolve().parents[2])
    paths = [package_root, *(os.path.abspath(entry) for entry in sys.path if entry and entry not in hidden)]
    env["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    for name in ("PYTHONWARNINGS", "PYTHONINSPECT", "PYTHONPROFILEIMPORTTIME", "LD_PROFILE"):
        env.pop(name, None)
    env.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3")
    return env


def _salvage(job: AnalysisJob) -> str | None:
    """Rename the trace of a failed job to its final name."""
    if os.path.exists(job.final_trace):
        return job.final_trace
    plain = job.final_trace.removesuffix(".gz")
    if job.trace != plain and os.path.exists(job.trace):
        os.makedirs(os.path.dirname(plain), exist_ok=True)
        os.replace(job.trace, plain)
    return plain


def _advice(trace: str, job: AnalysisJob) -> str:
    address = job.event_directory
    logdir, run = os.path.split(address if addresses.is_remote(address) else os.path.abspath(address))
    return f"Run `tb-dlprof import {shlex.quote(trace)} --logdir {shlex.quote(logdir)} --run {shlex.quote(run)}`."


def _say(message: str) -> None:
    stream: Any = sys.stderr
    if stream is not None:
        probe(lambda: print(visible(message), file=stream, flush=True))
