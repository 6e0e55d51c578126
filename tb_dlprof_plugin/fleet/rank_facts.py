"""What a job-level answer needs of one rank: its steps and its collectives, as columns of at most 200 kB.

A job is a list of these. Times of a rank are on its own clock, in ns since its own ``base_ns``; nothing here compares
clocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated

import numpy as np

from tb_dlprof_plugin.model.column import Between, FieldNumber, RowsOf, member_of
from tb_dlprof_plugin.model.profile import Ints

UNKNOWN = -1
"""In every integer column: not recorded."""


NO_PATH = -(1 << 40)
"""In columns of `PATHS`: the one does not wait for the other, or nothing is known of it."""

PATHS = ("gpu_ns", "gpu_after_host_ns", "host_ns", "host_after_gpu_ns")
"""Columns of `Collectives`: the longest paths to a call from the call before it on this rank.

A call is ready when the GPU has done what it depends on. The GPU's time at a call is when it is ready, or when the rank
that waited for it went on; the host's time is when it launches it. Either is the larger one of its two paths, which
is exact for the recorded order of launches: to the GPU from its own time and from the host's, to the host from its own
time and from the GPU's, for which it waits. Times are whole microseconds."""
UNPROFILED = "unprofiled_"
"""Before the name of a path: with a host that records nothing, as far as that is known (`simulation.recorder_cost`)."""


class Operation(IntEnum):
    """What a communication call does. Only those of `SYNCHRONISING` end on all members together."""

    UNKNOWN = 0
    ALL_REDUCE = 1
    ALL_GATHER = 2
    REDUCE_SCATTER = 3
    ALL_TO_ALL = 4
    BARRIER = 5
    BROADCAST = 6
    REDUCE = 7
    GATHER = 8
    SCATTER = 9
    SEND = 10
    RECEIVE = 11


SYNCHRONISING = frozenset(
    {Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.REDUCE_SCATTER, Operation.ALL_TO_ALL, Operation.BARRIER}
)


@dataclass(frozen=True, slots=True)
class Group:
    """A process group. ``members`` are global ranks, empty where the recording does not say them.

    ``dimension`` is the parallel dimension, from the description or the pattern of members: dp, tp, pp, cp, ep,
    dp_shard, dp_replicate, "".
    """

    name: str
    description: str
    members: tuple[int, ...]
    dimension: str = ""


PATH_COLUMNS = (*PATHS, *(UNPROFILED + name for name in PATHS), "behind_ns", "contended_ns")


LARGEST = 2**61
"""Of the numbers of a rank's column, and of their sum."""
_Quantity = Annotated[Ints, Between(-LARGEST, LARGEST, total=True)]
_Amount = Annotated[Ints, Between(0, LARGEST, total=True)]
_Hash = Annotated[Ints, Between(-(2**63), 2**63 - 1)]


def _unknown() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Collectives:
    """One row per collective or point-to-point call that a recorded iteration launched, in order of the start.

    Where the process has no GPU, "on the GPU" below is on the CPU: ranges of gloo, and tensor ops as work.

    Attributes:
        iteration: index into `Steps`.
        group: index into `RankFacts.groups`, UNKNOWN where not recorded.
        operation: `Operation`.
        sequence: number of the call in its group as recorded; UNKNOWN where the version does not record it.
        bytes: what the formula of the bus bandwidth calls S: of all-gather the whole output, of reduce-scatter the
            whole input.
        dtype: index into `RankFacts.strings`.
        peer: global rank of the other side of a send or receive.
        start_ns, duration_ns: on the GPU.
        exposed_ns: part of the duration in which nothing but communication ran on this GPU.
        work_ns: GPU time of other work between the end of the previous collective (of any group, in this iteration;
            else the begin of the iteration) and the start of this one: union over streams.
        idle_ns: time between the same two moments in which the GPU ran nothing.
        launched_ns: when the CPU launched it; UNKNOWN where the launch is not recorded.
        module: index into `strings`: the module (FSDP unit) that it belongs to; UNKNOWN.
        stream: CUDA stream.
        gpu_ns, ..., unprofiled_host_after_gpu_ns: `PATHS`; `NO_PATH` in all where launches are not recorded, and in
            most steps of a rank with many calls.
        behind_ns: how long before its start a call was ready, without exposed communication: it was queued.
        contended_ns: part of ``gpu_ns`` that kernels took longer than usual because communication ran at the same time.
    """

    iteration: Annotated[Ints, RowsOf("steps")]
    group: Annotated[Ints, RowsOf("groups", lowest=UNKNOWN)]
    operation: Annotated[Ints, member_of(Operation)]
    sequence: _Quantity
    bytes: _Quantity
    dtype: Annotated[Ints, RowsOf("strings", lowest=UNKNOWN)]
    peer: _Quantity
    start_ns: _Quantity
    duration_ns: _Amount
    exposed_ns: _Quantity
    work_ns: _Amount
    idle_ns: _Amount
    launched_ns: _Quantity
    module: Annotated[Ints, RowsOf("strings", lowest=UNKNOWN)]
    stream: _Quantity
    gpu_ns: _Quantity = field(default_factory=_unknown)
    gpu_after_host_ns: _Quantity = field(default_factory=_unknown)
    host_ns: _Quantity = field(default_factory=_unknown)
    host_after_gpu_ns: _Quantity = field(default_factory=_unknown)
    unprofiled_gpu_ns: _Quantity = field(default_factory=_unknown)
    unprofiled_gpu_after_host_ns: _Quantity = field(default_factory=_unknown)
    unprofiled_host_ns: _Quantity = field(default_factory=_unknown)
    unprofiled_host_after_gpu_ns: _Quantity = field(default_factory=_unknown)
    behind_ns: _Quantity = field(default_factory=_unknown)
    contended_ns: _Quantity = field(default_factory=_unknown)

    def __post_init__(self) -> None:
        for name in PATH_COLUMNS:
            if not len(getattr(self, name)):
                # Takes no room.
                object.__setattr__(self, name, np.broadcast_to(np.int64(NO_PATH), len(self.start_ns)))

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Gradients:
    """The gradients that DistributedDataParallel exchanges, in order: a row for those between two moments at which a
    bucket could end. No rows where they were not recorded.

    Attributes:
        iteration: index into `Steps`.
        call: the all-reduce that exchanges them, its place among the calls of the iteration.
        exchange: number in the iteration: an accumulation without ``no_sync`` has several exchanges.
        bytes: their sum.
        gpu_ns, ..., unprofiled_host_after_gpu_ns: `PATHS` from the row before, of the first row of a call from the call
            before. The last row of a call ends with its launch, so that all of them together are the paths to it.
    """

    iteration: Annotated[Ints, RowsOf("steps")] = field(default_factory=_unknown)
    call: _Amount = field(default_factory=_unknown)
    exchange: _Quantity = field(default_factory=_unknown)
    bytes: _Amount = field(default_factory=_unknown)
    gpu_ns: _Quantity = field(default_factory=_unknown)
    gpu_after_host_ns: _Quantity = field(default_factory=_unknown)
    host_ns: _Quantity = field(default_factory=_unknown)
    host_after_gpu_ns: _Quantity = field(default_factory=_unknown)
    unprofiled_gpu_ns: _Quantity = field(default_factory=_unknown)
    unprofiled_gpu_after_host_ns: _Quantity = field(default_factory=_unknown)
    unprofiled_host_ns: _Quantity = field(default_factory=_unknown)
    unprofiled_host_after_gpu_ns: _Quantity = field(default_factory=_unknown)

    def __len__(self) -> int:
        return len(self.iteration)


@dataclass(frozen=True, slots=True)
class Steps:
    """One row per recorded iteration: its own account of time, which adds up to ``end_ns - start_ns``.

    Attributes:
        number: of the user's step, the same on all ranks that recorded it.
        start_ns, end_ns: on this rank's clock.
        compute_ns: kernels that are no communication (under collectives too).
        communication_ns: exposed collectives and point-to-point calls.
        copy_ns: exposed copies and sets.
        idle_ns: the GPU ran nothing.
        input_ns: CPU time in which the training loop waited for its data loader; UNKNOWN.
        garbage_ns: CPU time in Python's garbage collector; UNKNOWN where not recorded.
        work_hash: of the kernels' names and shapes, whatever their order: equal on ranks that do the same work.
        matrix_ns, matrix_flops: matrix products of the step, for speeds of GPUs at equal shapes; UNKNOWN.
        outside_ns: CPU time in which the program's own code ran, no op, for 1 ms or more (`simulation.pauses`); UNKNOWN
            in every row where ops were not recorded.
    """

    number: _Quantity
    start_ns: _Quantity
    end_ns: _Quantity
    compute_ns: _Quantity
    communication_ns: _Quantity
    copy_ns: _Quantity
    idle_ns: _Quantity
    input_ns: _Quantity
    garbage_ns: _Quantity
    work_hash: _Hash
    matrix_ns: _Quantity
    matrix_flops: _Quantity
    outside_ns: _Quantity = field(default_factory=_unknown)

    def __post_init__(self) -> None:
        if not len(self.outside_ns):
            # Takes no room.
            object.__setattr__(self, "outside_ns", np.broadcast_to(np.int64(UNKNOWN), len(self.number)))

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, slots=True)
class StepLength:
    """The rank's step without the profiler (ms), its interval and where it comes from (`simulation.estimate`)."""

    ms: float
    low_ms: float
    high_ms: float
    source: str


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """Mean times of the kernels that take most, at equal shapes: to tell a slow GPU from more work.

    Attributes:
        key: hash of kernel name, grid, block and the op's input shapes: equal on all ranks.
        count: launches in all recorded iterations.
        mean_ns: of those during which no collective ran; UNKNOWN where there is none.
    """

    key: _Hash
    count: _Quantity
    mean_ns: _Quantity

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True)
class RankFacts:
    """See the module. A fact of later versions is the last field, and has a default.

    Attributes:
        rank, world_size: UNKNOWN where the recording and its file name do not say them.
        host: name, "" where unknown. gpu: name. device: index of the GPU on its host.
        mesh: parallel dimensions and this rank's place in each, e.g. (("pp", 1), ("dp", 3)); empty where not known.
        base_ns: unix time (ns) of this rank's zero.
        framework: of the recording. backend: "nccl", "gloo", "rccl" or "".
        launch_share: time that launching takes without the profiler over that with it, as expected.
        batch_size: samples of a batch of this rank; UNKNOWN.
        wrapper: class that makes the model data parallel, such as DistributedDataParallel; "" where none was recorded.
        gradients: of DistributedDataParallel. bucket_bytes: its ``bucket_cap_mb``; UNKNOWN.
        microbatches: of a step, where a pipeline has ranges of them. chunks: of the model on this rank; UNKNOWN.
    """

    rank: int
    world_size: int
    host: str
    gpu: str
    device: int
    base_ns: int
    framework: str
    backend: str
    steps: Annotated[Steps, FieldNumber(14)]
    step_length: Annotated[StepLength | None, FieldNumber(9)]
    groups: tuple[Group, ...]
    collectives: Annotated[Collectives, FieldNumber(15)]
    kernels: KernelTimes
    strings: Annotated[tuple[str, ...], FieldNumber(11)] = ()
    mesh: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = field(default=())
    launch_share: Annotated[float, FieldNumber(17)] = 1.0
    batch_size: int = UNKNOWN
    wrapper: str = ""
    gradients: Gradients = field(default_factory=Gradients)
    bucket_bytes: int = UNKNOWN
    microbatches: int = UNKNOWN
    chunks: int = UNKNOWN

    @property
    def on_cpu(self) -> bool:
        """Whether the process has no GPU: its tensor ops are what others call the GPU's work."""
        return self.device == UNKNOWN and not self.gpu
