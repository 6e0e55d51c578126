"""Facts that the hook reads from the machine and the training process. None always means: not recorded."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal

import msgspec

from tb_dlprof_plugin.model.column import FieldNumber


class Gpu(msgspec.Struct):
    """One visible GPU; ``memory_bytes`` is its total memory."""

    id: int
    name: str
    compute_major: int | None = None
    compute_minor: int | None = None
    sm_count: int | None = None
    memory_bytes: int | None = None

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """Such as (9, 0), or None where it was not recorded."""
        if self.compute_major is None or self.compute_minor is None:
            return None
        return (self.compute_major, self.compute_minor)


class System(msgspec.Struct):
    """The machine and its software."""

    gpus: list[Gpu] = []
    cpu_model: str | None = None
    cpu_count: int | None = None
    os: str | None = None
    driver_version: str | None = None
    cuda_version: str | None = None
    cudnn_version: str | None = None
    nccl_version: str | None = None
    torch_version: str | None = None
    python_version: str | None = None
    hostname: str | None = None

    def compute_capability_of(self, gpu_ids: Collection[int]) -> tuple[int, int] | None:
        """Of the first of these GPUs; None without one, or where it was not recorded."""
        return next((gpu.compute_capability for gpu in self.gpus if gpu.id in gpu_ids), None)


class DataLoaderFacts(msgspec.Struct):
    """Settings of the training DataLoader; ``batches`` is its length, the batches of an epoch."""

    num_workers: int | None = None
    pin_memory: bool | None = None
    prefetch_factor: int | None = None
    persistent_workers: bool | None = None
    batch_size: int | None = None
    drop_last: bool | None = None
    dataset: str | None = None
    batches: int | None = None


class TransformTime(msgspec.Struct):
    """Calls of the transforms of a class, without the time of transforms inside of them."""

    name: str
    calls: int
    wall_ns: int
    cpu_ns: int


class LoaderRecording(msgspec.Struct):
    """How the batches of `model.profile.LoaderBatches` came about.

    ``loader`` is the class of the iterator. ``missing`` says why it is not known how workers spent their time, "" where
    it is. ``start_method`` is multiprocessing's. ``first_batch_ns`` went from making the first iterator to its first
    batch, ``ready_ns`` (the median) until a worker was ready to make batches. ``worker_memory_bytes`` is what each
    worker held for itself alone. ``cores`` counts those that the process may use, by affinity and cgroup.
    ``transforms`` are of ``transform_samples`` samples. ``whole_batches``: the dataset has ``__getitems__``; ``pins``:
    a thread copies batches into pinned memory. ``shared_write_ns`` is the CPU time that writing a
    batch into new shared memory takes more than into memory that is there, ``shared_free_ns`` that of giving it back.
    """

    loader: str = ""
    workers: int | None = None
    prefetch_factor: int | None = None
    in_order: bool | None = None
    missing: str = ""
    start_method: str | None = None
    first_batch_ns: int | None = None
    ready_ns: int | None = None
    worker_memory_bytes: list[int] = []
    cores: float | None = None
    transforms: list[TransformTime] = []
    transform_samples: int | None = None
    iterable: bool | None = None
    whole_batches: bool | None = None
    collate: str | None = None
    pins: bool | None = None
    shared_write_ns: float | None = None
    shared_free_ns: float | None = None


class DdpFacts(msgspec.Struct):
    """Settings of DistributedDataParallel; ``comm_hook`` names the registered communication hook."""

    bucket_bytes: int | None = None
    gradient_as_bucket_view: bool | None = None
    static_graph: bool | None = None
    comm_hook: str | None = None


class FsdpFacts(msgspec.Struct):
    """Settings of FSDP, ``version`` 1 (``FullyShardedDataParallel``) or 2 (``fully_shard``).

    ``units`` are gathered one by one; ``resharded_units`` of them free their parameters after the forward pass and
    gather them again in the backward pass. ``forward_prefetch`` is the explicit one; FSDP2 prefetches the unit before
    in the backward pass by itself. The dtypes are those of the policy of mixed precision, empty where it names none.
    ``limit_all_gathers`` is FSDP1's, ``shard_ranks`` the ranks that the model is divided among, and ``replicas`` how
    many such groups have a copy each (HSDP).
    """

    version: int
    units: int
    resharded_units: int | None = None
    backward_prefetch: bool | None = None
    forward_prefetch: bool | None = None
    parameter_dtypes: list[str] = []
    reduce_dtypes: list[str] = []
    limit_all_gathers: bool | None = None
    shard_ranks: int | None = None
    replicas: int | None = None


StorageKind = Literal["parameter", "gradient", "optimizer_state", "buffer", "other"]
OTHER_STORAGE: StorageKind = "other"
"""A block of the caching allocator that no tensor of model and optimizer lies in: inputs, workspaces, the user's
own."""


class Storages(msgspec.Struct):
    """Storages of one kind and module on the GPU with the highest peak, between two steps.

    ``kind`` is one of `StorageKind`; ``bytes`` has the size of each, as asked for, in the order of the module's
    tensors.
    """

    kind: str
    module: str
    bytes: list[int] = []


class ClockLimit(msgspec.Struct):
    """What held the clock down, such as "power cap", in so many of the readings of a `GpuEnergy`."""

    name: str
    readings: int


class GpuEnergy(msgspec.Struct):
    """What a GPU's own energy counter said of steps without the profiler.

    ``millijoules`` is what the board consumed in ``duration_ns``, which began and ended with a tick of the counter;
    ``readings`` counts the ticks that were read. ``power_limit_mw`` is the limit in force, ``sm_clock_mhz`` the mean
    and ``temperature_c`` the maximum of the readings.
    """

    gpu: int
    millijoules: int
    duration_ns: int
    readings: int
    power_limit_mw: Annotated[int | None, FieldNumber(7)] = None
    sm_clock_mhz: int | None = None
    temperature_c: int | None = None
    clock_limits: list[ClockLimit] = []


class LossScale(msgspec.Struct):
    """The loss scale when a cycle ended; ``step`` counts training steps since the profiler was started."""

    cycle: int
    scale: float
    growth_tracker: int | None = None
    step: int | None = None


class Compilation(msgspec.Struct):
    """A function that torch.compile compiled: its ``place``, "model.py:12 forward", is that of the function.

    ``compile_id`` numbers functions, and their compilations behind the slash: "1/0" is the first of the second.
    ``duration_ns`` is the time that its forward pass took to compile, ``backward_ns`` that of its backward pass, where
    it was compiled by itself. Within both, ``kernels_ns`` went to the compilation of kernels, ``autotune_ns`` to
    measuring variants of them. ``recompile_reason`` is the guard that failed, "" for the first compilation.
    ``cache_hits`` and ``cache_misses`` count graphs in the caches of Inductor. ``dynamic`` says that it is for sizes
    that vary. ``failure`` is why it came to nothing, so that the function runs without compilation.
    """

    compile_id: str
    place: str
    duration_ns: int
    recompile_reason: str = ""
    backward_ns: int = 0
    kernels_ns: int = 0
    autotune_ns: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    dynamic: bool = False
    failure: str = ""


class GraphBreak(msgspec.Struct):
    """A line of the user's at which torch.compile had to end a graph, and how often it came to it."""

    place: str
    reason: str
    count: int = 1


class CudagraphSkip(msgspec.Struct):
    """Why graphs that torch.compile was to replay as CUDA graphs are not, the line of the user's that causes it, "" for
    none, and how many graphs."""

    place: str
    reason: str
    count: int = 1


class CompileCall(msgspec.Struct):
    """A line of the user's that called torch.compile, with what it passed; "" where it passed no mode or backend."""

    place: str
    mode: str = ""
    backend: str = ""
    count: int = 1


class GarbageCollection(msgspec.Struct):
    """A run of Python's garbage collector, in the process of the training."""

    start_unix_ns: int
    duration_ns: int
    generation: int


class RunFacts(msgspec.Struct):
    """What the hook read in the training process.

    ``grad_scaler_growth_tracker`` is the scaler's count of steps since the last non-finite gradient or growth, at the
    end of the cycle. ``device_checked_steps`` counts recorded optimizer steps that decide on the device whether they
    skip, ``device_skipped_steps`` those that did. ``loss_scales`` has a row per cycle so far, this one last.
    ``unprofiled_before_ns`` and ``unprofiled_after_ns`` are the durations of single steps before the profiler began and
    after it ended. Files of version 0.1 have only ``unprofiled_step_ns``, the median of ``unprofiled_steps`` steps.
    ``trainable_parameters`` counts the parameter tensors of the optimizer that require a gradient,
    ``unused_parameters`` those of them that got none in the recorded steps, ``unused_parameter_bytes`` their size and
    ``unused_parameter_names`` the first of their names. ``optimizer_state_bytes`` is what the optimizer keeps on the
    devices of its parameters. ``allocator_retries`` counts, since the process began, how often an allocation failed at
    first and the allocator freed all cached memory.

    ``peak_memory_allocated_bytes`` and ``peak_memory_reserved_bytes`` are those of the recorded steps where
    ``process_peak_memory_bytes``, the peak of allocated memory since the process began, is known; else, as in files of
    versions before 1.0, those since the process began. ``storages`` are what held memory when the cycle ended, empty
    where not recorded. ``garbage_collections`` are the last runs of Python's garbage collector in the recorded steps,
    at most 1000, where ``garbage_recorded``.

    ``energy`` has a row per GPU that this process used, empty where not measured: ``energy_missing`` says why.

    ``unstepped_gradients`` counts the model's parameters that got a gradient and are in none of the optimizers that
    stepped in the recorded steps, ``unstepped_gradient_bytes`` the size of these gradients, and
    ``unstepped_gradient_modules`` names the outermost modules that have no other gradients, at most 64.

    ``loading`` is how the batches of the training came about; None where no DataLoader was seen.

    ``slow_switches`` are debugging settings of the process that cost time: variables of the environment as
    ``NAME=value``, and Python tracers. Of the GPU with the highest peak, ``steady_memory_bytes`` is what tensors held
    when the cycle ended, between two steps, and ``available_memory_bytes`` the most that this process could have held:
    what its allocator had reserved and what was free. Of the same GPU and time, ``other_gpu_memory_bytes`` is neither
    free nor this process's allocator's: other processes and CUDA's own; ``other_gpu_processes`` counts processes
    besides this one; ``clock_limits`` names what held its clock down. ``load_average`` (of one minute) and
    ``machine_cpus`` are the whole machine's, those of other containers included.
    """

    model: str | None = None
    parameter_count: int | None = None
    parameter_dtypes: list[str] = []
    training: bool | None = None
    autocast: bool | None = None
    autocast_dtype: str | None = None
    grad_scaler: bool | None = None
    grad_scaler_scale: float | None = None
    matmul_allow_tf32: bool | None = None
    cudnn_allow_tf32: bool | None = None
    cudnn_enabled: bool | None = None
    cudnn_benchmark: bool | None = None
    cudnn_deterministic: bool | None = None
    deterministic_algorithms: bool | None = None
    anomaly_mode: bool | None = None
    dataloader: DataLoaderFacts | None = None
    batch_size: int | None = None
    compiled: bool | None = None
    parallel_wrapper: str | None = None
    rank: int | None = None
    world_size: int | None = None
    optimizer: str | None = None
    peak_memory_allocated_bytes: int | None = None
    peak_memory_reserved_bytes: int | None = None
    channels_last: bool | None = None
    run_name: str | None = None
    module_ranges: bool | None = None
    record_shapes: bool | None = None
    grad_scaler_growth_tracker: int | None = None
    device_checked_steps: int | None = None
    device_skipped_steps: int | None = None
    loss_scales: list[LossScale] = []
    apex_opt_level: str | None = None
    unprofiled_step_ns: int | None = None
    unprofiled_steps: int | None = None
    with_stack: bool | None = None
    profile_memory: bool | None = None
    slow_switches: list[str] = []
    ddp: DdpFacts | None = None
    distributed_backend: str | None = None
    steady_memory_bytes: int | None = None
    available_memory_bytes: int | None = None
    trainable_parameters: Annotated[int | None, FieldNumber(60)] = None
    unused_parameters: int | None = None
    unused_parameter_bytes: int | None = None
    unused_parameter_names: list[str] = []
    find_unused_parameters: bool | None = None
    optimizer_state_bytes: int | None = None
    allocator_retries: int | None = None
    allocator_settings: str | None = None
    unprofiled_before_ns: list[int] = []
    unprofiled_after_ns: list[int] = []
    load_average: float | None = None
    machine_cpus: int | None = None
    other_gpu_processes: int | None = None
    other_gpu_memory_bytes: int | None = None
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    gpu_temperature_c: int | None = None
    clock_limits: list[str] = []
    process_peak_memory_bytes: int | None = None
    storages: list[Storages] = []
    garbage_recorded: bool | None = None
    garbage_collections: list[GarbageCollection] = []
    energy: Annotated[list[GpuEnergy], FieldNumber(90)] = []
    energy_missing: str | None = None
    unstepped_gradients: Annotated[int | None, FieldNumber(140)] = None
    unstepped_gradient_bytes: int | None = None
    unstepped_gradient_modules: list[str] = []
    fsdp: Annotated[FsdpFacts | None, FieldNumber(130)] = None
    communication_settings: Annotated[list[str], FieldNumber(160)] = []
    compilations: Annotated[list[Compilation], FieldNumber(170)] = []
    graph_breaks: list[GraphBreak] = []
    cudagraph_skips: list[CudagraphSkip] = []
    compile_calls: list[CompileCall] = []
    loading: Annotated[LoaderRecording | None, FieldNumber(220)] = None
