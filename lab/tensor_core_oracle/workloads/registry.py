"""What a workload is, and the list that the files next to this one add theirs to.

A workload is built once (tensors, modules, a first call or three, so that libraries have chosen their kernels) and then
called once under the profiler in one process and once under the counters in another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Call = Callable[[], object]
Build = Callable[[], Call]


@dataclass(frozen=True)
class Workload:
    """One measured call.

    Attributes:
        name: unique, "/"-separated, ends with what varies.
        group: workloads of a group run in one process.
        build: makes the inputs, returns the call.
        tf32: TF32 is allowed in matrix products and in cuDNN while it runs.
        benchmark: cuDNN searches for its fastest algorithm.
        model: of a whole model's step: its name, else "".
        precision: of a whole model's step: fp32, tf32, amp-fp16 or amp-bf16, else "".
    """

    name: str
    group: str
    build: Build
    tf32: bool = False
    benchmark: bool = False
    model: str = ""
    precision: str = ""


WORKLOADS: list[Workload] = []


def add(
    name: str,
    group: str,
    build: Build,
    *,
    tf32: bool = False,
    benchmark: bool = False,
    model: str = "",
    precision: str = "",
) -> None:
    """Register a workload."""
    WORKLOADS.append(Workload(name, group, build, tf32, benchmark, model, precision))
