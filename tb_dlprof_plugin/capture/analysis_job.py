"""The job file (JSON) that the training process writes for the analysis process."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from tb_dlprof_plugin.model.compiled_graph import CompiledGraph
from tb_dlprof_plugin.model.run_facts import GpuEnergy, RunFacts, System
from tb_dlprof_plugin.readers.trace_names import ORIGINALS

STDERR = "stderr.log"
JOB = "job.json"
NO_COPY = 3
"""Exit status of the analysis process if it wrote the profile but not the copy for the PyTorch Profiler tab."""


SPOOL = "tb_dlprof_traces_"
"""How the name of a temporary directory begins in which traces wait whose profiles are written to a store."""


def remove_job_folder(folder: Path) -> None:
    """Remove the folder of an analysis process with the two files that are made in it; what else is in it stays."""
    for name in (JOB, STDERR):
        with contextlib.suppress(OSError):
            (folder / name).unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()


class LightTrace(msgspec.Struct):
    """The trace of a light window, and the CPU times at which its steps begin and the last one ends."""

    path: str
    boundary_unix_ns: list[int]


class AfterPart(msgspec.Struct):
    """What was measured after the full window: durations of single steps, and the light window if it came last.

    ``energy`` covers the steps before the window as well; ``energy_missing`` says why it is empty.
    """

    unprofiled_ns: list[int] = []
    light: LightTrace | None = None
    energy: list[GpuEnergy] = []
    energy_missing: str | None = None


class BatchRows(msgspec.Struct):
    """The columns of `model.profile.LoaderBatches` by name; times are Unix times."""

    columns: dict[str, list[int]]


class AnalysisJob(msgspec.Struct):
    """One trace to analyse. All paths are absolute; the event directory may be an address."""

    trace: str
    """The trace as the training process wrote it: plain JSON."""
    final_trace: str
    """Where the trace ends up: the same path, or another, which ends in ``.gz`` where it is to be compressed."""
    keep_trace: bool
    event_directory: str
    facts: RunFacts
    system: System
    session: str
    rank: int
    cycle: int
    worker: str
    tab_copy: str = ""
    """Where a copy of the trace that the PyTorch Profiler tab understands goes; "" for none."""
    light: LightTrace | None = None
    """Of the light window before the full one."""
    awaits_after_s: float = 0.0
    """How long to wait for an `AfterPart` on the standard input; the analysis goes on without it then."""
    announce_as: str = ""
    """The run's directory as the user types it: a line about the profile is printed. "" prints none."""
    compiled_graphs: tuple[CompiledGraph, ...] = ()
    """What torch.compile made in the training process."""
    batches: BatchRows | None = None
    """What the training's DataLoader gave it."""
    lock_fd: int | None = None
    """An inherited file, locked during the analysis: one training process has one analysis running at a time."""

    @property
    def trace_file(self) -> str:
        """What the profile calls its trace: relative to the directory that the hook writes to; "" if it is gone."""
        if not self.keep_trace:
            return os.path.basename(self.tab_copy)
        folder, name = os.path.split(self.final_trace)
        return f"{ORIGINALS}/{name}" if self.tab_copy and os.path.basename(folder) == ORIGINALS else name

    @property
    def compress(self) -> bool:
        """Whether the trace is to be gzip'd."""
        return self.final_trace.endswith(".gz")

    def write(self, path: Path) -> None:
        """Store the job. Raises OSError."""
        path.write_bytes(msgspec.json.encode(self))

    @classmethod
    def read(cls, path: Path) -> AnalysisJob:
        """Raises OSError, or msgspec.MsgspecError if the file is not a job."""
        return msgspec.json.decode(path.read_bytes(), type=cls)
