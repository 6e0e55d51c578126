from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_OTHER: _ClassVar[Role]
    ROLE_FORWARD: _ClassVar[Role]
    ROLE_BACKWARD: _ClassVar[Role]
    ROLE_OPTIMIZER: _ClassVar[Role]
    ROLE_DATALOADER: _ClassVar[Role]

class CallKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CALL_OP: _ClassVar[CallKind]
    CALL_RUNTIME: _ClassVar[CallKind]
    CALL_ANNOTATION: _ClassVar[CallKind]
    CALL_MODULE: _ClassVar[CallKind]
    CALL_OVERHEAD: _ClassVar[CallKind]

class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_UNKNOWN: _ClassVar[Verdict]
    VERDICT_NO: _ClassVar[Verdict]
    VERDICT_YES: _ClassVar[Verdict]

class KernelKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KERNEL_KERNEL: _ClassVar[KernelKind]
    KERNEL_MEMCPY: _ClassVar[KernelKind]
    KERNEL_MEMSET: _ClassVar[KernelKind]

class Attribution(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ATTRIBUTION_LINKED: _ClassVar[Attribution]
    ATTRIBUTION_ORPHAN: _ClassVar[Attribution]
    ATTRIBUTION_UNATTRIBUTED: _ClassVar[Attribution]
ROLE_OTHER: Role
ROLE_FORWARD: Role
ROLE_BACKWARD: Role
ROLE_OPTIMIZER: Role
ROLE_DATALOADER: Role
CALL_OP: CallKind
CALL_RUNTIME: CallKind
CALL_ANNOTATION: CallKind
CALL_MODULE: CallKind
CALL_OVERHEAD: CallKind
VERDICT_UNKNOWN: Verdict
VERDICT_NO: Verdict
VERDICT_YES: Verdict
KERNEL_KERNEL: KernelKind
KERNEL_MEMCPY: KernelKind
KERNEL_MEMSET: KernelKind
ATTRIBUTION_LINKED: Attribution
ATTRIBUTION_ORPHAN: Attribution
ATTRIBUTION_UNATTRIBUTED: Attribution

class Profile(_message.Message):
    __slots__ = ("schema_version", "strings", "base_time_unix_ns", "source", "system", "facts", "iterations", "ops", "calls", "kernels", "launches", "launch_configs", "notes", "memory", "call_places", "light_window", "input_shapes", "input_dtypes", "tensor_activity", "communications", "process_groups", "kernel_counters", "trial")
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    BASE_TIME_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    OPS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    KERNELS_FIELD_NUMBER: _ClassVar[int]
    LAUNCHES_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_CONFIGS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    CALL_PLACES_FIELD_NUMBER: _ClassVar[int]
    LIGHT_WINDOW_FIELD_NUMBER: _ClassVar[int]
    INPUT_SHAPES_FIELD_NUMBER: _ClassVar[int]
    INPUT_DTYPES_FIELD_NUMBER: _ClassVar[int]
    TENSOR_ACTIVITY_FIELD_NUMBER: _ClassVar[int]
    COMMUNICATIONS_FIELD_NUMBER: _ClassVar[int]
    PROCESS_GROUPS_FIELD_NUMBER: _ClassVar[int]
    KERNEL_COUNTERS_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    schema_version: int
    strings: _containers.RepeatedScalarFieldContainer[str]
    base_time_unix_ns: int
    source: Source
    system: System
    facts: RunFacts
    iterations: Iterations
    ops: Ops
    calls: Calls
    kernels: Kernels
    launches: Launches
    launch_configs: LaunchConfigs
    notes: _containers.RepeatedCompositeFieldContainer[Note]
    memory: Memory
    call_places: CallPlaces
    light_window: LightWindow
    input_shapes: InputShapes
    input_dtypes: InputDtypes
    tensor_activity: TensorActivity
    communications: Communications
    process_groups: _containers.RepeatedCompositeFieldContainer[ProcessGroup]
    kernel_counters: KernelCounters
    trial: bytes
    def __init__(self, schema_version: _Optional[int] = ..., strings: _Optional[_Iterable[str]] = ..., base_time_unix_ns: _Optional[int] = ..., source: _Optional[_Union[Source, _Mapping]] = ..., system: _Optional[_Union[System, _Mapping]] = ..., facts: _Optional[_Union[RunFacts, _Mapping]] = ..., iterations: _Optional[_Union[Iterations, _Mapping]] = ..., ops: _Optional[_Union[Ops, _Mapping]] = ..., calls: _Optional[_Union[Calls, _Mapping]] = ..., kernels: _Optional[_Union[Kernels, _Mapping]] = ..., launches: _Optional[_Union[Launches, _Mapping]] = ..., launch_configs: _Optional[_Union[LaunchConfigs, _Mapping]] = ..., notes: _Optional[_Iterable[_Union[Note, _Mapping]]] = ..., memory: _Optional[_Union[Memory, _Mapping]] = ..., call_places: _Optional[_Union[CallPlaces, _Mapping]] = ..., light_window: _Optional[_Union[LightWindow, _Mapping]] = ..., input_shapes: _Optional[_Union[InputShapes, _Mapping]] = ..., input_dtypes: _Optional[_Union[InputDtypes, _Mapping]] = ..., tensor_activity: _Optional[_Union[TensorActivity, _Mapping]] = ..., communications: _Optional[_Union[Communications, _Mapping]] = ..., process_groups: _Optional[_Iterable[_Union[ProcessGroup, _Mapping]]] = ..., kernel_counters: _Optional[_Union[KernelCounters, _Mapping]] = ..., trial: _Optional[bytes] = ...) -> None: ...

class Source(_message.Message):
    __slots__ = ("session", "rank", "cycle", "worker", "trace_file", "created_unix_ns", "plugin_version", "trace_events", "repaired_events", "format", "framework")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    CYCLE_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    TRACE_FILE_FIELD_NUMBER: _ClassVar[int]
    CREATED_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    PLUGIN_VERSION_FIELD_NUMBER: _ClassVar[int]
    TRACE_EVENTS_FIELD_NUMBER: _ClassVar[int]
    REPAIRED_EVENTS_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_FIELD_NUMBER: _ClassVar[int]
    session: str
    rank: int
    cycle: int
    worker: str
    trace_file: str
    created_unix_ns: int
    plugin_version: str
    trace_events: int
    repaired_events: int
    format: str
    framework: str
    def __init__(self, session: _Optional[str] = ..., rank: _Optional[int] = ..., cycle: _Optional[int] = ..., worker: _Optional[str] = ..., trace_file: _Optional[str] = ..., created_unix_ns: _Optional[int] = ..., plugin_version: _Optional[str] = ..., trace_events: _Optional[int] = ..., repaired_events: _Optional[int] = ..., format: _Optional[str] = ..., framework: _Optional[str] = ...) -> None: ...

class Gpu(_message.Message):
    __slots__ = ("id", "name", "compute_major", "compute_minor", "sm_count", "memory_bytes")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_MAJOR_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_MINOR_FIELD_NUMBER: _ClassVar[int]
    SM_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    compute_major: int
    compute_minor: int
    sm_count: int
    memory_bytes: int
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., compute_major: _Optional[int] = ..., compute_minor: _Optional[int] = ..., sm_count: _Optional[int] = ..., memory_bytes: _Optional[int] = ...) -> None: ...

class System(_message.Message):
    __slots__ = ("gpus", "cpu_model", "cpu_count", "os", "driver_version", "cuda_version", "cudnn_version", "nccl_version", "torch_version", "python_version", "hostname")
    GPUS_FIELD_NUMBER: _ClassVar[int]
    CPU_MODEL_FIELD_NUMBER: _ClassVar[int]
    CPU_COUNT_FIELD_NUMBER: _ClassVar[int]
    OS_FIELD_NUMBER: _ClassVar[int]
    DRIVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    CUDA_VERSION_FIELD_NUMBER: _ClassVar[int]
    CUDNN_VERSION_FIELD_NUMBER: _ClassVar[int]
    NCCL_VERSION_FIELD_NUMBER: _ClassVar[int]
    TORCH_VERSION_FIELD_NUMBER: _ClassVar[int]
    PYTHON_VERSION_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    gpus: _containers.RepeatedCompositeFieldContainer[Gpu]
    cpu_model: str
    cpu_count: int
    os: str
    driver_version: str
    cuda_version: str
    cudnn_version: str
    nccl_version: str
    torch_version: str
    python_version: str
    hostname: str
    def __init__(self, gpus: _Optional[_Iterable[_Union[Gpu, _Mapping]]] = ..., cpu_model: _Optional[str] = ..., cpu_count: _Optional[int] = ..., os: _Optional[str] = ..., driver_version: _Optional[str] = ..., cuda_version: _Optional[str] = ..., cudnn_version: _Optional[str] = ..., nccl_version: _Optional[str] = ..., torch_version: _Optional[str] = ..., python_version: _Optional[str] = ..., hostname: _Optional[str] = ...) -> None: ...

class DataLoaderFacts(_message.Message):
    __slots__ = ("num_workers", "pin_memory", "prefetch_factor", "persistent_workers", "batch_size", "drop_last", "dataset", "batches")
    NUM_WORKERS_FIELD_NUMBER: _ClassVar[int]
    PIN_MEMORY_FIELD_NUMBER: _ClassVar[int]
    PREFETCH_FACTOR_FIELD_NUMBER: _ClassVar[int]
    PERSISTENT_WORKERS_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    DROP_LAST_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    num_workers: int
    pin_memory: bool
    prefetch_factor: int
    persistent_workers: bool
    batch_size: int
    drop_last: bool
    dataset: str
    batches: int
    def __init__(self, num_workers: _Optional[int] = ..., pin_memory: bool = ..., prefetch_factor: _Optional[int] = ..., persistent_workers: bool = ..., batch_size: _Optional[int] = ..., drop_last: bool = ..., dataset: _Optional[str] = ..., batches: _Optional[int] = ...) -> None: ...

class RunFacts(_message.Message):
    __slots__ = ("model", "parameter_count", "parameter_dtypes", "training", "autocast", "autocast_dtype", "grad_scaler", "grad_scaler_scale", "matmul_allow_tf32", "cudnn_allow_tf32", "cudnn_enabled", "cudnn_benchmark", "cudnn_deterministic", "deterministic_algorithms", "anomaly_mode", "dataloader", "batch_size", "compiled", "parallel_wrapper", "rank", "world_size", "optimizer", "peak_memory_allocated_bytes", "peak_memory_reserved_bytes", "channels_last", "run_name", "module_ranges", "record_shapes", "grad_scaler_growth_tracker", "device_checked_steps", "device_skipped_steps", "loss_scales", "apex_opt_level", "unprofiled_step_ns", "unprofiled_steps", "with_stack", "profile_memory", "slow_switches", "ddp", "distributed_backend", "steady_memory_bytes", "available_memory_bytes", "trainable_parameters", "unused_parameters", "unused_parameter_bytes", "unused_parameter_names", "find_unused_parameters", "optimizer_state_bytes", "allocator_retries", "allocator_settings", "unprofiled_before_ns", "unprofiled_after_ns", "load_average", "machine_cpus", "other_gpu_processes", "other_gpu_memory_bytes", "sm_clock_mhz", "max_sm_clock_mhz", "gpu_temperature_c", "clock_limits", "process_peak_memory_bytes", "storages", "garbage_recorded", "garbage_collections", "energy", "energy_missing", "unstepped_gradients", "unstepped_gradient_bytes", "unstepped_gradient_modules", "fsdp", "communication_settings")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_COUNT_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_DTYPES_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FIELD_NUMBER: _ClassVar[int]
    AUTOCAST_FIELD_NUMBER: _ClassVar[int]
    AUTOCAST_DTYPE_FIELD_NUMBER: _ClassVar[int]
    GRAD_SCALER_FIELD_NUMBER: _ClassVar[int]
    GRAD_SCALER_SCALE_FIELD_NUMBER: _ClassVar[int]
    MATMUL_ALLOW_TF32_FIELD_NUMBER: _ClassVar[int]
    CUDNN_ALLOW_TF32_FIELD_NUMBER: _ClassVar[int]
    CUDNN_ENABLED_FIELD_NUMBER: _ClassVar[int]
    CUDNN_BENCHMARK_FIELD_NUMBER: _ClassVar[int]
    CUDNN_DETERMINISTIC_FIELD_NUMBER: _ClassVar[int]
    DETERMINISTIC_ALGORITHMS_FIELD_NUMBER: _ClassVar[int]
    ANOMALY_MODE_FIELD_NUMBER: _ClassVar[int]
    DATALOADER_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    COMPILED_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_WRAPPER_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_ALLOCATED_BYTES_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_RESERVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_LAST_FIELD_NUMBER: _ClassVar[int]
    RUN_NAME_FIELD_NUMBER: _ClassVar[int]
    MODULE_RANGES_FIELD_NUMBER: _ClassVar[int]
    RECORD_SHAPES_FIELD_NUMBER: _ClassVar[int]
    GRAD_SCALER_GROWTH_TRACKER_FIELD_NUMBER: _ClassVar[int]
    DEVICE_CHECKED_STEPS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_SKIPPED_STEPS_FIELD_NUMBER: _ClassVar[int]
    LOSS_SCALES_FIELD_NUMBER: _ClassVar[int]
    APEX_OPT_LEVEL_FIELD_NUMBER: _ClassVar[int]
    UNPROFILED_STEP_NS_FIELD_NUMBER: _ClassVar[int]
    UNPROFILED_STEPS_FIELD_NUMBER: _ClassVar[int]
    WITH_STACK_FIELD_NUMBER: _ClassVar[int]
    PROFILE_MEMORY_FIELD_NUMBER: _ClassVar[int]
    SLOW_SWITCHES_FIELD_NUMBER: _ClassVar[int]
    DDP_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTED_BACKEND_FIELD_NUMBER: _ClassVar[int]
    STEADY_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    UNUSED_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    UNUSED_PARAMETER_BYTES_FIELD_NUMBER: _ClassVar[int]
    UNUSED_PARAMETER_NAMES_FIELD_NUMBER: _ClassVar[int]
    FIND_UNUSED_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZER_STATE_BYTES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATOR_RETRIES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATOR_SETTINGS_FIELD_NUMBER: _ClassVar[int]
    UNPROFILED_BEFORE_NS_FIELD_NUMBER: _ClassVar[int]
    UNPROFILED_AFTER_NS_FIELD_NUMBER: _ClassVar[int]
    LOAD_AVERAGE_FIELD_NUMBER: _ClassVar[int]
    MACHINE_CPUS_FIELD_NUMBER: _ClassVar[int]
    OTHER_GPU_PROCESSES_FIELD_NUMBER: _ClassVar[int]
    OTHER_GPU_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    SM_CLOCK_MHZ_FIELD_NUMBER: _ClassVar[int]
    MAX_SM_CLOCK_MHZ_FIELD_NUMBER: _ClassVar[int]
    GPU_TEMPERATURE_C_FIELD_NUMBER: _ClassVar[int]
    CLOCK_LIMITS_FIELD_NUMBER: _ClassVar[int]
    PROCESS_PEAK_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    STORAGES_FIELD_NUMBER: _ClassVar[int]
    GARBAGE_RECORDED_FIELD_NUMBER: _ClassVar[int]
    GARBAGE_COLLECTIONS_FIELD_NUMBER: _ClassVar[int]
    ENERGY_FIELD_NUMBER: _ClassVar[int]
    ENERGY_MISSING_FIELD_NUMBER: _ClassVar[int]
    UNSTEPPED_GRADIENTS_FIELD_NUMBER: _ClassVar[int]
    UNSTEPPED_GRADIENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    UNSTEPPED_GRADIENT_MODULES_FIELD_NUMBER: _ClassVar[int]
    FSDP_FIELD_NUMBER: _ClassVar[int]
    COMMUNICATION_SETTINGS_FIELD_NUMBER: _ClassVar[int]
    model: str
    parameter_count: int
    parameter_dtypes: _containers.RepeatedScalarFieldContainer[str]
    training: bool
    autocast: bool
    autocast_dtype: str
    grad_scaler: bool
    grad_scaler_scale: float
    matmul_allow_tf32: bool
    cudnn_allow_tf32: bool
    cudnn_enabled: bool
    cudnn_benchmark: bool
    cudnn_deterministic: bool
    deterministic_algorithms: bool
    anomaly_mode: bool
    dataloader: DataLoaderFacts
    batch_size: int
    compiled: bool
    parallel_wrapper: str
    rank: int
    world_size: int
    optimizer: str
    peak_memory_allocated_bytes: int
    peak_memory_reserved_bytes: int
    channels_last: bool
    run_name: str
    module_ranges: bool
    record_shapes: bool
    grad_scaler_growth_tracker: int
    device_checked_steps: int
    device_skipped_steps: int
    loss_scales: _containers.RepeatedCompositeFieldContainer[LossScale]
    apex_opt_level: str
    unprofiled_step_ns: int
    unprofiled_steps: int
    with_stack: bool
    profile_memory: bool
    slow_switches: _containers.RepeatedScalarFieldContainer[str]
    ddp: DdpFacts
    distributed_backend: str
    steady_memory_bytes: int
    available_memory_bytes: int
    trainable_parameters: int
    unused_parameters: int
    unused_parameter_bytes: int
    unused_parameter_names: _containers.RepeatedScalarFieldContainer[str]
    find_unused_parameters: bool
    optimizer_state_bytes: int
    allocator_retries: int
    allocator_settings: str
    unprofiled_before_ns: _containers.RepeatedScalarFieldContainer[int]
    unprofiled_after_ns: _containers.RepeatedScalarFieldContainer[int]
    load_average: float
    machine_cpus: int
    other_gpu_processes: int
    other_gpu_memory_bytes: int
    sm_clock_mhz: int
    max_sm_clock_mhz: int
    gpu_temperature_c: int
    clock_limits: _containers.RepeatedScalarFieldContainer[str]
    process_peak_memory_bytes: int
    storages: _containers.RepeatedCompositeFieldContainer[Storages]
    garbage_recorded: bool
    garbage_collections: _containers.RepeatedCompositeFieldContainer[GarbageCollection]
    energy: _containers.RepeatedCompositeFieldContainer[GpuEnergy]
    energy_missing: str
    unstepped_gradients: int
    unstepped_gradient_bytes: int
    unstepped_gradient_modules: _containers.RepeatedScalarFieldContainer[str]
    fsdp: FsdpFacts
    communication_settings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, model: _Optional[str] = ..., parameter_count: _Optional[int] = ..., parameter_dtypes: _Optional[_Iterable[str]] = ..., training: bool = ..., autocast: bool = ..., autocast_dtype: _Optional[str] = ..., grad_scaler: bool = ..., grad_scaler_scale: _Optional[float] = ..., matmul_allow_tf32: bool = ..., cudnn_allow_tf32: bool = ..., cudnn_enabled: bool = ..., cudnn_benchmark: bool = ..., cudnn_deterministic: bool = ..., deterministic_algorithms: bool = ..., anomaly_mode: bool = ..., dataloader: _Optional[_Union[DataLoaderFacts, _Mapping]] = ..., batch_size: _Optional[int] = ..., compiled: bool = ..., parallel_wrapper: _Optional[str] = ..., rank: _Optional[int] = ..., world_size: _Optional[int] = ..., optimizer: _Optional[str] = ..., peak_memory_allocated_bytes: _Optional[int] = ..., peak_memory_reserved_bytes: _Optional[int] = ..., channels_last: bool = ..., run_name: _Optional[str] = ..., module_ranges: bool = ..., record_shapes: bool = ..., grad_scaler_growth_tracker: _Optional[int] = ..., device_checked_steps: _Optional[int] = ..., device_skipped_steps: _Optional[int] = ..., loss_scales: _Optional[_Iterable[_Union[LossScale, _Mapping]]] = ..., apex_opt_level: _Optional[str] = ..., unprofiled_step_ns: _Optional[int] = ..., unprofiled_steps: _Optional[int] = ..., with_stack: bool = ..., profile_memory: bool = ..., slow_switches: _Optional[_Iterable[str]] = ..., ddp: _Optional[_Union[DdpFacts, _Mapping]] = ..., distributed_backend: _Optional[str] = ..., steady_memory_bytes: _Optional[int] = ..., available_memory_bytes: _Optional[int] = ..., trainable_parameters: _Optional[int] = ..., unused_parameters: _Optional[int] = ..., unused_parameter_bytes: _Optional[int] = ..., unused_parameter_names: _Optional[_Iterable[str]] = ..., find_unused_parameters: bool = ..., optimizer_state_bytes: _Optional[int] = ..., allocator_retries: _Optional[int] = ..., allocator_settings: _Optional[str] = ..., unprofiled_before_ns: _Optional[_Iterable[int]] = ..., unprofiled_after_ns: _Optional[_Iterable[int]] = ..., load_average: _Optional[float] = ..., machine_cpus: _Optional[int] = ..., other_gpu_processes: _Optional[int] = ..., other_gpu_memory_bytes: _Optional[int] = ..., sm_clock_mhz: _Optional[int] = ..., max_sm_clock_mhz: _Optional[int] = ..., gpu_temperature_c: _Optional[int] = ..., clock_limits: _Optional[_Iterable[str]] = ..., process_peak_memory_bytes: _Optional[int] = ..., storages: _Optional[_Iterable[_Union[Storages, _Mapping]]] = ..., garbage_recorded: bool = ..., garbage_collections: _Optional[_Iterable[_Union[GarbageCollection, _Mapping]]] = ..., energy: _Optional[_Iterable[_Union[GpuEnergy, _Mapping]]] = ..., energy_missing: _Optional[str] = ..., unstepped_gradients: _Optional[int] = ..., unstepped_gradient_bytes: _Optional[int] = ..., unstepped_gradient_modules: _Optional[_Iterable[str]] = ..., fsdp: _Optional[_Union[FsdpFacts, _Mapping]] = ..., communication_settings: _Optional[_Iterable[str]] = ...) -> None: ...

class GarbageCollection(_message.Message):
    __slots__ = ("start_unix_ns", "duration_ns", "generation")
    START_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    start_unix_ns: int
    duration_ns: int
    generation: int
    def __init__(self, start_unix_ns: _Optional[int] = ..., duration_ns: _Optional[int] = ..., generation: _Optional[int] = ...) -> None: ...

class GpuEnergy(_message.Message):
    __slots__ = ("gpu", "millijoules", "duration_ns", "readings", "power_limit_mw", "sm_clock_mhz", "temperature_c", "clock_limits")
    GPU_FIELD_NUMBER: _ClassVar[int]
    MILLIJOULES_FIELD_NUMBER: _ClassVar[int]
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    READINGS_FIELD_NUMBER: _ClassVar[int]
    POWER_LIMIT_MW_FIELD_NUMBER: _ClassVar[int]
    SM_CLOCK_MHZ_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_C_FIELD_NUMBER: _ClassVar[int]
    CLOCK_LIMITS_FIELD_NUMBER: _ClassVar[int]
    gpu: int
    millijoules: int
    duration_ns: int
    readings: int
    power_limit_mw: int
    sm_clock_mhz: int
    temperature_c: int
    clock_limits: _containers.RepeatedCompositeFieldContainer[ClockLimit]
    def __init__(self, gpu: _Optional[int] = ..., millijoules: _Optional[int] = ..., duration_ns: _Optional[int] = ..., readings: _Optional[int] = ..., power_limit_mw: _Optional[int] = ..., sm_clock_mhz: _Optional[int] = ..., temperature_c: _Optional[int] = ..., clock_limits: _Optional[_Iterable[_Union[ClockLimit, _Mapping]]] = ...) -> None: ...

class ClockLimit(_message.Message):
    __slots__ = ("name", "readings")
    NAME_FIELD_NUMBER: _ClassVar[int]
    READINGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    readings: int
    def __init__(self, name: _Optional[str] = ..., readings: _Optional[int] = ...) -> None: ...

class Storages(_message.Message):
    __slots__ = ("kind", "module", "bytes")
    KIND_FIELD_NUMBER: _ClassVar[int]
    MODULE_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    kind: str
    module: str
    bytes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, kind: _Optional[str] = ..., module: _Optional[str] = ..., bytes: _Optional[_Iterable[int]] = ...) -> None: ...

class DdpFacts(_message.Message):
    __slots__ = ("bucket_bytes", "gradient_as_bucket_view", "static_graph", "comm_hook")
    BUCKET_BYTES_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_AS_BUCKET_VIEW_FIELD_NUMBER: _ClassVar[int]
    STATIC_GRAPH_FIELD_NUMBER: _ClassVar[int]
    COMM_HOOK_FIELD_NUMBER: _ClassVar[int]
    bucket_bytes: int
    gradient_as_bucket_view: bool
    static_graph: bool
    comm_hook: str
    def __init__(self, bucket_bytes: _Optional[int] = ..., gradient_as_bucket_view: bool = ..., static_graph: bool = ..., comm_hook: _Optional[str] = ...) -> None: ...

class FsdpFacts(_message.Message):
    __slots__ = ("version", "units", "resharded_units", "backward_prefetch", "forward_prefetch", "parameter_dtypes", "reduce_dtypes", "limit_all_gathers", "shard_ranks", "replicas")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    RESHARDED_UNITS_FIELD_NUMBER: _ClassVar[int]
    BACKWARD_PREFETCH_FIELD_NUMBER: _ClassVar[int]
    FORWARD_PREFETCH_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_DTYPES_FIELD_NUMBER: _ClassVar[int]
    REDUCE_DTYPES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_ALL_GATHERS_FIELD_NUMBER: _ClassVar[int]
    SHARD_RANKS_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    version: int
    units: int
    resharded_units: int
    backward_prefetch: bool
    forward_prefetch: bool
    parameter_dtypes: _containers.RepeatedScalarFieldContainer[str]
    reduce_dtypes: _containers.RepeatedScalarFieldContainer[str]
    limit_all_gathers: bool
    shard_ranks: int
    replicas: int
    def __init__(self, version: _Optional[int] = ..., units: _Optional[int] = ..., resharded_units: _Optional[int] = ..., backward_prefetch: bool = ..., forward_prefetch: bool = ..., parameter_dtypes: _Optional[_Iterable[str]] = ..., reduce_dtypes: _Optional[_Iterable[str]] = ..., limit_all_gathers: bool = ..., shard_ranks: _Optional[int] = ..., replicas: _Optional[int] = ...) -> None: ...

class LossScale(_message.Message):
    __slots__ = ("cycle", "scale", "growth_tracker", "step")
    CYCLE_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    GROWTH_TRACKER_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    cycle: int
    scale: float
    growth_tracker: int
    step: int
    def __init__(self, cycle: _Optional[int] = ..., scale: _Optional[float] = ..., growth_tracker: _Optional[int] = ..., step: _Optional[int] = ...) -> None: ...

class Iterations(_message.Message):
    __slots__ = ("number", "start_ns", "stop_ns", "category_ns", "gpu_ids", "found_by", "unrecorded_categories", "host_start_ns", "host_stop_ns")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    START_NS_FIELD_NUMBER: _ClassVar[int]
    STOP_NS_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_NS_FIELD_NUMBER: _ClassVar[int]
    GPU_IDS_FIELD_NUMBER: _ClassVar[int]
    FOUND_BY_FIELD_NUMBER: _ClassVar[int]
    UNRECORDED_CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    HOST_START_NS_FIELD_NUMBER: _ClassVar[int]
    HOST_STOP_NS_FIELD_NUMBER: _ClassVar[int]
    number: _containers.RepeatedScalarFieldContainer[int]
    start_ns: _containers.RepeatedScalarFieldContainer[int]
    stop_ns: _containers.RepeatedScalarFieldContainer[int]
    category_ns: _containers.RepeatedScalarFieldContainer[int]
    gpu_ids: _containers.RepeatedScalarFieldContainer[int]
    found_by: str
    unrecorded_categories: _containers.RepeatedScalarFieldContainer[int]
    host_start_ns: _containers.RepeatedScalarFieldContainer[int]
    host_stop_ns: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, number: _Optional[_Iterable[int]] = ..., start_ns: _Optional[_Iterable[int]] = ..., stop_ns: _Optional[_Iterable[int]] = ..., category_ns: _Optional[_Iterable[int]] = ..., gpu_ids: _Optional[_Iterable[int]] = ..., found_by: _Optional[str] = ..., unrecorded_categories: _Optional[_Iterable[int]] = ..., host_start_ns: _Optional[_Iterable[int]] = ..., host_stop_ns: _Optional[_Iterable[int]] = ...) -> None: ...

class Ops(_message.Message):
    __slots__ = ("name", "kind", "op_type", "module", "role", "shapes", "dtypes", "top", "tensor_core_eligible", "continuation", "input_shapes", "input_dtypes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    OP_TYPE_FIELD_NUMBER: _ClassVar[int]
    MODULE_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    SHAPES_FIELD_NUMBER: _ClassVar[int]
    DTYPES_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    TENSOR_CORE_ELIGIBLE_FIELD_NUMBER: _ClassVar[int]
    CONTINUATION_FIELD_NUMBER: _ClassVar[int]
    INPUT_SHAPES_FIELD_NUMBER: _ClassVar[int]
    INPUT_DTYPES_FIELD_NUMBER: _ClassVar[int]
    name: _containers.RepeatedScalarFieldContainer[int]
    kind: _containers.RepeatedScalarFieldContainer[int]
    op_type: _containers.RepeatedScalarFieldContainer[int]
    module: _containers.RepeatedScalarFieldContainer[int]
    role: _containers.RepeatedScalarFieldContainer[int]
    shapes: _containers.RepeatedScalarFieldContainer[int]
    dtypes: _containers.RepeatedScalarFieldContainer[int]
    top: _containers.RepeatedScalarFieldContainer[bool]
    tensor_core_eligible: _containers.RepeatedScalarFieldContainer[int]
    continuation: _containers.RepeatedScalarFieldContainer[bool]
    input_shapes: _containers.RepeatedScalarFieldContainer[int]
    input_dtypes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[_Iterable[int]] = ..., kind: _Optional[_Iterable[int]] = ..., op_type: _Optional[_Iterable[int]] = ..., module: _Optional[_Iterable[int]] = ..., role: _Optional[_Iterable[int]] = ..., shapes: _Optional[_Iterable[int]] = ..., dtypes: _Optional[_Iterable[int]] = ..., top: _Optional[_Iterable[bool]] = ..., tensor_core_eligible: _Optional[_Iterable[int]] = ..., continuation: _Optional[_Iterable[bool]] = ..., input_shapes: _Optional[_Iterable[int]] = ..., input_dtypes: _Optional[_Iterable[int]] = ...) -> None: ...

class InputShapes(_message.Message):
    __slots__ = ("inputs", "shape", "dimensions", "sizes")
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    inputs: _containers.RepeatedScalarFieldContainer[int]
    shape: _containers.RepeatedScalarFieldContainer[int]
    dimensions: _containers.RepeatedScalarFieldContainer[int]
    sizes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, inputs: _Optional[_Iterable[int]] = ..., shape: _Optional[_Iterable[int]] = ..., dimensions: _Optional[_Iterable[int]] = ..., sizes: _Optional[_Iterable[int]] = ...) -> None: ...

class InputDtypes(_message.Message):
    __slots__ = ("inputs", "names", "name")
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    inputs: _containers.RepeatedScalarFieldContainer[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    name: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, inputs: _Optional[_Iterable[int]] = ..., names: _Optional[_Iterable[str]] = ..., name: _Optional[_Iterable[int]] = ...) -> None: ...

class Calls(_message.Message):
    __slots__ = ("op", "start_ns_delta", "duration_ns", "depth", "thread", "thread_calls")
    OP_FIELD_NUMBER: _ClassVar[int]
    START_NS_DELTA_FIELD_NUMBER: _ClassVar[int]
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    THREAD_CALLS_FIELD_NUMBER: _ClassVar[int]
    op: _containers.RepeatedScalarFieldContainer[int]
    start_ns_delta: _containers.RepeatedScalarFieldContainer[int]
    duration_ns: _containers.RepeatedScalarFieldContainer[int]
    depth: _containers.RepeatedScalarFieldContainer[int]
    thread: _containers.RepeatedScalarFieldContainer[int]
    thread_calls: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, op: _Optional[_Iterable[int]] = ..., start_ns_delta: _Optional[_Iterable[int]] = ..., duration_ns: _Optional[_Iterable[int]] = ..., depth: _Optional[_Iterable[int]] = ..., thread: _Optional[_Iterable[int]] = ..., thread_calls: _Optional[_Iterable[int]] = ...) -> None: ...

class Kernels(_message.Message):
    __slots__ = ("name", "kind", "family", "tensor_core", "precision", "rule")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    TENSOR_CORE_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    name: _containers.RepeatedScalarFieldContainer[int]
    kind: _containers.RepeatedScalarFieldContainer[int]
    family: _containers.RepeatedScalarFieldContainer[int]
    tensor_core: _containers.RepeatedScalarFieldContainer[int]
    precision: _containers.RepeatedScalarFieldContainer[int]
    rule: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[_Iterable[int]] = ..., kind: _Optional[_Iterable[int]] = ..., family: _Optional[_Iterable[int]] = ..., tensor_core: _Optional[_Iterable[int]] = ..., precision: _Optional[_Iterable[int]] = ..., rule: _Optional[_Iterable[int]] = ...) -> None: ...

class Launches(_message.Message):
    __slots__ = ("kernel", "call_delta", "start_ns_delta", "duration_ns", "device", "stream", "config", "bytes_plus_one", "attribution")
    KERNEL_FIELD_NUMBER: _ClassVar[int]
    CALL_DELTA_FIELD_NUMBER: _ClassVar[int]
    START_NS_DELTA_FIELD_NUMBER: _ClassVar[int]
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    BYTES_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    kernel: _containers.RepeatedScalarFieldContainer[int]
    call_delta: _containers.RepeatedScalarFieldContainer[int]
    start_ns_delta: _containers.RepeatedScalarFieldContainer[int]
    duration_ns: _containers.RepeatedScalarFieldContainer[int]
    device: _containers.RepeatedScalarFieldContainer[int]
    stream: _containers.RepeatedScalarFieldContainer[int]
    config: _containers.RepeatedScalarFieldContainer[int]
    bytes_plus_one: _containers.RepeatedScalarFieldContainer[int]
    attribution: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, kernel: _Optional[_Iterable[int]] = ..., call_delta: _Optional[_Iterable[int]] = ..., start_ns_delta: _Optional[_Iterable[int]] = ..., duration_ns: _Optional[_Iterable[int]] = ..., device: _Optional[_Iterable[int]] = ..., stream: _Optional[_Iterable[int]] = ..., config: _Optional[_Iterable[int]] = ..., bytes_plus_one: _Optional[_Iterable[int]] = ..., attribution: _Optional[_Iterable[int]] = ...) -> None: ...

class LaunchConfigs(_message.Message):
    __slots__ = ("grid", "block", "registers_per_thread", "shared_memory_bytes", "occupancy_percent")
    GRID_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    REGISTERS_PER_THREAD_FIELD_NUMBER: _ClassVar[int]
    SHARED_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    OCCUPANCY_PERCENT_FIELD_NUMBER: _ClassVar[int]
    grid: _containers.RepeatedScalarFieldContainer[int]
    block: _containers.RepeatedScalarFieldContainer[int]
    registers_per_thread: _containers.RepeatedScalarFieldContainer[int]
    shared_memory_bytes: _containers.RepeatedScalarFieldContainer[int]
    occupancy_percent: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, grid: _Optional[_Iterable[int]] = ..., block: _Optional[_Iterable[int]] = ..., registers_per_thread: _Optional[_Iterable[int]] = ..., shared_memory_bytes: _Optional[_Iterable[int]] = ..., occupancy_percent: _Optional[_Iterable[int]] = ...) -> None: ...

class KernelCounters(_message.Message):
    __slots__ = ("name", "grid", "block", "duration_ns", "tensor_instructions", "occupancy_permille", "dram_bytes", "flops")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GRID_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    TENSOR_INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    OCCUPANCY_PERMILLE_FIELD_NUMBER: _ClassVar[int]
    DRAM_BYTES_FIELD_NUMBER: _ClassVar[int]
    FLOPS_FIELD_NUMBER: _ClassVar[int]
    name: _containers.RepeatedScalarFieldContainer[int]
    grid: _containers.RepeatedScalarFieldContainer[int]
    block: _containers.RepeatedScalarFieldContainer[int]
    duration_ns: _containers.RepeatedScalarFieldContainer[int]
    tensor_instructions: _containers.RepeatedScalarFieldContainer[int]
    occupancy_permille: _containers.RepeatedScalarFieldContainer[int]
    dram_bytes: _containers.RepeatedScalarFieldContainer[int]
    flops: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[_Iterable[int]] = ..., grid: _Optional[_Iterable[int]] = ..., block: _Optional[_Iterable[int]] = ..., duration_ns: _Optional[_Iterable[int]] = ..., tensor_instructions: _Optional[_Iterable[int]] = ..., occupancy_permille: _Optional[_Iterable[int]] = ..., dram_bytes: _Optional[_Iterable[int]] = ..., flops: _Optional[_Iterable[int]] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("time_ns_delta", "bytes", "allocated_delta", "reserved_delta", "device", "call_delta", "partner_delta")
    TIME_NS_DELTA_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_DELTA_FIELD_NUMBER: _ClassVar[int]
    RESERVED_DELTA_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    CALL_DELTA_FIELD_NUMBER: _ClassVar[int]
    PARTNER_DELTA_FIELD_NUMBER: _ClassVar[int]
    time_ns_delta: _containers.RepeatedScalarFieldContainer[int]
    bytes: _containers.RepeatedScalarFieldContainer[int]
    allocated_delta: _containers.RepeatedScalarFieldContainer[int]
    reserved_delta: _containers.RepeatedScalarFieldContainer[int]
    device: _containers.RepeatedScalarFieldContainer[int]
    call_delta: _containers.RepeatedScalarFieldContainer[int]
    partner_delta: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, time_ns_delta: _Optional[_Iterable[int]] = ..., bytes: _Optional[_Iterable[int]] = ..., allocated_delta: _Optional[_Iterable[int]] = ..., reserved_delta: _Optional[_Iterable[int]] = ..., device: _Optional[_Iterable[int]] = ..., call_delta: _Optional[_Iterable[int]] = ..., partner_delta: _Optional[_Iterable[int]] = ...) -> None: ...

class CallPlaces(_message.Message):
    __slots__ = ("call_delta", "place")
    CALL_DELTA_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    call_delta: _containers.RepeatedScalarFieldContainer[int]
    place: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, call_delta: _Optional[_Iterable[int]] = ..., place: _Optional[_Iterable[int]] = ...) -> None: ...

class TensorActivity(_message.Message):
    __slots__ = ("metric", "iteration_plus_one", "kernel_plus_one", "active_ppm", "measured_ns")
    METRIC_FIELD_NUMBER: _ClassVar[int]
    ITERATION_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    KERNEL_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_PPM_FIELD_NUMBER: _ClassVar[int]
    MEASURED_NS_FIELD_NUMBER: _ClassVar[int]
    metric: _containers.RepeatedScalarFieldContainer[int]
    iteration_plus_one: _containers.RepeatedScalarFieldContainer[int]
    kernel_plus_one: _containers.RepeatedScalarFieldContainer[int]
    active_ppm: _containers.RepeatedScalarFieldContainer[int]
    measured_ns: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, metric: _Optional[_Iterable[int]] = ..., iteration_plus_one: _Optional[_Iterable[int]] = ..., kernel_plus_one: _Optional[_Iterable[int]] = ..., active_ppm: _Optional[_Iterable[int]] = ..., measured_ns: _Optional[_Iterable[int]] = ...) -> None: ...

class LightWindow(_message.Message):
    __slots__ = ("boundary_ns_delta", "iteration_plus_one", "calls", "launches")
    BOUNDARY_NS_DELTA_FIELD_NUMBER: _ClassVar[int]
    ITERATION_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    LAUNCHES_FIELD_NUMBER: _ClassVar[int]
    boundary_ns_delta: _containers.RepeatedScalarFieldContainer[int]
    iteration_plus_one: _containers.RepeatedScalarFieldContainer[int]
    calls: LightCalls
    launches: LightLaunches
    def __init__(self, boundary_ns_delta: _Optional[_Iterable[int]] = ..., iteration_plus_one: _Optional[_Iterable[int]] = ..., calls: _Optional[_Union[LightCalls, _Mapping]] = ..., launches: _Optional[_Union[LightLaunches, _Mapping]] = ...) -> None: ...

class LightCalls(_message.Message):
    __slots__ = ("name", "start_ns_delta", "duration_ns", "thread", "call_delta")
    NAME_FIELD_NUMBER: _ClassVar[int]
    START_NS_DELTA_FIELD_NUMBER: _ClassVar[int]
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    CALL_DELTA_FIELD_NUMBER: _ClassVar[int]
    name: _containers.RepeatedScalarFieldContainer[int]
    start_ns_delta: _containers.RepeatedScalarFieldContainer[int]
    duration_ns: _containers.RepeatedScalarFieldContainer[int]
    thread: _containers.RepeatedScalarFieldContainer[int]
    call_delta: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[_Iterable[int]] = ..., start_ns_delta: _Optional[_Iterable[int]] = ..., duration_ns: _Optional[_Iterable[int]] = ..., thread: _Optional[_Iterable[int]] = ..., call_delta: _Optional[_Iterable[int]] = ...) -> None: ...

class LightLaunches(_message.Message):
    __slots__ = ("call_delta", "start_ns_delta", "duration_ns", "device", "stream", "launch_delta")
    CALL_DELTA_FIELD_NUMBER: _ClassVar[int]
    START_NS_DELTA_FIELD_NUMBER: _ClassVar[int]
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_DELTA_FIELD_NUMBER: _ClassVar[int]
    call_delta: _containers.RepeatedScalarFieldContainer[int]
    start_ns_delta: _containers.RepeatedScalarFieldContainer[int]
    duration_ns: _containers.RepeatedScalarFieldContainer[int]
    device: _containers.RepeatedScalarFieldContainer[int]
    stream: _containers.RepeatedScalarFieldContainer[int]
    launch_delta: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, call_delta: _Optional[_Iterable[int]] = ..., start_ns_delta: _Optional[_Iterable[int]] = ..., duration_ns: _Optional[_Iterable[int]] = ..., device: _Optional[_Iterable[int]] = ..., stream: _Optional[_Iterable[int]] = ..., launch_delta: _Optional[_Iterable[int]] = ...) -> None: ...

class Communications(_message.Message):
    __slots__ = ("call_delta", "launch_delta", "name", "group_plus_one", "sequence_delta", "elements_in_plus_one", "elements_out_plus_one", "dtype", "peer_plus_one")
    CALL_DELTA_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_DELTA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUP_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_DELTA_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_IN_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_OUT_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    PEER_PLUS_ONE_FIELD_NUMBER: _ClassVar[int]
    call_delta: _containers.RepeatedScalarFieldContainer[int]
    launch_delta: _containers.RepeatedScalarFieldContainer[int]
    name: _containers.RepeatedScalarFieldContainer[int]
    group_plus_one: _containers.RepeatedScalarFieldContainer[int]
    sequence_delta: _containers.RepeatedScalarFieldContainer[int]
    elements_in_plus_one: _containers.RepeatedScalarFieldContainer[int]
    elements_out_plus_one: _containers.RepeatedScalarFieldContainer[int]
    dtype: _containers.RepeatedScalarFieldContainer[int]
    peer_plus_one: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, call_delta: _Optional[_Iterable[int]] = ..., launch_delta: _Optional[_Iterable[int]] = ..., name: _Optional[_Iterable[int]] = ..., group_plus_one: _Optional[_Iterable[int]] = ..., sequence_delta: _Optional[_Iterable[int]] = ..., elements_in_plus_one: _Optional[_Iterable[int]] = ..., elements_out_plus_one: _Optional[_Iterable[int]] = ..., dtype: _Optional[_Iterable[int]] = ..., peer_plus_one: _Optional[_Iterable[int]] = ...) -> None: ...

class ProcessGroup(_message.Message):
    __slots__ = ("name", "description", "member_runs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    MEMBER_RUNS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    member_runs: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., member_runs: _Optional[_Iterable[int]] = ...) -> None: ...

class Note(_message.Message):
    __slots__ = ("code", "text", "count")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    code: str
    text: str
    count: int
    def __init__(self, code: _Optional[str] = ..., text: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("schema_version", "session", "rank", "model", "precision", "device", "created_unix_ns", "iterations", "average_iteration_ns", "world_size")
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    CREATED_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_ITERATION_NS_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    schema_version: int
    session: str
    rank: int
    model: str
    precision: str
    device: str
    created_unix_ns: int
    iterations: int
    average_iteration_ns: int
    world_size: int
    def __init__(self, schema_version: _Optional[int] = ..., session: _Optional[str] = ..., rank: _Optional[int] = ..., model: _Optional[str] = ..., precision: _Optional[str] = ..., device: _Optional[str] = ..., created_unix_ns: _Optional[int] = ..., iterations: _Optional[int] = ..., average_iteration_ns: _Optional[int] = ..., world_size: _Optional[int] = ...) -> None: ...
