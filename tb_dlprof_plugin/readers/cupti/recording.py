"""What a database holds about all processes, as columns, before it is cut into a Timeline for each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tb_dlprof_plugin.model.run_facts import System
from tb_dlprof_plugin.model.timeline import CounterSamples, DeviceProperties, Ints, LaunchConfig, TraceNote
from tb_dlprof_plugin.readers.nvtx.emit_nvtx import Emitted
from tb_dlprof_plugin.readers.nvtx.meanings import Tables
from tb_dlprof_plugin.readers.nvtx.ranges import NvtxRanges


@dataclass(slots=True)
class CudaCalls:
    """CUDA calls, or what the profiler itself took on a thread. ``process`` and ``thread`` are keys of the recording,
    ``name`` indexes the strings, ``correlation`` is -1 where there is none. Times in ns on the file's clock."""

    process: Ints
    thread: Ints
    start_ns: Ints
    stop_ns: Ints
    correlation: Ints
    name: Ints

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(slots=True)
class Activities:
    """Kernels, copies and sets; ``device`` is CUDA's ordinal in the process, ``config`` a row of the configs.

    ``node`` is the node of a CUDA graph, ``external_id`` the op_id of the range that the activity belongs to whatever
    call launched it; -1 for none.
    """

    process: Ints
    start_ns: Ints
    stop_ns: Ints
    device: Ints
    context: Ints
    stream: Ints
    correlation: Ints
    name: Ints
    kind: Ints
    bytes: Ints
    config: Ints
    node: Ints
    external_id: Ints

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(slots=True)
class MemoryCalls:
    """Memory of GPUs that CUDA handed out (``bytes`` > 0) or took back (< 0), in order of time; ``correlation`` is that
    of the call, -1 where there is none."""

    process: Ints
    time_ns: Ints
    device: Ints
    address: Ints
    bytes: Ints
    correlation: Ints

    def __len__(self) -> int:
        return len(self.time_ns)

    @classmethod
    def none(cls) -> MemoryCalls:
        """They were not recorded."""
        return cls(*(np.zeros(0, dtype=np.int64) for _ in range(6)))


@dataclass(slots=True)
class Communicator:
    """One of NCCL's. ``id`` is the same on all its ranks; ``size`` is their number, 0 where not recorded; ``rank_of``
    has the rank in it of each process that the recording saw join."""

    id: int
    size: int = 0
    rank_of: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class NcclCalls:
    """Calls of NCCL, each with the start and thread of its range. ``text`` indexes the texts of ranges,
    ``communicator`` the communicators; ``number`` is that of the call in its communicator, ``peer`` the rank in it of
    the other side; -1 where not known."""

    process: Ints
    thread: Ints
    start_ns: Ints
    text: Ints
    communicator: Ints
    number: Ints
    peer: Ints
    communicators: list[Communicator]

    def __len__(self) -> int:
        return len(self.start_ns)

    @classmethod
    def none(cls) -> NcclCalls:
        """They were not recorded."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(nothing, nothing, nothing, nothing, nothing, nothing, nothing, [])


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What is known of one process besides its events; ``ordinals`` are CUDA's numbers of GPUs by their ids."""

    pid: int | None = None
    rank: int | None = None
    devices: list[DeviceProperties] = field(default_factory=list)
    ordinals: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class CuptiRecording:
    """A database's contents. ``texts`` and ``domains`` are what `NvtxRanges` index."""

    source: str
    format: str
    tables: Tables
    calls: CudaCalls
    activities: Activities
    overhead: CudaCalls
    ranges: NvtxRanges
    texts: list[str | Emitted]
    domains: list[str]
    configs: list[LaunchConfig]
    processes: dict[int, ProcessFacts] = field(default_factory=dict)
    epoch_unix_ns: int = 0
    system: System = field(default_factory=System)
    cuda_driver_version: int | None = None
    notes: list[TraceNote] = field(default_factory=list)
    tensor_samples: CounterSamples = field(default_factory=CounterSamples.none)
    memory: MemoryCalls = field(default_factory=MemoryCalls.none)
    nccl: NcclCalls = field(default_factory=NcclCalls.none)
    rows: int = 0
