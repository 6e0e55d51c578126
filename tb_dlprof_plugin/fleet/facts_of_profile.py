"""The facts of a rank, from its profile."""

from __future__ import annotations

import dataclasses

import numpy as np

from tb_dlprof_plugin.fleet.calls_of_profile import CommunicationCalls, calls_on_cpu, calls_on_gpu
from tb_dlprof_plugin.fleet.dimensions import dimension_of, mesh_of
from tb_dlprof_plugin.fleet.gradients_of_profile import gradients_of
from tb_dlprof_plugin.fleet.paths_of_profile import RankGpuWork, paths_of, work_of
from tb_dlprof_plugin.fleet.rank_facts import (
    UNKNOWN,
    Collectives,
    Gradients,
    Group,
    KernelTimes,
    Operation,
    RankFacts,
    StepLength,
)
from tb_dlprof_plugin.fleet.steps_of_profile import cpu_work, kernel_times, kernels_on, steps_of
from tb_dlprof_plugin.fleet.world import is_world_size
from tb_dlprof_plugin.metrics.communication import exposed_ns, is_collective, other_work
from tb_dlprof_plugin.metrics.parallel_settings import parallel_settings
from tb_dlprof_plugin.model.intervals import Intervals, covered, merge, union
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers.trace_names import host_of_name
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.simulation.recorder_cost import unprofiled_share


def facts_of_profile(view: ProfileView) -> RankFacts:
    """What answers about a job need of this rank. What its recording does not say is UNKNOWN, and in the notes."""
    profile, settings = view.profile, parallel_settings(view)
    device = _device(view)
    groups = [Group(one.name, one.description, one.members) for one in profile.process_groups]
    strings = StringTable()
    if device is None:
        calls = calls_on_cpu(view, groups, strings)
        work = other = cpu_work(view)
    else:
        calls = calls_on_gpu(view, device, groups, strings)
        work, other = kernels_on(view, device), other_work(view, device)
    communication = _communication(view, device, calls)
    gpu_work = None if device is None else work_of(view, device, communication)
    stated = profile.facts.world_size
    world_size = stated if stated is not None and is_world_size(stated) else UNKNOWN
    tensor = settings.wrapper is None and settings.sums_activations
    groups = _with_dimensions(groups, calls, world_size, tensor)
    return RankFacts(
        rank=profile.source.rank,
        world_size=world_size,
        host=profile.system.hostname or host_of_name(profile.source.worker) or host_of_name(profile.source.trace_file),
        gpu=_gpu_name(view, device),
        device=UNKNOWN if device is None else device,
        base_ns=profile.base_time_unix_ns,
        framework=profile.source.framework,
        backend=profile.facts.distributed_backend or "",
        steps=steps_of(view, device, work, communication),
        step_length=_step_length(view),
        groups=tuple(groups),
        collectives=_collectives(view, calls, other, communication, gpu_work),
        kernels=kernel_times(view, device, communication) if device is not None else _no_kernels(),
        strings=tuple(strings.values),
        mesh=mesh_of(groups, profile.source.rank),
        notes=(),
        launch_share=unprofiled_share(view, view.selection()).expected,
        batch_size=profile.facts.batch_size or UNKNOWN,
        wrapper=settings.wrapper or "",
        gradients=Gradients() if gpu_work is None else gradients_of(view, gpu_work, calls),
        bucket_bytes=UNKNOWN if settings.ddp is None else settings.ddp.bucket_bytes or UNKNOWN,
        microbatches=settings.microbatches or UNKNOWN,
        chunks=settings.chunks or UNKNOWN,
    )


def _with_dimensions(groups: list[Group], calls: CommunicationCalls, world_size: int, tensor: bool) -> list[Group]:
    """The groups with their parallel dimensions; what runs in them is known now."""
    several = sum(len(group.members) > 1 for group in groups)
    point_to_point = np.isin(calls.operation, (Operation.SEND, Operation.RECEIVE))
    result = []
    for index, group in enumerate(groups):
        own = calls.group == index
        between_two = bool(own.any()) and int((own & point_to_point).sum()) * 2 > int(own.sum())
        dimension = dimension_of(group, world_size, between_two, several == 1, tensor)
        result.append(dataclasses.replace(group, dimension=dimension))
    return result


def _device(view: ProfileView) -> int | None:
    """The GPU that communicates most, else the first; None without one."""
    gpus, launches = view.profile.iterations.gpu_ids, view.profile.launches
    if not gpus:
        return None
    device = launches.device[is_collective(view)]
    return max(gpus, key=lambda gpu: (int((device == gpu).sum()), -gpu))


def _gpu_name(view: ProfileView, device: int | None) -> str:
    if device is None:
        return ""
    gpus = view.profile.system.gpus
    return next((gpu.name for gpu in gpus if gpu.id == device), gpus[0].name if gpus else "")


def _communication(view: ProfileView, device: int | None, calls: CommunicationCalls) -> Intervals:
    """When communication runs: of calls that no iteration launched, too."""
    if device is None:
        return union(calls.start_ns, calls.start_ns + calls.duration_ns)
    launches = view.profile.launches
    rows = is_collective(view) & (launches.device == device)
    return union(launches.start_ns[rows], launches.start_ns[rows] + launches.duration_ns[rows])


def _collectives(
    view: ProfileView, calls: CommunicationCalls, other: Intervals, communication: Intervals, work: RankGpuWork | None
) -> Collectives:
    """``work`` is what the GPU ran besides; None without one."""
    stop = calls.start_ns + calls.duration_ns
    if work is None:
        exposed = calls.duration_ns - covered(other, calls.start_ns, stop)
    else:
        exposed = exposed_ns(view, calls.launch, calls.start_ns)
    since = _since(view, calls)
    busy = merge(other, communication)
    return Collectives(
        iteration=calls.iteration,
        group=calls.group,
        operation=calls.operation,
        sequence=calls.sequence,
        bytes=calls.bytes,
        dtype=calls.dtype,
        peer=calls.peer,
        start_ns=calls.start_ns,
        duration_ns=calls.duration_ns,
        exposed_ns=exposed,
        work_ns=covered(other, since, calls.start_ns),
        idle_ns=calls.start_ns - since - covered(busy, since, calls.start_ns),
        launched_ns=_in_microseconds(calls),
        module=calls.module,
        stream=calls.stream,
        **({} if work is None else paths_of(view, work, calls, other, communication)),
    )


def _in_microseconds(calls: CommunicationCalls) -> Ints:
    """Launch times, whole microseconds before the start: more is not needed, and takes room."""
    ahead = (calls.start_ns - calls.launched_ns + 999) // 1000 * 1000
    return np.where(calls.launched_ns == UNKNOWN, UNKNOWN, calls.start_ns - ahead)


def _since(view: ProfileView, calls: CommunicationCalls) -> Ints:
    """For each call when the one before it of the same iteration ended, else when the iteration began; at most its own
    start."""
    if not len(calls.iteration):
        return calls.start_ns
    begin = view.profile.iterations.start_ns[calls.iteration]
    order = np.lexsort((calls.start_ns, calls.iteration))
    iteration = calls.iteration[order]
    stop = (calls.start_ns + calls.duration_ns)[order]
    first = np.flatnonzero(np.diff(iteration, prepend=-1))
    result = begin[order].copy()
    for at, end in zip(first.tolist(), [*first[1:].tolist(), len(order)][: len(first)], strict=True):
        reached = np.maximum.accumulate(stop[at:end])
        result[at + 1 : end] = reached[:-1]
    since = np.empty_like(result)
    since[order] = result
    return np.minimum(since, calls.start_ns)


def _step_length(view: ProfileView) -> StepLength:
    found = step_estimate(view, view.selection())
    return StepLength(found.ns / 1e6, found.low_ns / 1e6, found.high_ns / 1e6, found.source)


def _no_kernels() -> KernelTimes:
    return KernelTimes(*(np.zeros(0, dtype=np.int64) for _ in range(3)))
