"""The separate process: ``python -m tb_dlprof_plugin.capture.analysis_process job.json``. Imports no torch.

Reads a job file and writes an event file; then, if requested, a copy of the trace for the PyTorch Profiler tab. What is
measured after the recording is read from the standard input: the analysis begins when that is closed, also by the end
of the training process. The trace is compressed or removed last. On success no other file remains; on failure the last
line on stderr gives the reason, which the training process repeats. The line about the profile that the training
process prints, if it is asked for, is the standard output.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import gzip
import os
import select
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tb_dlprof_plugin.capture.analysis_job import (
    NO_COPY,
    SPOOL,
    AfterPart,
    AnalysisJob,
    BatchRows,
    LightTrace,
    remove_job_folder,
)
from tb_dlprof_plugin.capture.facts.machine import complete_system
from tb_dlprof_plugin.model import addresses
from tb_dlprof_plugin.model.whole_file import whole_file

if TYPE_CHECKING:
    from tb_dlprof_plugin.model.profile import LoaderBatches, Profile

_GZIP_LEVEL = 6
_NICENESS = 10
_UNSCALE_OP = "aten::_amp_foreach_non_finite_check_and_unscale_"


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 if all went well, `NO_COPY` if only that failed, 2 for a wrong command line, 1 otherwise."""
    if len(arguments) != 1:
        print("usage: python -m tb_dlprof_plugin.capture.analysis_process JOB.json", file=sys.stderr)
        return 2
    job_file = Path(arguments[0])
    job = AnalysisJob.read(job_file)
    job_file.unlink(missing_ok=True)
    with contextlib.suppress(AttributeError, OSError):
        os.nice(_NICENESS)
    take_after_part(job)
    with _alone(job.lock_fd):
        made: list[Profile] = []
        why = _attempt(lambda: made.append(analyze(job)))
        why_copy = _attempt(lambda: copy_for_tab(job, made[0])) if made and job.tab_copy else None
        # Also after a failed analysis: other tools may read the trace all the same.
        why_trace = _attempt(lambda: finish_trace(job, analyzed=why is None))
    if job.light is not None:
        with contextlib.suppress(OSError):
            os.unlink(job.light.path)
    if job.announce_as and made and not why:
        # Last: the next recording's analysis does not wait for it, and without it nothing is lost.
        _attempt(lambda: announce(job, made[0]))
    if why or why_trace or why_copy:
        print(why or why_trace or why_copy, file=sys.stderr)
        return 1 if why or why_trace else NO_COPY
    remove_job_folder(job_file.parent)
    remove_spool(job)
    return 0


def remove_spool(job: AnalysisJob) -> None:
    """Remove the temporary directory of the trace if it was the last one in it."""
    folder = os.path.dirname(job.trace)
    if os.path.basename(folder).startswith(SPOOL):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def take_after_part(job: AnalysisJob) -> None:
    """Wait for what was measured after the recording, and add it to the job. Damaged data is left out."""
    if not job.awaits_after_s:
        return
    try:
        said = _read_line(0, job.awaits_after_s)
        after = msgspec.json.decode(said, type=AfterPart) if said else AfterPart()
    except (OSError, ValueError, msgspec.MsgspecError):
        return
    job.facts.unprofiled_after_ns = after.unprofiled_ns
    if after.energy or after.energy_missing:
        job.facts.energy, job.facts.energy_missing = after.energy, after.energy_missing
    job.light = job.light or after.light


def analyze(job: AnalysisJob) -> Profile:
    """Write the event file of the job's trace and return the profile. Raises TraceError, OSError, AddressError."""
    from tb_dlprof_plugin.analysis import analyze_trace
    from tb_dlprof_plugin.fleet.run_writer import write_run, write_run_to

    profile = analyze_trace(
        job.trace,
        facts=job.facts,
        system=complete_system(job.system),
        session=job.session,
        rank=job.rank,
        cycle=job.cycle,
        worker=job.worker,
        compiled_graphs=job.compiled_graphs,
    )
    facts = profile.facts
    if facts.grad_scaler is None and any(name.startswith(_UNSCALE_OP) for name in profile.strings):
        # The hook looks at optimizer steps, and a GradScaler that finds inf skips them.
        facts = msgspec.structs.replace(facts, grad_scaler=True)
    # The name that the trace will have, not the one it has while it waits to be compressed.
    source = dataclasses.replace(profile.source, trace_file=job.trace_file)
    profile = dataclasses.replace(profile, source=source, facts=facts)
    if job.batches is not None:
        profile = dataclasses.replace(profile, loader_batches=batches_of(job.batches, profile.base_time_unix_ns))
    if job.light is not None:
        profile = add_light_window(profile, job.light)
    if addresses.is_remote(job.event_directory):
        write_run_to(job.event_directory, profile)
    else:
        write_run(Path(job.event_directory), profile)
    return profile


def batches_of(rows: BatchRows, base_unix_ns: int) -> LoaderBatches:
    """The table of the batches that a DataLoader gave, in times of the profile."""
    import numpy as np

    from tb_dlprof_plugin.model.profile import LoaderBatches

    columns = {name: np.array(column, dtype=np.int64) for name, column in rows.columns.items()}
    for name in ("begin_ns", "asked_ns"):
        columns[name] -= base_unix_ns
    return LoaderBatches(**{**columns, "recorded": columns["recorded"].astype(np.bool_)})  # type: ignore[arg-type]


def add_light_window(profile: Profile, light: LightTrace) -> Profile:
    """The profile with its light window. A failure here must not cost the full window: it becomes a note."""
    from tb_dlprof_plugin.analysis.light_window import with_light_window
    from tb_dlprof_plugin.model.profile import Note

    try:
        return with_light_window(profile, light.path, light.boundary_unix_ns)
    except Exception as error:
        traceback.print_exc()
        note = Note("light_window", f"There is no light window: {_line(f'{type(error).__name__}: {error}')}.")
        return dataclasses.replace(profile, notes=[*profile.notes, note])


def announce(job: AnalysisJob, profile: Profile) -> None:
    """Write the line about the profile to the standard output. Raises OSError if nothing reads it any more."""
    from tb_dlprof_plugin.pages.recorded_line import recorded_line
    from tb_dlprof_plugin.profile_view import ProfileView
    from tb_dlprof_plugin.store.choice import sessions_of
    from tb_dlprof_plugin.store.codec import ProfileError
    from tb_dlprof_plugin.store.logdir import EventFileStore

    remote = addresses.is_remote(job.event_directory)
    files = [] if remote else sorted(Path(job.event_directory).glob("*tfevents*"))
    sessions: list[str] = []
    # A damaged file of an earlier training is not this recording's.
    with contextlib.suppress(ProfileError):
        sessions = sessions_of(EventFileStore({"": files}).of_run(""))
    sys.stdout.buffer.write(recorded_line(ProfileView(profile), job.announce_as, sessions).encode())
    sys.stdout.buffer.flush()


def copy_for_tab(job: AnalysisJob, profile: Profile) -> None:
    """Write the copy of the trace that the PyTorch Profiler tab understands. Raises TraceError, OSError."""
    from tb_dlprof_plugin.interop.torch_tb_profiler.trace_copy import write_tab_copy

    write_tab_copy(profile, job.trace, job.tab_copy, job.trace_file if job.keep_trace else "")


def finish_trace(job: AnalysisJob, analyzed: bool) -> None:
    """Compress the trace, or remove it if it is not kept and its profile is written. Raises OSError."""
    if analyzed and not job.keep_trace:
        os.unlink(job.trace)
        return
    if job.final_trace == job.trace:
        return
    os.makedirs(os.path.dirname(job.final_trace), exist_ok=True)
    if not job.compress:
        os.replace(job.trace, job.final_trace)
        return
    with (
        open(job.trace, "rb") as plain,
        whole_file(Path(job.final_trace)) as file,
        gzip.GzipFile("", "wb", _GZIP_LEVEL, file) as packed,
    ):
        shutil.copyfileobj(plain, packed, 1 << 20)
    os.unlink(job.trace)


def _read_line(descriptor: int, longest_s: float) -> bytes:
    """Up to the end of the line, or of the stream; b"" where neither comes in time."""
    until_s = time.monotonic() + longest_s
    read = b""
    while True:
        if os.name == "posix" and not select.select([descriptor], [], [], max(0.0, until_s - time.monotonic()))[0]:
            return b""
        part = os.read(descriptor, 1 << 16)
        read += part
        if not part or read.endswith(b"\n"):
            return read.strip()


def _attempt(step: Callable[[], object]) -> str | None:
    """Run ``step``; None on success, else one sentence with the reason."""
    from tb_dlprof_plugin.readers.errors import TraceError

    try:
        step()
    except (TraceError, addresses.AddressError) as error:
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
            # Locks of this kind belong to the process: `flock` locks would be shared with the other processes that
            # inherited the file.
            fcntl.lockf(lock_fd, fcntl.LOCK_EX)
    yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
