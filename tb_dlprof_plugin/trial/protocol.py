"""What ``tb-dlprof try`` and the processes of the script tell each other: JSON lines over a Unix socket.

A request lies as a file in the folder that the environment names. Each process that trains connects when its first
steps are over, says `Ready`, and waits at this gate. It runs as many steps as are requested and answers with a `Block`.
Of the standard library alone: the script's environment may have no more than its framework.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

VARIABLE = "TB_DLPROF_TRY"
"""The environment variable with the path of the folder that holds the request."""
_REQUEST = "trial.json"
CHECKED_STEPS = 16
"""First steps of each process whose losses, gradients and updates are compared."""
WARMUP_STEPS = 8
"""Steps after them before the first block."""


@dataclass(frozen=True)
class TrialRequest:
    """What a process is to do.

    Attributes:
        remedies: names of those that are applied.
        socket: of the controller; "": there is no gate, the remedies are applied and the script runs on.
        seed: what random generators are seeded with when torch is imported.
        seed_offset: added to the seeds that the script itself gives.
        steps: that are checked before the gate.
        launched_s: when the process was started, of the monotonic clock, which all processes share.
        budget_ends_s: when the time of the command is used, of the same clock.
    """

    remedies: tuple[str, ...]
    socket: str
    seed: int = 20240229
    seed_offset: int = 0
    steps: int = CHECKED_STEPS
    launched_s: float = field(default_factory=time.monotonic)
    budget_ends_s: float = math.inf

    def write(self, folder: Path) -> None:
        """Raises OSError."""
        (folder / _REQUEST).write_text(json.dumps(asdict(self)))

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Whether there is one."""
        return (folder / _REQUEST).exists()

    @classmethod
    def read(cls, folder: Path) -> TrialRequest:
        """Raises OSError, or ValueError or TypeError where the file is no request."""
        given = json.loads((folder / _REQUEST).read_bytes())
        return cls(**{**given, "remedies": tuple(given["remedies"])})


@dataclass
class Checks:
    """The first steps of one process, a value each; None where it could not be read.

    Attributes:
        loss: sum of what `backward` was called on in a step.
        gradient_norm: of all gradients, without the loss scale.
        update_norm: of the change of up to some millions of parameters.
        skipped: whether a GradScaler left out the step.
        hyperparameters: of each optimizer's parameter groups, such as ``{"lr": 0.1}``, one list for each step.
    """

    loss: list[float | None] = field(default_factory=list)
    gradient_norm: list[float | None] = field(default_factory=list)
    update_norm: list[float | None] = field(default_factory=list)
    skipped: list[bool] = field(default_factory=list)
    hyperparameters: list[dict[str, float]] = field(default_factory=list)


@dataclass
class Ready:
    """A process has done its first steps and waits.

    Attributes:
        since_start_s: seconds since the script was started.
        no_effect: by the names of remedies: why one changed nothing.
        codes: by the names of remedies: how to write what one has changed in this script.
        memory_bytes: of the GPU that the process holds, its context included; None without a GPU.
        free_memory_bytes: of the GPU, at this moment.
        peak_bytes: the most that tensors held in a step.
        measures_kernels: whether its first steps choose kernels by their time, so that nothing may run next to them.
        first_step_s: when the first step ended, of the monotonic clock.
        step_s: of the compared steps, the shortest one's time on the CPU.
        loading: what a step waits for batches, as `trial.loading.Loading`; [] without a DataLoader.
        page_faults: of a step, those for which the kernel read nothing.
        collecting_s: of a step, that Python's garbage collector takes.
        padding: share of the places of sequences in its batches that are padding; 0 where none is seen.
        repeats: whether most parameters are in blocks that are alike, such as a transformer's layers.
        failed: the error of a remedy that was switched on in the running process.
        sets_variables: whether variables of torch have changed since it was imported.
    """

    pid: int
    rank: int = 0
    world_size: int = 1
    step: int = 0
    since_start_s: float = 0.0
    checks: Checks = field(default_factory=Checks)
    no_effect: dict[str, str] = field(default_factory=dict)
    codes: dict[str, str] = field(default_factory=dict)
    torch_version: str = ""
    cuda: bool = False
    gpu: str = ""
    compute_capability: tuple[int, int] | None = None
    cpu_count: int = 1
    memory_bytes: int | None = None
    free_memory_bytes: int | None = None
    peak_bytes: int | None = None
    measures_kernels: bool = False
    first_step_s: float = 0.0
    step_s: float = 0.0
    loading: list[float] = field(default_factory=list)
    page_faults: float = 0.0
    collecting_s: float = 0.0
    padding: float = 0.0
    repeats: bool = False
    failed: str = ""
    sets_variables: bool = False


@dataclass
class Block:
    """Steps without a profiler: how many, and the seconds from a start with an idle GPU to its being idle again;
    ``failed`` is the error of a remedy that was switched on for them."""

    steps: int
    seconds: float
    peak_bytes: int | None = None
    joules: float | None = None
    failed: str = ""


def encode(kind: str, message: Any) -> bytes:
    """One line."""
    return json.dumps({"kind": kind, **asdict(message)}).encode() + b"\n"


def decode(line: bytes) -> tuple[str, Any]:
    """The kind and the message of a line; an unknown kind has its fields as a dict.

    Raises:
        ValueError, TypeError: it is no message.
    """
    content = json.loads(line)
    if not isinstance(content, dict):
        raise TypeError("no message")
    kind = str(content.pop("kind", ""))
    if kind == "ready":
        checks = _only(Checks, content.pop("checks", {}))
        ready = _only(Ready, content)
        ready.checks = checks
        capability = ready.compute_capability
        ready.compute_capability = None if capability is None else (int(capability[0]), int(capability[1]))
        return kind, ready
    return kind, _only(Block, content) if kind == "block" else content


def lines(buffer: bytearray) -> Iterable[bytes]:
    """The complete lines of what was received, which are taken out of it."""
    while (end := buffer.find(b"\n")) >= 0:
        line = bytes(buffer[:end])
        # Before it is passed on: the caller may look at one line alone.
        del buffer[: end + 1]
        yield line


def _only(cls: type[T], given: dict[str, Any]) -> T:
    names = {one.name for one in fields(cls)}  # type: ignore[arg-type]
    return cls(**{name: value for name, value in given.items() if name in names})
