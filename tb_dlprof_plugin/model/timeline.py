"""A trace as columns: the output of readers and the input of the analysis passes.

Times are int64 nanoseconds since `Timeline.base_time_unix_ns`. Columns of one table have the same length; -1 stands for
"not recorded" in integer columns, index 0 of the string table ("") in name columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.compiled_graph import CompiledGraph
from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.process_groups import ProcessGroup
from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.model.run_facts import Compilation, CudagraphSkip, GraphBreak, System
from tb_dlprof_plugin.model.shapes import InputShapes

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class HostKind(IntEnum):
    """What an event on a CPU thread is."""

    OP = 0
    RUNTIME = 1
    ANNOTATION = 2
    OVERHEAD = 3
    PYTHON_MODULE = 4
    """A Python frame of an ``nn.Module``'s call, named "nn.Module: Conv2d_0"."""


class DeviceKind(IntEnum):
    """What an event on a GPU stream is."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2


@dataclass(frozen=True, slots=True)
class HostEvents:
    """Ops, CUDA runtime and driver calls and annotations, sorted by thread, start and falling duration.

    ``shapes`` and ``dtypes`` are rows of `Timeline.input_shapes` and `Timeline.input_dtypes`, 0 where not recorded.
    """

    name: Ints
    kind: Ints
    thread: Ints
    start_ns: Ints
    duration_ns: Ints
    correlation: Ints
    external_id: Ints
    sequence_number: Ints
    forward_thread: Ints
    shapes: Ints
    dtypes: Ints

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True)
class DeviceEvents:
    """Kernels, copies and sets, sorted by start. ``config`` is a row of `Timeline.launch_configs`.

    ``correlation`` names the call that launched it, ``external_id`` its op. Where the file says of an activity which op
    it is, and no call that launched this op alone, the reader gives both the same ``external_id`` and no correlation.
    """

    name: Ints
    kind: Ints
    device: Ints
    stream: Ints
    start_ns: Ints
    duration_ns: Ints
    correlation: Ints
    external_id: Ints
    bytes: Ints
    config: Ints

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True)
class MemoryEvents:
    """Allocations (``bytes`` > 0) and frees (< 0) in order of time.

    ``device`` is -1 for the CPU; ``allocated`` and ``reserved`` are the device's totals after the event.
    """

    time_ns: Ints
    thread: Ints
    device: Ints
    address: Ints
    bytes: Ints
    allocated: Ints
    reserved: Ints

    def __len__(self) -> int:
        return len(self.time_ns)

    @classmethod
    def none(cls) -> MemoryEvents:
        """No memory was recorded."""
        return cls(*(np.zeros(0, dtype=np.int64) for _ in range(7)))


@dataclass(frozen=True, slots=True)
class CounterSamples:
    """Samples of a GPU's counter, sorted by ``device`` and time; each is the mean since the one before, in percent of
    the counter's peak. ``metric`` is its name, "" for none."""

    time_ns: Ints
    device: Ints
    percent: npt.NDArray[np.float64]
    metric: str

    def __len__(self) -> int:
        return len(self.time_ns)

    @classmethod
    def none(cls) -> CounterSamples:
        """No counter was sampled."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(nothing, nothing, np.zeros(0, dtype=np.float64), "")


@dataclass(frozen=True, slots=True)
class CommunicationEvents:
    """What process groups recorded of their calls, on the CPU and once more on the kernels, in no order.

    Attributes:
        start_ns: of the host or device event that this belongs to.
        thread: of the host event; -1 for a device event.
        device, stream: of the device event; -1 for a host event.
        name: of the collective, such as "_allgather_base": a string index.
        group: index into `Timeline.process_groups`, -1 for none.
        sequence: number of the call in its group.
        elements_in, elements_out: of the rank's own buffers.
        dtype: of the elements, such as "Float": a string index.
        peer: global rank of the other side of a send or receive.
    """

    start_ns: Ints
    thread: Ints
    device: Ints
    stream: Ints
    name: Ints
    group: Ints
    sequence: Ints
    elements_in: Ints
    elements_out: Ints
    dtype: Ints
    peer: Ints

    def __len__(self) -> int:
        return len(self.start_ns)

    @classmethod
    def none(cls) -> CommunicationEvents:
        """No process group recorded its calls."""
        return cls(*(np.zeros(0, dtype=np.int64) for _ in range(11)))


@dataclass(frozen=True, slots=True)
class PythonFrames:
    """Calls of Python functions outside torch, the standard library's wrappers and this package, in no order.

    ``place`` is an index into `Timeline.frame_places`.
    """

    place: Ints
    thread: Ints
    start_ns: Ints
    duration_ns: Ints

    def __len__(self) -> int:
        return len(self.place)

    @classmethod
    def none(cls) -> PythonFrames:
        """No Python stacks were recorded."""
        return cls(*(np.zeros(0, dtype=np.int64) for _ in range(4)))


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """How a kernel was launched; None is not recorded."""

    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers_per_thread: int | None = None
    shared_memory_bytes: int | None = None
    occupancy_percent: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """One entry of the trace's ``deviceProperties``."""

    id: int
    name: str
    compute_major: int | None
    compute_minor: int | None
    sm_count: int | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class StatedOp:
    """What the format itself says of an op: its type, the dotted path of its module ("" for none) and its part of the
    training step (`Role.OTHER` where it says none)."""

    op_type: str
    module: str = ""
    role: Role = Role.OTHER


@dataclass(frozen=True, slots=True)
class StepMarks:
    """Iterations in order of time, as the CPU ran them; ``found_by`` says from what, in the words of `Iterations`."""

    number: Ints
    start_ns: Ints
    stop_ns: Ints
    found_by: str


@dataclass(frozen=True, slots=True)
class TraceNote:
    """What was repaired, dropped or is missing; ``count`` is None where it cannot be counted."""

    code: str
    text: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """What one process recorded; ``events`` counts all events of the file, ``repaired`` those that had to be repaired.

    ``format`` is the name of the reader's format, ``framework`` what the program computed with: "pytorch",
    "tensorflow", "jax", "tensorrt", "onnxruntime", "" for unknown. ``system`` is what the file says about the machine.
    ``step_marks`` are iterations that the format itself marks; None lets the analysis look for them. ``frame_places``
    are places in the user's files, "train.py:12 step" with the line where the function begins. ``stated_ops`` is what
    the format says of ops, by the string index of their names: it stands above what the analysis reads out of names.
    ``by_time`` says that the ranges are the program's own: a launch on a thread without any belongs to the range in
    which another thread waits. ``tensor_samples`` are of the counter that tells how busy the Tensor Cores are.
    ``backend`` is that of the group of all ranks, such as "nccl"; "" for unknown. ``compiled_graphs`` were
    made by torch.compile, as far as they were recorded with the trace; so were ``compilations``, ``graph_breaks`` and
    ``cudagraph_skips``.
    """

    source: str
    base_time_unix_ns: int
    strings: list[str]
    host: HostEvents
    device: DeviceEvents
    launch_configs: list[LaunchConfig]
    device_properties: list[DeviceProperties]
    rank: int | None = None
    world_size: int | None = None
    cuda_runtime_version: int | None = None
    cuda_driver_version: int | None = None
    record_shapes: bool | None = None
    notes: list[TraceNote] = field(default_factory=list)
    memory: MemoryEvents = field(default_factory=MemoryEvents.none)
    frames: PythonFrames = field(default_factory=PythonFrames.none)
    frame_places: list[str] = field(default_factory=list)
    events: int = 0
    repaired: int = 0
    input_shapes: list[InputShapes] = field(default_factory=lambda: [()])
    input_dtypes: list[InputDtypes] = field(default_factory=lambda: [()])
    format: str = "kineto"
    framework: str = "pytorch"
    system: System = field(default_factory=System)
    step_marks: StepMarks | None = None
    stated_ops: dict[int, StatedOp] = field(default_factory=dict)
    by_time: bool = False
    tensor_samples: CounterSamples = field(default_factory=CounterSamples.none)
    communications: CommunicationEvents = field(default_factory=CommunicationEvents.none)
    process_groups: list[ProcessGroup] = field(default_factory=list)
    backend: str = ""
    compiled_graphs: tuple[CompiledGraph, ...] = ()
    compilations: tuple[Compilation, ...] = ()
    graph_breaks: tuple[GraphBreak, ...] = ()
    cudagraph_skips: tuple[CudagraphSkip, ...] = ()
