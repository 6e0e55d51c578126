"""Runs the passes over a Timeline and assembles their results into a Profile."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from tb_dlprof_plugin.analysis.attribution import attribute, launch_calls
from tb_dlprof_plugin.analysis.categories import time_categories, unrecorded_categories
from tb_dlprof_plugin.analysis.communication_table import build_communications
from tb_dlprof_plugin.analysis.compiled_kernels import (
    compiled_notes,
    compiled_table,
    fused_names,
    join_wrappers,
    modules_of,
)
from tb_dlprof_plugin.analysis.crossing_events import without_crossings
from tb_dlprof_plugin.analysis.direct_launches import adopt_direct_launches
from tb_dlprof_plugin.analysis.kernel_table import build_kernels, launch_contexts
from tb_dlprof_plugin.analysis.memory_table import build_memory
from tb_dlprof_plugin.analysis.module_paths import with_model_name, with_one_kind_of_module
from tb_dlprof_plugin.analysis.notes import notes_of
from tb_dlprof_plugin.analysis.op_table import build_ops
from tb_dlprof_plugin.analysis.optimizer_closures import with_steps_around_closures
from tb_dlprof_plugin.analysis.python_call_sites import call_places
from tb_dlprof_plugin.analysis.roles import Roles, assign_roles
from tb_dlprof_plugin.analysis.sound_values import with_driver_copies, with_sound_values
from tb_dlprof_plugin.analysis.steps import completion_windows, find_steps, without_unfinished_step
from tb_dlprof_plugin.analysis.system_info import complete_system, is_rocm
from tb_dlprof_plugin.analysis.tensor_activity import tensor_activity
from tb_dlprof_plugin.model.compiled_graph import CompiledGraph
from tb_dlprof_plugin.model.grouping import distinct
from tb_dlprof_plugin.model.profile import (
    Bools,
    CallKind,
    Calls,
    Ints,
    Iterations,
    KernelKind,
    Kernels,
    LaunchConfigs,
    Launches,
    Profile,
    Role,
    Source,
)
from tb_dlprof_plugin.model.run_facts import RunFacts, System
from tb_dlprof_plugin.model.timeline import StepMarks, Timeline
from tb_dlprof_plugin.names.gpu_generations import tensor_core_capability
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.options import DEFAULT, ReadOptions
from tb_dlprof_plugin.readers.registry import read_timelines
from tb_dlprof_plugin.readers.trace_names import rank_of_path
from tb_dlprof_plugin.version import __version__


def analyze_trace(
    trace_path: str | os.PathLike[str],
    *,
    facts: RunFacts | None = None,
    system: System | None = None,
    session: str = "trace",
    rank: int | None = None,
    cycle: int = 0,
    worker: str = "",
    options: ReadOptions = DEFAULT,
    progress: Callable[[float], None] | None = None,
    compiled_graphs: Sequence[CompiledGraph] = (),
) -> Profile:
    """The profile of a recording; of one that holds several ranks, that of ``rank``, else of the lowest.

    Args:
        trace_path: a file of any format that `tb_dlprof_plugin.readers.registry` knows.
        facts: what the hook read in the training process, if it ran.
        system: what it read from the machine; completed from the trace.
        session: names the training process within its run.
        rank: of the process; the trace's own, else 0, where None.
        cycle: which active window of the profiler's schedule this is.
        worker: the trace file's worker name.
        options: how the file is read.
        progress: called with the fraction read (0 to 1).
        compiled_graphs: what torch.compile made in the training process.

    Raises:
        TraceError: the file cannot be read or is not a trace; the message names it and says what to do.
    """
    timelines = read_timelines(trace_path, options, progress)
    timeline = timelines[0]
    if len(timelines) > 1 and rank is not None:
        ranks = ranks_of(timelines)
        if rank not in ranks:
            named = ", ".join(map(str, ranks))
            raise TraceError(f"{os.fspath(trace_path)} holds the ranks {named}, not {rank}; name one of them.")
        timeline = timelines[ranks.index(rank)]
    if compiled_graphs:
        timeline = dataclasses.replace(timeline, compiled_graphs=(*timeline.compiled_graphs, *compiled_graphs))
    made_by = _source(trace_path, timeline, session, rank if rank is not None else ranks_of(timelines)[0])
    source = dataclasses.replace(made_by, cycle=cycle, worker=worker)
    return build_profile(timeline, source, facts or RunFacts(), system or System())


def analyze_ranks(
    trace_path: str | os.PathLike[str],
    *,
    session: str = "trace",
    options: ReadOptions = DEFAULT,
    progress: Callable[[float], None] | None = None,
) -> list[Profile]:
    """The profiles of all ranks that a recording holds, in their order.

    Raises:
        TraceError: the file cannot be read, or no rank recorded anything that counts.
    """
    timelines = read_timelines(trace_path, options, progress)
    profiles: list[Profile] = []
    failed: TraceError | None = None
    for rank, timeline in zip(ranks_of(timelines), timelines, strict=True):
        source = _source(trace_path, timeline, session, rank)
        try:
            profiles.append(build_profile(timeline, source, RunFacts(), System()))
        except TraceError as error:
            failed = failed or error
    if failed is not None and not profiles:
        raise failed
    return profiles


def ranks_of(timelines: Sequence[Timeline]) -> list[int]:
    """A rank for each timeline of a file: its own, or its place in the file where any lacks one or two are equal.

    Where there is one, and it does not say its rank, it is that in the name of the file or of its directory.
    """
    own = [timeline.rank for timeline in timelines if timeline.rank is not None]
    if len(timelines) == 1 and not own and (named := rank_of_path(os.path.abspath(timelines[0].source))) is not None:
        return [named]
    if len(own) == len(timelines) and len(set(own)) == len(own):
        return own
    return list(range(len(timelines)))


def _source(trace_path: str | os.PathLike[str], timeline: Timeline, session: str, rank: int) -> Source:
    return Source(
        trace_events=timeline.events,
        repaired_events=timeline.repaired,
        session=session,
        rank=rank,
        cycle=0,
        worker="",
        trace_file=os.path.basename(os.fspath(trace_path)),
        created_unix_ns=time.time_ns(),
        plugin_version=__version__,
        format=timeline.format,
        framework=timeline.framework,
    )


def build_profile(timeline: Timeline, source: Source, facts: RunFacts, system: System) -> Profile:
    """The profile of a timeline. Appends to ``timeline.strings``, which becomes the profile's string table.

    Raises:
        TraceError: no op and no kernel was recorded.
    """
    timeline = with_one_kind_of_module(with_driver_copies(with_sound_values(timeline)))
    joined = join_wrappers(*without_crossings(with_steps_around_closures(timeline)))
    timeline, depth, parent = joined.timeline, joined.depth, joined.parent
    host, device = timeline.host, timeline.device
    facts = with_model_name(facts, timeline)
    system = complete_system(system, timeline)
    if facts.world_size is None and timeline.world_size is not None:
        facts = msgspec.structs.replace(facts, world_size=timeline.world_size)
    gpu_ids = tuple(distinct(device.device).tolist())
    capability = tensor_core_capability(system, gpu_ids)

    modules = modules_of(joined.kernels, timeline.strings)
    roles = assign_roles(timeline, parent, joined.kernel, modules, joined.repeats)
    adopted = adopt_direct_launches(timeline, roles, launch_calls(timeline), parent)
    roles = adopted.roles
    call, attribution = attribute(timeline, roles.top_call, adopted.by_time)
    ops, op_of_call = build_ops(
        timeline, adopted, capability if len(device) else None, joined.kernel, fused_names(joined.kernels)
    )
    contexts = launch_contexts(
        device.name, device.kind, call, parent, roles.kind == CallKind.OP, host.name, host.dtypes
    )
    kernels, kernel_of_launch = build_kernels(
        contexts, timeline.strings, timeline.input_dtypes, capability, is_rocm(timeline)
    )
    working = (roles.kind == CallKind.OP) & (roles.role != Role.DATALOADER)
    if not working.any() and not len(device):
        raise TraceError(
            f"{timeline.source} holds no op outside the DataLoader: no training step was recorded; "
            "let the loop run for more steps, or record earlier ones."
        )
    every_step = find_steps(timeline)
    steps = without_unfinished_step(every_step, host.start_ns[working])
    windows = completion_windows(timeline, steps, call, attribution)
    tensor_core = kernels.tensor_core[kernel_of_launch] if len(device) else np.zeros(0, dtype=np.int64)
    communicates = _communicates(timeline.strings, kernels)
    return Profile(
        source=source,
        base_time_unix_ns=timeline.base_time_unix_ns,
        strings=timeline.strings,
        system=system,
        facts=_with_job(facts, timeline),
        iterations=_iterations(timeline, steps, windows, roles, tensor_core, gpu_ids),
        ops=ops,
        calls=Calls(op_of_call, host.start_ns, host.duration_ns, depth, host.thread),
        kernels=kernels,
        launches=Launches(
            kernel=kernel_of_launch,
            call=call,
            start_ns=device.start_ns,
            duration_ns=device.duration_ns,
            device=device.device,
            stream=device.stream,
            config=device.config,
            bytes=device.bytes,
            attribution=attribution,
        ),
        launch_configs=_configs(timeline),
        notes=[
            *notes_of(timeline, steps.found_by, attribution, len(every_step.number) - len(steps.number), roles.kind),
            *compiled_notes(joined),
        ],
        memory=build_memory(timeline, parent),
        call_places=call_places(timeline),
        tensor_activity=tensor_activity(timeline, *windows, kernel_of_launch),
        input_shapes=timeline.input_shapes,
        input_dtypes=timeline.input_dtypes,
        communications=build_communications(timeline, call, parent, communicates[kernel_of_launch]),
        process_groups=timeline.process_groups,
        compiled_kernels=compiled_table(joined.kernels, timeline.strings),
    )


def _iterations(
    timeline: Timeline,
    steps: StepMarks,
    windows: tuple[Ints, Ints],
    roles: Roles,
    tensor_core: Ints,
    gpu_ids: tuple[int, ...],
) -> Iterations:
    device = timeline.device
    return Iterations(
        number=steps.number,
        start_ns=windows[0],
        stop_ns=windows[1],
        host_start_ns=steps.start_ns,
        host_stop_ns=steps.stop_ns,
        category_ns=time_categories(
            (timeline.host, roles.kind, roles.role), (device, device.kind, tensor_core), windows, gpu_ids
        ),
        gpu_ids=gpu_ids,
        found_by=steps.found_by,
        unrecorded_categories=unrecorded_categories(timeline, roles.role),
    )


def _communicates(strings: Sequence[str], kernels: Kernels) -> Bools:
    """Which kernels are communication."""
    names = [strings[family] == "communication" for family in kernels.family.tolist()]
    return np.array(names, dtype=np.bool_) & (kernels.kind == KernelKind.KERNEL)


def _with_job(facts: RunFacts, timeline: Timeline) -> RunFacts:
    """The facts, with what the trace says of the job and its compilations where the hook did not."""
    return msgspec.structs.replace(
        facts,
        compilations=facts.compilations or list(timeline.compilations),
        graph_breaks=facts.graph_breaks or list(timeline.graph_breaks),
        cudagraph_skips=facts.cudagraph_skips or list(timeline.cudagraph_skips),
        world_size=timeline.world_size if facts.world_size is None else facts.world_size,
        distributed_backend=facts.distributed_backend or timeline.backend or None,
    )


def _configs(timeline: Timeline) -> LaunchConfigs:
    configs = timeline.launch_configs
    missing = (-1, -1, -1)

    def column(values: list[int | None]) -> Ints:
        return np.array([-1 if value is None else value for value in values], dtype=np.int64)

    return LaunchConfigs(
        grid=np.array([c.grid or missing for c in configs], dtype=np.int64).reshape(-1, 3),
        block=np.array([c.block or missing for c in configs], dtype=np.int64).reshape(-1, 3),
        registers_per_thread=column([c.registers_per_thread for c in configs]),
        shared_memory_bytes=column([c.shared_memory_bytes for c in configs]),
        occupancy_percent=column([c.occupancy_percent for c in configs]),
    )
