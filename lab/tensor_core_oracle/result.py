"""What is kept of the recordings: one row per distinct kernel in its context, and one per whole model's step.

The file is gzipped JSON. Names are written once; of a kernel all inputs of the classifier are kept, so that its
verdicts can be compared with the counters without a GPU.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec

_FOLDER = Path(__file__).resolve().parents[2] / "tests" / "names" / "oracle"
COMMITTED = _FOLDER / "h200.json.gz"
"""The recording that the rules were settled on."""
HOLD_OUT = _FOLDER / "h200_holdout.json.gz"
"""Recorded afterwards, with other shapes and models."""
MORE_MODELS = _FOLDER / "h200_more_models.json.gz"
"""The hold-out's models once more, with those that the second recording did not reach, and recurrent layers."""
KEPT = (COMMITTED, HOLD_OUT, MORE_MODELS)


class Machine(msgspec.Struct):
    """Where and with what the counters were read."""

    gpu: str
    compute_capability: tuple[int, int]
    driver: list[str]
    torch: str
    cuda: str
    cudnn: int
    ncu: list[str]
    date: str


class Workload(msgspec.Struct):
    """``tf32`` says whether TF32 was allowed; ``model`` and ``precision`` are "" for a single operation."""

    name: str
    group: str
    tf32: bool
    model: str = ""
    precision: str = ""


class Row(msgspec.Struct):
    """A kernel in one context: what the profiler shows of it, and what the hardware counted over all its launches.

    ``workloads`` are rows of `Result.workloads`. ``hmma``, ``imma`` and ``dmma`` are warp instructions per pipe,
    without the HFMA2 instructions that share the first; ``with_matrix_work`` counts the launches with any of them.
    """

    name: str
    op: str
    input_types: str
    tf32: bool
    workloads: list[int]
    launches: int
    with_matrix_work: int
    hmma: int
    imma: int
    dmma: int
    duration_ns: int


class Step(msgspec.Struct):
    """A whole model's step: ``launches`` are (row of `Result.rows`, launches, nanoseconds in the profiler's run)."""

    workload: int
    kernels: list[tuple[int, int, int]]


class Result(msgspec.Struct):
    """Everything that scoring needs; ``dropped`` names the workloads whose two runs did not launch the same."""

    machine: Machine
    workloads: list[Workload]
    rows: list[Row]
    steps: list[Step]
    dropped: dict[str, str]


def write(result: Result, path: Path) -> None:
    """Write ``path``; the same result gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(msgspec.json.encode(result), mtime=0))


def read(path: Path) -> Result:
    """Read what `write` wrote.

    Raises:
        OSError, msgspec.DecodeError: there is no such file, or it is no result.
    """
    return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=Result)
