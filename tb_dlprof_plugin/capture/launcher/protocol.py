"""Files between ``tb-dlprof run`` and the processes of the script: one request, and a status of each process.

JSON files in one temporary folder, whose path is in an environment variable. ``tb-dlprof run`` writes one `RunRequest`;
each process that imports a framework writes a `ProcessStatus`, named after its process id and the framework, and
updates it. Of the standard library alone: the script's environment may have no more than its framework.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

VARIABLE = "TB_DLPROF_RUN"
"""The environment variable with the folder's path, read by `capture/launcher/inject/sitecustomize.py`."""
INJECTED = Path(__file__).resolve().parent / "inject"
"""Goes onto PYTHONPATH: its ``sitecustomize`` attaches to the script."""
RECORDING = ".recording."
"""How the name of a folder in the run's directory begins in which the profiler of JAX or TensorFlow writes."""
_REQUEST = "request.json"
_STATUS = ".status.json"

Phase = Literal["watching", "waiting", "recording", "recorded", "left_alone", "failed", "not_imported"]
"""Of a process: the framework is imported, iterations are counted, recorded, done; or nothing is recorded, and ``said``
why: of the last, the import of the framework did not end well."""


@dataclass(frozen=True)
class RunRequest:
    """What to record. Iterations are counted from 0, times are seconds."""

    run_directory: str
    """Absolute; traces and event files go there."""
    began_s: float
    """`time.time` when the script was started."""
    session: str = "run"
    """Names the training, where it has several ranks."""
    first: int | None = None
    last: int | None = None
    """Iterations to record, both inclusive; None: the default."""
    delay_s: float = 0.0
    duration_s: float | None = None
    between_marks: bool = False
    """Record from torch.cuda.profiler.start() to stop() and nothing else."""
    simple: bool = False
    """Record GPU kernels only."""
    memory: bool = False
    """Record each allocation."""
    oom: bool = False
    """Explain a failed allocation of GPU memory."""
    under_nsys: bool = False
    """Nsight Systems records, between the calls of cudaProfilerStart and Stop that are made for it."""

    def write(self, folder: Path) -> None:
        """Raises OSError."""
        _replace(folder / _REQUEST, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> RunRequest:
        """Raises OSError, or ValueError or TypeError if the file is not a request."""
        return cls(**json.loads((folder / _REQUEST).read_bytes()))


@dataclass
class Analysis:
    """A process that analyses a trace: its id, its folder, which it removes if all goes well, the trace's names before
    and after it, and whether the trace is to be kept."""

    pid: int
    folder: str
    trace: str
    final_trace: str


@dataclass
class ProcessStatus:
    """Progress of one framework in one process of the script."""

    pid: int
    framework: str = "torch"
    """The module that was imported."""
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
    """The process has ended, and its status is complete."""
    analyses: list[Analysis] = field(default_factory=list)
    folder: str = ""
    """Where the profiler of JAX or TensorFlow wrote its files, below the run's directory."""
    before_ns: list[int] = field(default_factory=list)
    after_ns: list[int] = field(default_factory=list)
    """Durations of single iterations without the profiler, before the recording and after it."""

    def write(self, folder: Path) -> None:
        """Never raises: a missing status must not affect the training."""
        with contextlib.suppress(OSError):
            _replace(folder / f"{self.pid}.{self.framework}{_STATUS}", asdict(self))


def read_statuses(folder: Path) -> list[ProcessStatus]:
    """Those of all processes, by rank and process id."""
    statuses = []
    for path in folder.glob(f"*{_STATUS}"):
        with contextlib.suppress(OSError, ValueError, TypeError):
            status = ProcessStatus(**json.loads(path.read_bytes()))
            status.analyses = [Analysis(**one) for one in status.analyses]  # type: ignore[arg-type]
            statuses.append(status)
    return sorted(statuses, key=lambda status: (status.rank, status.pid))


def _replace(path: Path, content: object) -> None:
    """Atomically: the other side may read at any time."""
    temporary = path.with_name(f".{os.getpid()}.{path.name}.tmp")
    temporary.write_text(json.dumps(content))
    temporary.replace(path)
