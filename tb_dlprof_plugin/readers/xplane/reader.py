"""Reads an XPlane file into Timelines: one for each GPU that worked, else one for the host.

Only the streams' lines of a GPU are work. The lines that TensorFlow's and xprof's own analysis adds ("Steps", "XLA
Ops", "TensorFlow Ops" ...) repeat it and are left out. Times have picoseconds, which are rounded down.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tb_dlprof_plugin.model.lookup import rows_with, take_rows
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.run_facts import System
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import (
    DeviceEvents,
    DeviceProperties,
    HostEvents,
    HostKind,
    Ints,
    StepMarks,
    Timeline,
    TraceNote,
)
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.program_runs import gpu_of_runs, steps_of_runs
from tb_dlprof_plugin.readers.xplane.device_events import XPlaneDeviceRows, gpu_of, properties, read_rows, work_lines
from tb_dlprof_plugin.readers.xplane.event_table import (
    EventTable,
    named_stats,
    read_events,
    stat_number,
    stat_text,
    text_of,
)
from tb_dlprof_plugin.readers.xplane.hlo import Programs
from tb_dlprof_plugin.readers.xplane.host_events import (
    Classified,
    HostEventKind,
    classify,
    marked_steps,
    marks,
    memory_events,
    python_frames,
)
from tb_dlprof_plugin.readers.xplane.op_calls import HostOpCalls, OpTable, label_host_ops, tie
from tb_dlprof_plugin.readers.xplane.space import Space, read_space
from tb_dlprof_plugin.readers.xplane.xplane_pb2 import XLine, XPlane

_HOST_KINDS = {
    HostEventKind.ANNOTATION: HostKind.ANNOTATION,
    HostEventKind.OP: HostKind.OP,
    HostEventKind.RUNTIME: HostKind.RUNTIME,
    HostEventKind.OVERHEAD: HostKind.OVERHEAD,
}
_EVERY_GPU = -2
_IGNORED_HOST_PLANES = re.compile(r"/host:(metadata|tfstreamz|__|NVTX)|^Task Environment$", re.IGNORECASE)
_TPU_PLANE = re.compile(r"/device:TPU:|TPU", re.IGNORECASE)
_JAX = re.compile(r"PjitFunction|PjRtCApi|^jit_|^pmap_|\$pjit\.py")
_TENSORFLOW = re.compile(r"EagerExecute|EagerKernelExecute|ExecutorState::|^Iterator::|FunctionRun|TFE_Py")
_PYTORCH = re.compile(r"torch_xla|XlaGraphExecutor|LazyGraphExecutor|IrScope")


def read_xplane(
    path: Path, progress: Callable[[float], None] | None = None, place: int | None = None
) -> list[Timeline]:
    """The Timelines of an XPlane file.

    Args:
        path: the file.
        progress: called with the fraction read (0 to 1).
        place: its host's among those of the run, which all have as many GPUs; None where the file stands alone.

    Raises:
        TraceError: it cannot be read, was recorded on a TPU, or holds no event that counts.
    """
    space = read_space(path)
    _tell(progress, 0.2)
    gpu_planes = {at: gpu for at, plane in enumerate(space.planes) if (gpu := gpu_of(plane)) is not None}
    on_gpus = [(at, line) for at in gpu_planes for line in work_lines(space.planes[at])]
    on_host = [(at, line) for at, plane in enumerate(space.planes) if _is_host(plane) for line in plane.lines]
    _refuse_tpu(path, space, on_gpus)

    strings, environment = StringTable(), _environment(space.planes)
    everything = read_events(space.planes, on_gpus + on_host, strings, environment.get("profile_start_time", 0))
    _tell(progress, 0.6)
    first_of_host = int(np.searchsorted(everything.line, len(on_gpus)))
    device, host = everything.only(slice(first_of_host)), everything.only(slice(first_of_host, None))
    rows = read_rows(device, gpu_planes, strings)
    classified = classify(host, strings)
    kept = np.isin(classified.kind, [int(kind) for kind in _HOST_KINDS])
    if not len(device) and not kept.any():
        raise TraceError(
            f"{path} holds no event of a GPU or of the host: nothing ran while it was recorded; "
            "let the profiler run for a few steps."
        )
    table = OpTable(strings, Programs(space.planes))
    label_host_ops(host, classified, table)
    calls = tie(rows, host, classified, table)
    _tell(progress, 0.9)
    steps = marked_steps(host) or _runs_of_the_main_program(device, host, strings, rows.device)
    timelines = _Timelines(path, space, everything, rows, host, classified, table, calls, steps)
    gpus = np.unique(rows.device).tolist()
    all_gpus = sorted(gpu_planes.values())

    def rank_of(gpu: int) -> int | None:
        return None if place is None else place * len(all_gpus) + all_gpus.index(gpu)

    result = [timelines.of_gpu(gpu, rank_of(gpu)) for gpu in gpus] or [timelines.of_gpu(None, place)]
    _tell(progress, 1.0)
    return result


def _tell(progress: Callable[[float], None] | None, fraction: float) -> None:
    if progress is not None:
        progress(fraction)


def _is_host(plane: XPlane) -> bool:
    name = text_of(plane.name)
    return name.startswith("/host:") and _IGNORED_HOST_PLANES.search(name) is None


def _refuse_tpu(path: Path, space: Space, on_gpus: list[tuple[int, XLine]]) -> None:
    tpu = any(_TPU_PLANE.search(text_of(plane.name)) and len(plane.lines) for plane in space.planes)
    if tpu and not any(len(line.events) for _, line in on_gpus):
        raise TraceError(
            f"{path} was recorded on a TPU, and this plugin examines GPUs and CPUs; TensorBoard's Profile plugin "
            "(xprof) shows recordings of TPUs."
        )


def _environment(planes: list[XPlane]) -> dict[str, int]:
    """Numbers that are stats of planes without events: when the recording began and ended."""
    found: dict[str, int] = {}
    for plane in planes:
        if text_of(plane.name) == "Task Environment":
            for name, stat in named_stats(plane, plane.stats).items():
                number = stat_number(stat)
                if number is not None:
                    found[name] = number
    return found


def _runs_of_the_main_program(
    device: EventTable, host: EventTable, strings: StringTable, gpu: Ints
) -> StepMarks | None:
    """Iterations of a program that marks none: each run of the compiled program with most GPU time on all GPUs that it
    runs on. ``gpu`` is that of each row of ``device``."""
    modules = device.stats["hlo_module"]
    named = modules > 0
    if not named.any():
        return None
    known, row = np.unique(modules[named], return_inverse=True)
    time = np.bincount(row, weights=device.duration_ns[named])
    name = strings.values[int(known[int(time.argmax())])]
    run = strings.values.index(f"{name}:XLA GPU module") if f"{name}:XLA GPU module" in strings.values else -1
    runs = np.flatnonzero(host.name == run)
    if len(runs) < 2:
        return None
    begin, end, thread = host.start_ns[runs], host.start_ns[runs] + host.duration_ns[runs], host.line[runs]
    activity = rows_with(device.stats["correlation_id"], np.maximum(host.stats["correlation_id"], 0))
    launches = np.flatnonzero((activity >= 0) & (host.stats["correlation_id"] > 0))
    ran_on = gpu_of_runs(
        begin, end, thread, host.start_ns[launches], host.line[launches], gpu[activity[launches]]
    )  # fmt: skip
    start, stop = steps_of_runs(begin, end, thread, ran_on)
    if len(start) < 2:
        return None
    return marks(np.arange(len(start), dtype=np.int64), start, stop, "program_run")


class _Timelines:
    """Makes the Timeline of one GPU after the other; what the host did stands in each."""

    def __init__(
        self, path: Path, space: Space, everything: EventTable, rows: XPlaneDeviceRows, host: EventTable,
        classified: Classified, table: OpTable, calls: HostOpCalls, steps: StepMarks | None,
    ) -> None:  # fmt: skip
        self.path, self.space, self.everything, self.rows = path, space, everything, rows
        self.host, self.classified, self.table, self.calls, self.steps = host, classified, table, calls, steps
        self.strings = table.strings
        self.framework = _framework(space.planes, self.strings.values)
        self._frames = python_frames(host.only(classified.kind == HostEventKind.FRAME), self.strings)
        self._memory = host.only(classified.kind == HostEventKind.MEMORY)
        self._merged, self._added_for = self._merge()

    def of_gpu(self, gpu: int | None, rank: int | None) -> Timeline:
        """The Timeline of one GPU, or of the host alone."""
        strings = self.strings
        frames, places = self._frames
        ours = self.rows.device == (-1 if gpu is None else gpu)
        driver, runtime, hostname = self._versions()
        return Timeline(
            source=str(self.path),
            base_time_unix_ns=self.everything.base_ns,
            # Each Timeline's table grows by itself later.
            strings=list(strings.values),
            host=self._host_events(gpu),
            device=self._device_events(ours),
            launch_configs=self.rows.configs,
            device_properties=self._properties(gpu),
            rank=rank,
            cuda_driver_version=driver,
            cuda_runtime_version=runtime,
            notes=self._notes(gpu),
            memory=memory_events(self._memory, strings, gpu),
            frames=frames,
            frame_places=places,
            events=len(self.everything) + self.everything.damaged,
            input_shapes=self.table.shapes.values,
            input_dtypes=self.table.dtypes.values,
            record_shapes=bool(self.table.inputs),
            format="xplane",
            framework=self.framework,
            system=System(hostname=hostname),
            step_marks=self.steps,
            stated_ops=self.table.stated,
        )

    def _host_events(self, gpu: int | None) -> HostEvents:
        device = -1 if gpu is None else gpu
        ours = (self._added_for == _EVERY_GPU) | (self._added_for == device)
        foreign = self._launches_elsewhere(device)
        if foreign is not None:
            ours &= ~foreign
        if ours.all():
            return self._merged
        return take_rows(self._merged, ours)

    def _merge(self) -> tuple[HostEvents, Ints]:
        """The host's events and the calls that are added for all GPUs, in order; and for which GPU each was added."""
        host, classified, calls = self.host, self.classified, self.calls
        kept = np.flatnonzero(np.isin(classified.kind, [int(kind) for kind in _HOST_KINDS]))

        def both(own: Ints, extra: Ints) -> Ints:
            # Added calls stand first: around launch calls of the same extent.
            return np.concatenate((extra, own[kept]))

        name = both(classified.name, calls.name)
        kind = np.zeros(max(HostEventKind) + 1, dtype=np.int64)
        for of_event, of_timeline in _HOST_KINDS.items():
            kind[of_event] = int(of_timeline)
        start, duration = both(host.start_ns, calls.start_ns), both(host.duration_ns, calls.duration_ns)
        thread = both(host.line, calls.thread)
        no_call = np.full(len(calls.name), -1, dtype=np.int64)
        correlation = np.where(classified.kind == HostEventKind.RUNTIME, host.stats["correlation_id"], -1)
        inputs = np.zeros((int(name.max(initial=0)) + 1, 2), dtype=np.int64)
        for op, rows in self.table.inputs.items():
            if op < len(inputs):
                inputs[op] = rows
        order = np.lexsort((-duration, start, thread))
        nothing = np.full(len(name), -1, dtype=np.int64)
        merged = HostEvents(
            name=name[order],
            kind=both(kind[classified.kind], np.full(len(calls.name), int(HostKind.OP)))[order],
            thread=thread[order],
            start_ns=start[order],
            duration_ns=duration[order],
            correlation=both(np.maximum(correlation, -1), no_call)[order],
            external_id=both(calls.of_event, calls.own_id)[order],
            sequence_number=nothing,
            forward_thread=nothing,
            shapes=inputs[name[order], 0],
            dtypes=inputs[name[order], 1],
        )
        added_for = np.full(len(name), _EVERY_GPU, dtype=np.int64)
        added_for[: len(calls.name)] = calls.device
        return merged, added_for[order]

    def _launches_elsewhere(self, device: int) -> Bools | None:
        """Which host events launch work of another GPU alone; None where no other worked."""
        others = self.rows.device != device
        if not others.any():
            return None
        wanted, launched = self._merged.correlation, self.rows.events.stats["correlation_id"]
        elsewhere, here = (_values_in(wanted, launched[rows & (launched > 0)]) for rows in (others, ~others))
        return (wanted > 0) & elsewhere & ~here

    def _device_events(self, ours: Bools) -> DeviceEvents:
        rows, events = self.rows, self.rows.events
        correlation = np.where(self.calls.external_id > 0, -1, np.maximum(events.stats["correlation_id"], -1))
        columns = DeviceEvents(
            name=rows.name, kind=rows.kind, device=rows.device, stream=rows.stream, start_ns=events.start_ns,
            duration_ns=events.duration_ns, correlation=correlation, external_id=self.calls.external_id,
            bytes=rows.bytes, config=rows.config,
        )  # fmt: skip
        at = np.flatnonzero(ours)
        order = at[np.argsort(events.start_ns[at], kind="stable")]
        return take_rows(columns, order)

    def _properties(self, gpu: int | None) -> list[DeviceProperties]:
        return [properties(plane, gpu) for plane in self.space.planes if gpu is not None and gpu_of(plane) == gpu]

    def _versions(self) -> tuple[int | None, int | None, str | None]:
        """CUDA's driver and runtime version, as CUDA counts them, and the host."""
        driver = runtime = None
        for plane in self.space.planes:
            stats = named_stats(plane, plane.stats)
            driver = driver or _version(plane, stats.get("cuda_driver_version"))
            runtime = runtime or _version(plane, stats.get("cuda_runtime_version") or stats.get("cuda_version"))
        return driver, runtime, next(iter(self.space.hosts), None)

    def _notes(self, gpu: int | None) -> list[TraceNote]:
        space, calls, notes = self.space, self.calls, []
        if space.cut:
            notes.append(TraceNote("cut_short", "The file ends early: what follows its last whole plane is lost."))
        if space.damaged:
            notes.append(
                TraceNote("planes_lost", "Planes of the file cannot be parsed; they are left out.", space.damaged)
            )
        if self.everything.damaged:
            text = "Events are damaged, or have no name or an impossible time; they are left out."
            notes.append(TraceNote("events_lost", text, self.everything.damaged))
        for warning in dict.fromkeys(space.warnings[:5]):
            notes.append(TraceNote("profiler_warning", f"The profiler says: {warning[:300]}"))
        if calls.in_graphs and gpu is not None:
            notes.append(_note_on_graphs(calls))
        idle = [gpu_of(plane) for plane in space.planes if gpu_of(plane) is not None]
        worked = set(np.unique(self.rows.device).tolist())
        if gpu is not None and len(idle) > len(worked):
            text = "GPUs of the machine were idle in the recording; they have no rank."
            notes.append(TraceNote("idle_gpus", text, len(idle) - len(worked)))
        return notes


def _values_in(values: Ints, known: Ints) -> Bools:
    """Which values are among others; correlation ids are small numbers that follow each other."""
    low, high = int(known.min(initial=0)), int(known.max(initial=0))
    if high - low > 2**20 + 4 * len(values):
        return np.isin(values, known)
    seen = np.zeros(high - low + 1, dtype=np.bool_)
    seen[known - low] = True
    inside = (values >= low) & (values <= high)
    return inside & seen[np.where(inside, values - low, 0)]


def _note_on_graphs(calls: HostOpCalls) -> TraceNote:
    """Command buffers: their kernels name no instruction."""
    remedy = "XLA_FLAGS=--xla_gpu_enable_command_buffer= records each kernel's own launch"
    if not calls.unnamed_in_graphs:
        text = (
            "Kernels ran in command buffers (CUDA graphs), which hide their ops: these are found by the order of the "
            f"compiled program, without a CPU time of their own; {remedy}."
        )
        return TraceNote("command_buffers", text, calls.in_graphs)
    text = f"Kernels ran in command buffers (CUDA graphs), and their ops could not be found; {remedy}."
    return TraceNote("command_buffers", text, calls.unnamed_in_graphs)


def _version(plane: XPlane, stat: object) -> int | None:
    if stat is None:
        return None
    number = stat_number(stat)  # type: ignore[arg-type]
    if number is not None:
        return number
    text = stat_text(plane, stat)  # type: ignore[arg-type]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _framework(planes: list[XPlane], names: list[str]) -> str:
    """What the program computed with, by what only that framework records."""
    if any("jax_version" in named_stats(plane, plane.stats) for plane in planes):
        return "jax"
    for framework, pattern in (("pytorch", _PYTORCH), ("tensorflow", _TENSORFLOW), ("jax", _JAX)):
        if any(pattern.search(name) for name in names):
            return framework
    return ""
