"""Typed structs for decoding a trace file, with only the fields that are used.

``ph`` is checked before the other fields are read: flows, metadata and counters, half of a trace, then cost
next to nothing. A field that is absent has the value that the columns use for "not recorded".
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

NOTHING = msgspec.Raw()


class Args(msgspec.Struct, gc=False, frozen=True):
    """Details of a complete event."""

    external_id: int | None = msgspec.field(default=-1, name="External id")
    old_external_id: int | None = msgspec.field(default=-1, name="external id")  # runtime and kernels up to torch 1.11
    sequence: int | None = msgspec.field(default=-1, name="Sequence number")
    forward_thread: int | None = msgspec.field(default=-1, name="Fwd thread id")
    input_types: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")
    input_dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    old_input_dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input dims")
    correlation: int | None = -1
    device: int | str | None = None
    stream: int | str | None = None
    bytes: int | None = -1
    # Triton's host events carry text here, kernels three numbers: decoded where a kernel is read.
    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING
    registers: int | None = msgspec.field(default=None, name="registers per thread")
    shared_memory: int | None = msgspec.field(default=None, name="shared memory")
    occupancy: float | None = msgspec.field(default=None, name="est. achieved occupancy %")


class CommunicationArgs(Args, gc=False, frozen=True):
    """Those of a distributed training's events besides: reading them slows down decoding by a fifth.

    What others write under these names may be anything.
    """

    collective: Any = msgspec.field(default=None, name="Collective name")
    communication_sequence: Any = msgspec.field(default=None, name="Seq")
    elements_in: Any = msgspec.field(default=None, name="In msg nelems")
    elements_out: Any = msgspec.field(default=None, name="Out msg nelems")
    dtype: Any = None
    source_rank: Any = msgspec.field(default=None, name="Src Rank")
    target_rank: Any = msgspec.field(default=None, name="Dst Rank")
    group_name: Any = msgspec.field(default=None, name="Process Group Name")
    group_description: Any = msgspec.field(default=None, name="Process Group Description")
    group_ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    group_size: Any = msgspec.field(default=None, name="Group size")
    rank_start: Any = msgspec.field(default=None, name="Global rank start")
    rank_stride: Any = msgspec.field(default=None, name="Global rank stride")


class MemoryArgs(msgspec.Struct, gc=False, frozen=True):
    """Details of a ``[memory]`` event."""

    device_type: int | None = msgspec.field(default=None, name="Device Type")
    device_id: int | None = msgspec.field(default=-1, name="Device Id")
    bytes: int | None = msgspec.field(default=0, name="Bytes")
    address: int | None = msgspec.field(default=-1, name="Addr")
    allocated: int | None = msgspec.field(default=-1, name="Total Allocated")
    reserved: int | None = msgspec.field(default=-1, name="Total Reserved")


NO_ARGS = Args()
NO_COMMUNICATION_ARGS = CommunicationArgs()
NO_MEMORY_ARGS = MemoryArgs()


class _Complete(msgspec.Struct, gc=False):
    cat: str = ""
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    dur: float = 0.0
    args: Args = NO_ARGS


class _Instant(msgspec.Struct, gc=False):
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    args: MemoryArgs = NO_MEMORY_ARGS


class Complete(_Complete, gc=False, tag_field="ph", tag="X"):
    """An event with a duration; ``ts`` and ``dur`` in microseconds."""

    ts: float = float("nan")


class Instant(_Instant, gc=False, tag_field="ph", tag="i"):
    """A moment; only those named ``[memory]`` are used."""

    ts: float = float("nan")


class ExactComplete(_Complete, gc=False, tag_field="ph", tag="X"):
    """The same with ``ts`` as text, for times that a float64 cannot hold to the nanosecond."""

    ts: msgspec.Raw = NOTHING


class DistributedComplete(Complete, gc=False, tag_field="ph", tag="X"):
    """An event of a distributed training."""

    args: CommunicationArgs = NO_COMMUNICATION_ARGS


class ExactDistributedComplete(ExactComplete, gc=False, tag_field="ph", tag="X"):
    """The same with ``ts`` as text."""

    args: CommunicationArgs = NO_COMMUNICATION_ARGS


class ExactInstant(_Instant, gc=False, tag_field="ph", tag="i"):
    """The same with ``ts`` as text."""

    ts: msgspec.Raw = NOTHING


def _skipped(ph: str) -> type[msgspec.Struct]:
    return msgspec.defstruct(f"Skipped_{ord(ph)}", [], tag_field="ph", tag=ph, gc=False)


# Every other phase of the Trace Event Format.
_OTHER_PHASES = "BEIsftMCbneSTpFNODPRcVvax(),="
SKIPPED = tuple(map(_skipped, _OTHER_PHASES))
"""What events of those phases are decoded as."""
PHASES = frozenset(_OTHER_PHASES + "Xi")


def event_types(exact: bool, distributed: bool) -> tuple[Any, Any]:
    """How the events of a file are decoded: complete ones, and moments.

    Args:
        exact: whether a float64 is too coarse for its times.
        distributed: whether they are of a distributed training.
    """
    complete: Any = DistributedComplete if distributed else Complete
    instant: Any = Instant
    if exact:
        complete, instant = ExactDistributedComplete if distributed else ExactComplete, ExactInstant
    return complete, instant


# What the stored profile has room for: a number beyond is a broken one.
_Number = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
_Nanoseconds = Annotated[int, msgspec.Meta(gt=-(2**62), lt=2**62)]


class Device(msgspec.Struct):
    """An entry of ``deviceProperties``."""

    id: _Number = 0
    name: str = ""
    computeMajor: _Number | None = None
    computeMinor: _Number | None = None
    numSms: _Number | None = None
    totalGlobalMem: _Bytes | None = None


class Distributed(msgspec.Struct):
    """``distributedInfo``."""

    rank: _Number | None = None
    world_size: _Number | None = None
    backend: Any = None
    pg_config: Any = None


class TraceHeader(msgspec.Struct):
    """The fields before and after the events."""

    baseTimeNanoseconds: _Nanoseconds | None = None
    deviceProperties: list[Device] | None = None
    distributedInfo: Distributed | None = None
    cuda_runtime_version: _Number | None = None
    cuda_driver_version: _Number | None = None
    record_shapes: int | None = None
    schemaVersion: int | None = None
    host_name: Any = None

    def fill(self, other: TraceHeader) -> None:
        """Takes from ``other`` what is missing here."""
        for name in self.__struct_fields__:
            if getattr(self, name) is None:
                setattr(self, name, getattr(other, name))
