"""What ``tb-dlprof run`` and the processes of the script that it starts tell each other: an order and reports.

Both are JSON files in one temporary folder, whose path the processes find in the environment. `Order` goes down, once;
each process that imports torch writes a `Report` of its own, named after its process id, and renews it as it goes on.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Literal

import msgspec

VARIABLE = "TB_DLPROF_RUN"
"""The environment variable with the folder's path; `capture/launcher/inject/sitecustomize.py` looks for it."""
_ORDER = "order.json"
_REPORT = ".report.json"

Phase = Literal["watching", "waiting", "recording", "recorded", "left_alone", "failed"]
"""Of a process: torch is imported, iterations are counted, recorded, done; or nothing is recorded, and ``said`` why."""


class Order(msgspec.Struct, frozen=True):
    """What to record. Iterations are counted from 0, times are seconds."""

    run_directory: str
    """Absolute; traces and event files go there."""
    began_s: float
    """`time.time` when the script was started."""
    session: str = "run"
    """Names the training, where it has several ranks."""
    first: int | None = None
    last: int | None = None
    """Iterations to record, both inclusive; None leaves it to the default."""
    delay_s: float = 0.0
    duration_s: float | None = None
    between_marks: bool = False
    """Record from torch.cuda.profiler.start() to stop() and nothing else."""
    simple: bool = False
    """Record GPU kernels only."""

    def write(self, folder: Path) -> None:
        """Raises OSError."""
        _replace(folder / _ORDER, msgspec.json.encode(self))

    @classmethod
    def read(cls, folder: Path) -> Order:
        """Raises OSError, or msgspec.MsgspecError for something that is no order."""
        return msgspec.json.decode((folder / _ORDER).read_bytes(), type=cls)


class Analysis(msgspec.Struct):
    """A process that analyses a trace: its id, its folder, which it removes if all goes well, the trace's names before
    and after it, and whether the trace is to be kept."""

    pid: int
    folder: str
    trace: str
    final_trace: str


class Report(msgspec.Struct):
    """How far a process of the script is."""

    pid: int
    phase: Phase = "watching"
    said: str = ""
    """A sentence for the user."""
    rank: int = 0
    world_size: int = 1
    unit: str = "optimizer steps"
    """What the iterations are."""
    iterations: int = 0
    """Seen so far, or in all once the process has ended well."""
    starts_at: int | None = None
    """The first iteration to record, where that is known."""
    first: int | None = None
    last: int | None = None
    """The iterations that were recorded, both inclusive."""
    recording_since_s: float | None = None
    """`time.time`."""
    model: str = ""
    used_gpu: bool = False
    ended: bool = False
    """The process has reached its end, and its report is complete."""
    analyses: list[Analysis] = []

    def write(self, folder: Path) -> None:
        """Never raises: a report that is missing must not cost the training anything."""
        with contextlib.suppress(OSError):
            _replace(folder / f"{self.pid}{_REPORT}", msgspec.json.encode(self))


def read_reports(folder: Path) -> list[Report]:
    """Those of all processes, by rank and process id."""
    reports = []
    for path in folder.glob(f"*{_REPORT}"):
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            reports.append(msgspec.json.decode(path.read_bytes(), type=Report))
    return sorted(reports, key=lambda report: (report.rank, report.pid))


def _replace(path: Path, data: bytes) -> None:
    """Whole or not at all: the other side may read at any time."""
    temporary = path.with_name(f".{os.getpid()}.{path.name}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)
