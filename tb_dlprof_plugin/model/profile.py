"""The Profile: numpy columns and a string table, in memory and, as they are declared here, stored.

All pages and reports are computed from these tables (`tb_dlprof_plugin.metrics`). Times are integer
nanoseconds since ``base_time_unix_ns``. Columns of one table have the same length, and each declares what its numbers
may be and how they are stored: `tb_dlprof_plugin.model.column`. A new column is the last one of its table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.column import (
    BYTES,
    BYTES_OR_NONE,
    COUNT_OR_NONE,
    DELTAS,
    DELTAS_PLUS_ONE,
    DURATION,
    NUMBER,
    PLUS_ONE,
    RISING_DELTAS,
    RUNS,
    SIGNED,
    STEP,
    THREAD,
    TIME,
    Between,
    Edges,
    FieldNumber,
    Flag,
    Form,
    InOldFiles,
    PerRow,
    RowsOf,
    member_of,
)
from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.input_columns import DTYPE_COLUMNS, SHAPE_COLUMNS
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.process_groups import ProcessGroup
from tb_dlprof_plugin.model.run_facts import RunFacts, System
from tb_dlprof_plugin.model.shapes import InputShapes
from tb_dlprof_plugin.model.trial_result import STORED_TRIAL, TrialResult

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

SCHEMA_VERSION = 2

TIME_CATEGORIES = ("tensor_core", "other_kernels", "memory", "dataloader", "io", "cpu", "other")
"""DLProf's seven exclusive categories, by falling precedence."""


class Role(IntEnum):
    """The part of a training step that a call belongs to."""

    OTHER = 0
    FORWARD = 1
    BACKWARD = 2
    OPTIMIZER = 3
    DATALOADER = 4


class CallKind(IntEnum):
    """What a call is."""

    OP = 0
    RUNTIME = 1
    ANNOTATION = 2
    MODULE = 3
    OVERHEAD = 4


class Verdict(IntEnum):
    """Three-valued answer."""

    UNKNOWN = 0
    NO = 1
    YES = 2


class KernelKind(IntEnum):
    """What ran on the GPU."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2


class Attribution(IntEnum):
    """How a GPU activity was tied to an op."""

    LINKED = 0
    ORPHAN = 1
    UNATTRIBUTED = 2
    BY_TIME = 3
    """Launched on a thread without ranges, while another thread waited in the op's range."""


ATTRIBUTED = (Attribution.LINKED, Attribution.BY_TIME)
"""Those that are in an op's time."""


Times = Annotated[Ints, TIME]
Durations = Annotated[Ints, DURATION]
Numbers = Annotated[Ints, NUMBER]
Threads = Annotated[Ints, THREAD]
Names = Annotated[Ints, RowsOf("strings")]
Verdicts = Annotated[Ints, member_of(Verdict)]
Flags = Annotated[Bools, Flag()]
CallRows = Annotated[Ints, RowsOf("calls", lowest=-1)]


@dataclass(frozen=True, slots=True)
class Source:
    """Where the profile comes from; ``format`` and ``framework`` as in `model.timeline.Timeline`."""

    session: str
    rank: int
    cycle: int
    worker: str
    trace_file: str
    created_unix_ns: int
    plugin_version: str
    trace_events: int | None = None
    repaired_events: int | None = None
    format: str = "kineto"
    framework: str = "pytorch"


_CATEGORY_NUMBERS = Form(
    tuple[int, ...],
    lambda names: tuple(map(TIME_CATEGORIES.index, names)),
    lambda numbers, may_take: tuple(TIME_CATEGORIES[number] for number in numbers),
)


@dataclass(frozen=True, slots=True)
class Iterations:
    """``category_ns`` has the shape (iterations, GPUs or 1, 7); ``number`` is the user's count of training steps.

    ``host_start_ns`` to ``host_stop_ns`` is the step as the CPU ran it: calls belong to iterations by it. ``start_ns``
    to ``stop_ns`` ends when the step's GPU work has ended too: times are measured by it.
    """

    number: Annotated[Ints, STEP]
    start_ns: Times
    stop_ns: Times
    host_start_ns: Annotated[Times, FieldNumber(8)]
    host_stop_ns: Times
    category_ns: Annotated[Durations, FieldNumber(4), PerRow(len(TIME_CATEGORIES), each="gpu_ids")]
    gpu_ids: tuple[int, ...]
    found_by: str
    unrecorded_categories: Annotated[tuple[str, ...], _CATEGORY_NUMBERS]

    def __len__(self) -> int:
        return len(self.number)

    @property
    def duration_ns(self) -> Ints:
        """Wall time of each iteration."""
        return self.stop_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Ops:
    """Unique ops; name columns index `Profile.strings`, enum columns hold the enums' values.

    ``shapes`` and ``dtypes`` are rows of `Profile.input_shapes` and `Profile.input_dtypes`, 0 where not recorded.

    ``continuation`` marks the second and later backward nodes of one forward op: they add time, not calls.
    ``compiled`` is the row of `CompiledKernels` of a launch of torch.compile's wrapper, -1 for every other op.
    """

    name: Names
    kind: Annotated[Ints, member_of(CallKind)]
    op_type: Names
    module: Names
    role: Annotated[Ints, member_of(Role)]
    shapes: Annotated[Ints, RowsOf("input_shapes"), FieldNumber(11)]
    dtypes: Annotated[Ints, RowsOf("input_dtypes")]
    top: Annotated[Flags, FieldNumber(8)]
    tensor_core_eligible: Verdicts
    continuation: Flags
    compiled: Annotated[Ints, RowsOf("compiled_kernels", lowest=-1), PLUS_ONE, FieldNumber(13), InOldFiles(-1)]

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls in order of thread, start and depth; ``op`` is a row of `Ops`. The order and depth give the call tree."""

    op: Annotated[Ints, RowsOf("ops")]
    start_ns: Annotated[Times, DELTAS]
    duration_ns: Durations
    depth: Annotated[Ints, RowsOf("calls")]
    thread: Annotated[Threads, RUNS]

    def __len__(self) -> int:
        return len(self.op)


@dataclass(frozen=True, slots=True)
class Kernels:
    """Unique kernels, copies and sets; ``precision`` and ``rule`` (what decided ``tensor_core``) index the strings."""

    name: Names
    kind: Annotated[Ints, member_of(KernelKind)]
    family: Names
    tensor_core: Verdicts
    precision: Names
    rule: Names

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True)
class Launches:
    """GPU activities in order of start; ``call`` is a row of `Calls` or -1; ``bytes`` -1 where not recorded."""

    kernel: Annotated[Ints, RowsOf("kernels")]
    call: Annotated[CallRows, DELTAS_PLUS_ONE]
    start_ns: Annotated[Times, DELTAS]
    duration_ns: Durations
    device: Numbers
    stream: Annotated[Numbers, PLUS_ONE]
    config: Annotated[Ints, RowsOf("launch_configs")]
    bytes: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    attribution: Annotated[Ints, member_of(Attribution)]

    def __len__(self) -> int:
        return len(self.kernel)


@dataclass(frozen=True, slots=True)
class LaunchConfigs:
    """``grid`` and ``block`` have the shape (n, 3); -1 stands for "not recorded"."""

    grid: Annotated[Numbers, SIGNED, PerRow(3)]
    block: Annotated[Numbers, SIGNED, PerRow(3)]
    registers_per_thread: Annotated[Numbers, SIGNED]
    shared_memory_bytes: Annotated[Numbers, SIGNED]
    occupancy_percent: Annotated[Ints, Between(-1, 100), SIGNED]

    def __len__(self) -> int:
        return len(self.registers_per_thread)


@dataclass(frozen=True, slots=True)
class KernelCounters:
    """Counters of single launches of kernels, in their order, as Nsight Compute measured them in a run of its own.

    ``grid`` and ``block`` have the shape (n, 3); -1 stands for "not measured". Clocks were locked and caches flushed by
    default, so that ``duration_ns`` is no time of this run. ``tensor_instructions`` counts instructions of the Tensor
    Core pipe, or cycles in which it was active: whether it is 0 is what tells. ``occupancy_permille`` is the achieved
    one. ``flops`` counts those of the Tensor Cores, too.
    """

    name: Names
    grid: Annotated[Numbers, SIGNED, PerRow(3)]
    block: Annotated[Numbers, SIGNED, PerRow(3)]
    duration_ns: Annotated[Ints, BYTES_OR_NONE, SIGNED]
    tensor_instructions: Annotated[Ints, BYTES_OR_NONE, SIGNED]
    occupancy_permille: Annotated[Ints, Between(-1, 1000), SIGNED]
    dram_bytes: Annotated[Ints, BYTES_OR_NONE, SIGNED]
    flops: Annotated[Ints, BYTES_OR_NONE, SIGNED]

    def __len__(self) -> int:
        return len(self.name)

    @classmethod
    def none(cls) -> KernelCounters:
        """Nothing was measured."""
        empty, sizes = np.zeros(0, dtype=np.int64), np.zeros((0, 3), dtype=np.int64)
        return cls(empty, sizes, sizes, empty, empty, empty, empty, empty)


PARTNER_UNKNOWN = -2
"""`Memory.partner` of an event without an address."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Allocations (``bytes`` > 0) and frees (< 0) in order of time; empty where memory was not recorded.

    ``allocated`` and ``reserved`` are the device's totals after the event, -1 where not recorded; ``device`` is -1 for
    the CPU; ``call`` is the row in `Calls` of the innermost call around the event, -1 for none; ``partner`` is the row
    of an allocation's free and of a free's allocation, -1 where it is not in the recording, `PARTNER_UNKNOWN` where no
    address was recorded that would tell.
    """

    time_ns: Annotated[Times, DELTAS]
    bytes: Annotated[Ints, BYTES, SIGNED]
    allocated: Annotated[Ints, BYTES, DELTAS]
    reserved: Annotated[Ints, BYTES, DELTAS]
    device: Annotated[Numbers, SIGNED]
    call: Annotated[CallRows, DELTAS_PLUS_ONE]
    partner: Annotated[Ints, RowsOf("memory", lowest=PARTNER_UNKNOWN), DELTAS_PLUS_ONE]

    def __len__(self) -> int:
        return len(self.time_ns)

    @classmethod
    def none(cls) -> Memory:
        """No memory was recorded."""
        return cls(*(np.zeros(0, dtype=np.int64) for _ in range(7)))


@dataclass(frozen=True, slots=True)
class CallPlaces:
    """Where in the user's files calls that wait for the GPU or copy come from; empty without Python stacks.

    ``call`` are rows of `Calls`, rising; ``place`` the string index of "train.py:12 step": the innermost function
    outside torch, with the line where it begins.
    """

    call: Annotated[Ints, RowsOf("calls"), RISING_DELTAS]
    place: Names

    def __len__(self) -> int:
        return len(self.call)

    @classmethod
    def none(cls) -> CallPlaces:
        """No Python stacks were recorded."""
        return cls(*(np.zeros(0, dtype=np.int64) for _ in range(2)))


@dataclass(frozen=True, slots=True)
class TensorActivity:
    """How busy the Tensor Cores were by a counter of the GPU: rows of iterations, then rows of kernels.

    Attributes:
        metric: the counter's name.
        iteration: row of `Iterations`, -1 for a row of a kernel.
        kernel: row of `Kernels`, over all recorded iterations; -1 for a row of an iteration.
        active_ppm: mean of the counter over ``measured_ns``, parts per million of its peak.
        measured_ns: time that samples cover, over all GPUs.
    """

    metric: Names
    iteration: Annotated[Ints, RowsOf("iterations", lowest=-1), PLUS_ONE]
    kernel: Annotated[Ints, RowsOf("kernels", lowest=-1), PLUS_ONE]
    active_ppm: Annotated[Ints, Between(0, 1_000_000)]
    measured_ns: Durations

    def __len__(self) -> int:
        return len(self.metric)

    @classmethod
    def none(cls) -> TensorActivity:
        """No counter was sampled."""
        return cls(*(np.zeros(0, dtype=np.int64) for _ in range(5)))


@dataclass(frozen=True, slots=True)
class CompiledKernels:
    """Launches of the wrappers that torch.compile generated: graph by graph, each in the order of its launches.

    All but ``module_count`` and ``bytes`` index `Profile.strings`; several in one text are separated by ", ".

    Attributes:
        graph: key in the FX graph cache.
        name: the generated kernel's, or the library's call as the wrapper has it.
        ops: ATen ops that it computes, "" for unknown.
        places: lines of the user's files that it computes, "model.py:12 forward"; "" for unknown.
        modules: paths of the modules whose ops it computes, below the compiled one, whose own is "".
        module_count: how many these are; 0 for unknown.
        module_bytes: of each of the modules the bytes that its ops read from memory or write to it; "" for unknown.
        bytes: of its arguments, an estimate of what it reads and writes; -1 for unknown.
        arguments: of a convolution those that are no tensors, as the wrapper has them; "" for other launches.
    """

    graph: Names
    name: Names
    ops: Names
    places: Names
    modules: Names
    module_count: Annotated[Ints, COUNT_OR_NONE]
    module_bytes: Annotated[Names, InOldFiles(0)]
    bytes: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE, InOldFiles(-1)]
    arguments: Annotated[Names, InOldFiles(0)]

    def __len__(self) -> int:
        return len(self.name)

    @classmethod
    def none(cls) -> CompiledKernels:
        """No kernel of torch.compile is explained."""
        return cls(*(np.zeros(0, dtype=np.int64) for _ in range(9)))


@dataclass(frozen=True, slots=True)
class Communications:
    """What process groups recorded of their calls: one row per communication kernel, and per call without a known one.

    Attributes:
        call: row of `Calls` of the process group's note, -1 where only the kernel has the arguments.
        launch: row of `Launches` of the kernel, -1 where not known: calls that are sent off together have one kernel,
            which belongs to none of them.
        name: as the process group has it, such as "_allgather_base"; ``dtype`` such as "Float".
        group: row of `Profile.process_groups`, -1 where not recorded.
        sequence: number of the call in its group, -1 where not recorded.
        elements_in, elements_out: of this rank's buffers, -1 where not recorded.
        peer: global rank of the other side of a send or receive, -1 for none.
    """

    call: Annotated[CallRows, DELTAS_PLUS_ONE]
    launch: Annotated[Ints, RowsOf("launches", lowest=-1), DELTAS_PLUS_ONE]
    name: Names
    group: Annotated[Ints, RowsOf("process_groups", lowest=-1), PLUS_ONE]
    sequence: Annotated[Ints, COUNT_OR_NONE, DELTAS_PLUS_ONE]
    elements_in: Annotated[Ints, COUNT_OR_NONE, PLUS_ONE]
    elements_out: Annotated[Ints, COUNT_OR_NONE, PLUS_ONE]
    dtype: Names
    peer: Annotated[Numbers, PLUS_ONE]

    def __len__(self) -> int:
        return len(self.call)

    @classmethod
    def none(cls) -> Communications:
        """No process group recorded its calls."""
        return cls(*(np.zeros(0, dtype=np.int64) for _ in range(9)))


@dataclass(frozen=True, slots=True)
class LoaderBatches:
    """Batches that a DataLoader gave to the training, in their order: the last ones before the recording ended.

    Times count from `Profile.base_time_unix_ns`; -1 stands for "not known" elsewhere.

    Attributes:
        worker: number of the worker process, `IN_PROCESS` for the training's own, `WORKER_UNKNOWN` where the workers'
            side was not measured: then all columns before ``asked_ns`` are unknown, and ``begin_ns`` is ``asked_ns``.
        begin_ns: when its first item was asked for.
        items_ns, items_cpu_ns: reading its items, on the wall clock and on the CPU of that thread.
        collate_ns, collate_cpu_ns: the same of ``collate_fn``.
        process_cpu_ns: CPU time of all threads of the worker in both.
        queued_ns: of both, ready to run while no core was free.
        put_ns, put_cpu_ns: serialising it, with copies into shared memory.
        bytes, tensors, samples: of the batch.
        median_sample_ns: of its items.
        slow_samples, slow_samples_ns: items that took four times that and more, and their time.
        slowest_sample: index in the dataset.
        asked_ns: when the training asked for it.
        wait_ns, wait_cpu_ns: until the training had it, and of that on the CPU of its thread.
        ready: batches that were there when it asked.
        handover_ns: from its being serialised until its bytes were received, where the receiver waited for it.
        unpickle_ns, unpickle_cpu_ns: making tensors of these bytes, and of that on the CPU of the thread that does it:
            the rest waits for the worker, which gives the shared memory of each tensor.
        pin_ns: copying it into pinned memory.
        gap_ns, gap_cpu_ns: from the batch before to this one's being asked for; CPU time of the whole process in it.
        recorded: whether the profiler ran.
    """

    worker: Annotated[Ints, Between(-2, 2**20), SIGNED]
    begin_ns: Annotated[Times, DELTAS]
    items_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    items_cpu_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    collate_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    collate_cpu_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    process_cpu_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    queued_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    put_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    put_cpu_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    bytes: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    tensors: Annotated[Ints, COUNT_OR_NONE, PLUS_ONE]
    samples: Annotated[Ints, COUNT_OR_NONE, PLUS_ONE]
    median_sample_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    slow_samples: Annotated[Ints, COUNT_OR_NONE, PLUS_ONE]
    slow_samples_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    slowest_sample: Annotated[Ints, COUNT_OR_NONE, PLUS_ONE]
    asked_ns: Annotated[Times, DELTAS]
    wait_ns: Durations
    wait_cpu_ns: Durations
    ready: Annotated[Ints, COUNT_OR_NONE, PLUS_ONE]
    handover_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    unpickle_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    pin_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    gap_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    gap_cpu_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE]
    recorded: Flags
    unpickle_cpu_ns: Annotated[Ints, BYTES_OR_NONE, PLUS_ONE, InOldFiles(-1)]

    def __len__(self) -> int:
        return len(self.asked_ns)

    @classmethod
    def none(cls) -> LoaderBatches:
        """No batch was seen."""
        columns: dict[str, Any] = {name: np.zeros(0, dtype=np.int64) for name in cls.__dataclass_fields__}
        return cls(**{**columns, "recorded": np.zeros(0, dtype=np.bool_)})


IN_PROCESS, WORKER_UNKNOWN = -1, -2
"""`LoaderBatches.worker` of a batch that the training process made itself, and of one whose maker was not seen."""


@dataclass(frozen=True, slots=True)
class LightCalls:
    """CUDA calls of the light window in order of start; ``call`` is the row in `Calls` of the same call in the full
    recording, -1 where unknown; ``name`` indexes `Profile.strings`."""

    name: Names
    start_ns: Annotated[Times, DELTAS]
    duration_ns: Durations
    thread: Threads
    call: Annotated[CallRows, DELTAS_PLUS_ONE]

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True)
class LightLaunches:
    """GPU activities of the light window in order of start; ``call`` is a row of `LightCalls` or -1, ``launch`` the row
    in `Launches` of the same activity in the full recording, -1 where unknown."""

    call: Annotated[Ints, RowsOf("light_window.calls", lowest=-1), DELTAS_PLUS_ONE]
    start_ns: Annotated[Times, DELTAS]
    duration_ns: Durations
    device: Numbers
    stream: Annotated[Numbers, PLUS_ONE]
    launch: Annotated[Ints, RowsOf("launches", lowest=-1), DELTAS_PLUS_ONE]

    def __len__(self) -> int:
        return len(self.start_ns)


def light_step(boundary_ns: Ints, time_ns: Ints) -> Ints:
    """The step of a light window at each time; -1 before the first step, the number of steps after the last.

    Args:
        boundary_ns: as in `LightWindow`.
        time_ns: on the same clock.
    """
    return np.searchsorted(boundary_ns, time_ns, side="right") - 1


@dataclass(frozen=True, slots=True)
class LightWindow:
    """Steps recorded with GPU activities and CUDA calls alone, which slows the CPU down by next to nothing.

    Times count from `Profile.base_time_unix_ns`. Empty where no such steps were recorded.

    Attributes:
        boundary_ns: CPU times at which the steps begin, and the end of the last: one more than there are steps.
        iteration: index of the full recording's iteration that each step was matched with, -1 where their launches
            differ.
    """

    boundary_ns: Annotated[Times, DELTAS, Edges()]
    iteration: Annotated[Ints, RowsOf("iterations", lowest=-1), PLUS_ONE]
    calls: LightCalls
    launches: LightLaunches

    def __len__(self) -> int:
        return len(self.iteration)

    def step_of_calls(self) -> Ints:
        """Per call the step in which it begins."""
        return light_step(self.boundary_ns, self.calls.start_ns)

    def step_of_launches(self) -> Ints:
        """Per launch the step of its call, as `light_step`; where its call came before the window, that in which it
        begins to run."""
        call, start_ns = self.launches.call, self.launches.start_ns
        called_ns = take_or(self.calls.start_ns, call, start_ns)
        return light_step(self.boundary_ns, called_ns)

    @classmethod
    def none(cls) -> LightWindow:
        """No light window was recorded."""

        def empty(columns: int) -> list[Ints]:
            return [np.zeros(0, dtype=np.int64) for _ in range(columns)]

        boundary, iteration = empty(2)
        return cls(boundary, iteration, LightCalls(*empty(5)), LightLaunches(*empty(6)))


@dataclass(frozen=True, slots=True)
class Note:
    """What was repaired, lost or is not in the source; ``count`` is None where it cannot be counted."""

    code: str
    text: str
    count: int | None = None


AMD_NOTE = "rocm"
"""Code of the note of a recording of AMD's GPUs."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One profiled rank and cycle.

    ``input_shapes`` and ``input_dtypes`` have the different lists of inputs that ops were called with; row 0 of each
    stands for "not recorded" and is empty. ``trial`` is what `tb-dlprof try` measured with this run as its baseline.
    """

    source: Annotated[Source, FieldNumber(4)]
    base_time_unix_ns: Annotated[int, FieldNumber(3)]
    strings: Annotated[list[str], FieldNumber(2)]
    system: Annotated[System, FieldNumber(5)]
    facts: RunFacts
    iterations: Iterations
    ops: Ops
    calls: Calls
    kernels: Kernels
    launches: Launches
    launch_configs: LaunchConfigs
    notes: list[Note] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory.none)
    call_places: CallPlaces = field(default_factory=CallPlaces.none)
    light_window: LightWindow = field(default_factory=LightWindow.none)
    tensor_activity: Annotated[TensorActivity, FieldNumber(30)] = field(default_factory=TensorActivity.none)
    input_shapes: Annotated[list[InputShapes], FieldNumber(17), SHAPE_COLUMNS] = field(default_factory=lambda: [()])
    input_dtypes: Annotated[list[InputDtypes], DTYPE_COLUMNS] = field(default_factory=lambda: [()])
    communications: Communications = field(default_factory=Communications.none)
    process_groups: list[ProcessGroup] = field(default_factory=list)
    kernel_counters: Annotated[KernelCounters, FieldNumber(31)] = field(default_factory=KernelCounters.none)
    trial: Annotated[TrialResult | None, FieldNumber(50), STORED_TRIAL] = None
    compiled_kernels: Annotated[CompiledKernels, FieldNumber(32)] = field(default_factory=CompiledKernels.none)
    loader_batches: Annotated[LoaderBatches, FieldNumber(60)] = field(default_factory=LoaderBatches.none)

    def shapes_of(self, op: int) -> InputShapes:
        """Shapes of the inputs of a row of `ops`; () where not recorded."""
        return self.input_shapes[int(self.ops.shapes[op])]

    def dtypes_of(self, op: int) -> InputDtypes:
        """Data types of the inputs of a row of `ops`; () where not recorded."""
        return self.input_dtypes[int(self.ops.dtypes[op])]

    def call_name(self, call: int) -> str:
        """The name of a row of `calls`; "" for -1."""
        return self.strings[int(self.ops.name[self.calls.op[call]])] if call >= 0 else ""

    def call_module(self, call: int) -> str:
        """The path of the module of a row of `calls`, "" for none and for -1."""
        return self.strings[int(self.ops.module[self.calls.op[call]])] if call >= 0 else ""

    def named(self, column: Ints, test: Callable[[str], bool]) -> Bools:
        """Per row of a column of `strings` whether its text passes a test, which each text is asked once."""
        texts, row = np.unique(column, return_inverse=True)
        passes = np.array([test(self.strings[index]) for index in texts.tolist()], dtype=np.bool_)
        return passes[row.reshape(-1)]

    def ops_named(self, test: Callable[[str], bool]) -> Bools:
        """Per row of `ops` whether its name passes a test."""
        return self.named(self.ops.name, test)

    def kernels_where(
        self,
        *,
        family: str | None = None,
        precision: str | None = None,
        rule: str | None = None,
        name: Callable[[str], bool] | None = None,
    ) -> Bools:
        """Per row of `kernels` whether it is of this family, precision and rule, and its name passes a test."""
        result = np.ones(len(self.kernels), dtype=np.bool_)
        for column, text in (("family", family), ("precision", precision), ("rule", rule)):
            if text is not None:
                result &= self.named(getattr(self.kernels, column), text.__eq__)
        return result if name is None else result & self.named(self.kernels.name, name)

    @property
    def of_amd(self) -> bool:
        """Whether the GPUs are AMD's: what is said of Tensor Cores does not apply to their Matrix Cores."""
        return any(note.code == AMD_NOTE for note in self.notes)

    @property
    def has_gpu(self) -> bool:
        """Whether anything ran on a GPU."""
        return len(self.launches) > 0
