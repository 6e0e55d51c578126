"""The separate process: ``python -m tb_dlprof_plugin.capture.worker job.json``. Imports no torch.

A job file in, an event file out. The trace is compressed or removed afterwards, if asked for. On success nothing else
is left behind; on failure the last line on stderr says why, and the training process repeats it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import gzip
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from tb_dlprof_plugin.capture.job import Job
from tb_dlprof_plugin.capture.system import complete_system

_GZIP_LEVEL = 6
_NICENESS = 10
_UNSCALE_OP = "aten::_amp_foreach_non_finite_check_and_unscale_"


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 once the event file is written, 1 otherwise, 2 for a wrong command line."""
    if len(arguments) != 1:
        print("usage: python -m tb_dlprof_plugin.capture.worker JOB.json", file=sys.stderr)
        return 2
    job_file = Path(arguments[0])
    job = Job.read(job_file)
    job_file.unlink(missing_ok=True)
    with contextlib.suppress(AttributeError, OSError):
        os.nice(_NICENESS)
    with _alone(job.lock_fd):
        why = _attempt(lambda: analyze(job))
        # Also after a failed analysis: the PyTorch Profiler tab may read the trace all the same.
        why_trace = _attempt(lambda: finish_trace(job, analyzed=why is None))
    if why or why_trace:
        print(why or why_trace, file=sys.stderr)
        return 1
    shutil.rmtree(job_file.parent, ignore_errors=True)
    return 0


def analyze(job: Job) -> Path:
    """Write the event file of the job's trace and return its path. Raises TraceError, OSError."""
    from tb_dlprof_plugin.analysis import analyze_trace
    from tb_dlprof_plugin.storage.eventfile import write_profile

    profile = analyze_trace(
        job.trace,
        facts=job.facts,
        system=complete_system(job.system),
        session=job.session,
        rank=job.rank,
        cycle=job.cycle,
        worker=job.worker,
    )
    facts = profile.facts
    if facts.grad_scaler is None and any(name.startswith(_UNSCALE_OP) for name in profile.strings):
        # The hook looks at optimizer steps, and a GradScaler that finds inf skips them.
        facts = msgspec.structs.replace(facts, grad_scaler=True)
    # The name that the trace will have, not the one it has while it waits to be compressed.
    source = dataclasses.replace(profile.source, trace_file=os.path.basename(job.final_trace) if job.keep_trace else "")
    return write_profile(Path(job.event_directory), dataclasses.replace(profile, source=source, facts=facts))


def finish_trace(job: Job, analyzed: bool) -> None:
    """Compress the trace, or remove it if nobody wants to keep it and its profile is written. Raises OSError."""
    if analyzed and not job.keep_trace:
        os.unlink(job.trace)
        return
    if not job.compress:
        return
    # No reader may see the final name before all of it is there.
    temporary = job.trace + ".gz.tmp"
    try:
        with open(job.trace, "rb") as plain, gzip.open(temporary, "wb", compresslevel=_GZIP_LEVEL) as packed:
            shutil.copyfileobj(plain, packed, 1 << 20)
        os.replace(temporary, job.final_trace)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    os.unlink(job.trace)


def _attempt(step: Callable[[], object]) -> str | None:
    """Run ``step``; None if it went well, else one sentence that says what went wrong."""
    from tb_dlprof_plugin.trace.errors import TraceError

    try:
        step()
    except TraceError as error:
        return _line(str(error))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return "the disk is full"
        where = f" {error.filename}" if error.filename else ""
        return _line(f"{error.strerror or type(error).__name__}{where}")
    except MemoryError:
        return "the analysis ran out of memory"
    except Exception as error:
        traceback.print_exc()
        return _line(f"{type(error).__name__}: {error}")
    return None


def _line(text: str) -> str:
    return " ".join(text.split())


@contextlib.contextmanager
def _alone(lock_fd: int | None) -> Iterator[None]:
    """Lock the inherited file, if there is one and the system can lock; the end of the process unlocks it."""
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        if lock_fd is not None:
            # Locks of this kind belong to the process: those of `flock` would be shared with the file's other heirs.
            fcntl.lockf(lock_fd, fcntl.LOCK_EX)
    yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
