"""Breakdowns of the step, the modules, the GPU's idle time and memory: their parts make up the whole."""

from __future__ import annotations

from fnmatch import fnmatch

import numpy as np
from invariants.conftest import Recording, selections
from invariants.properties import NotRecorded, Properties

from tb_dlprof_plugin.metrics.idle_gaps import idle_gaps
from tb_dlprof_plugin.metrics.iteration_pace import iteration_pace
from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.metrics.kernels import kernel_totals
from tb_dlprof_plugin.metrics.launches import launch_totals
from tb_dlprof_plugin.metrics.memory import DeviceMemory, recorded_devices
from tb_dlprof_plugin.metrics.module_tree import module_tree
from tb_dlprof_plugin.metrics.modules import module_totals
from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.metrics.step_idle import step_idle
from tb_dlprof_plugin.metrics.step_phases import parts_by_iteration, recorded_parts, step_parts
from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.synchronisation import sync_groups

PROPERTIES = Properties()
GPU_CATEGORIES = slice(0, 3)
FORWARD_UNKNOWN = {
    "*_events_export": "the file has no sequence numbers",
    "*/*_unavailable/*": "the file has no sequence numbers of backward nodes",
    "*/mixed_files/*": "the same",
}
"""Recordings whose forward pass is unknown, and why."""


# ---- step


@PROPERTIES.of_every_recording
def forward_backward_optimizer_and_the_rest_are_the_step(recording: Recording) -> None:
    iterations = recording.profile.iterations
    parts = parts_by_iteration(recording.view)
    assert (parts >= 0).all()
    assert (parts.sum(axis=2) == iterations.duration_ns[:, None]).all()
    for selection in selections(recording.view):
        wall = int(iterations.duration_ns[selection.first : selection.last + 1].sum())
        assert sum(part or 0 for part in recorded_parts(recording.view, selection).values()) == wall
        true = step_totals(recording.view, selection).wall_ns
        assert sum(part or 0 for part in step_parts(recording.view, selection).values()) == true


@PROPERTIES.seen_in("cuda_training", "torch_2_4_cpu_events_export")
def a_training_step_has_a_forward_and_a_backward_part(recording: Recording) -> None:
    view = recording.view
    parts = step_parts(view, view.selection())
    ran = recording.profile.ops.role[recording.profile.calls.op[view.call_iteration >= 0]]
    if not (ran == Role.BACKWARD).any():
        raise NotRecorded("no backward pass was recorded in the iterations")
    if any(fnmatch(recording.name, pattern) for pattern in FORWARD_UNKNOWN):
        assert parts[Role.FORWARD] is None
    else:
        assert parts[Role.FORWARD] > 0
    assert parts[Role.BACKWARD] > 0


# ---- modules


@PROPERTIES.seen_in("hook_amp_bf16", "lenet-amp-fp16")
def work_in_and_outside_of_modules_is_all_linked_gpu_work(recording: Recording) -> None:
    for selection in selections(recording.view):
        totals = module_totals(recording.view, selection)
        if totals is None:
            raise NotRecorded("no modules were recorded")
        ops = op_totals(recording.view, selection)
        for name in ("gpu_sum_ns", "kernel_calls", "op_calls", "eligible_ns", "tensor_core_ns"):
            of_ops = {"gpu_sum_ns": "gpu_ns", "op_calls": "calls"}.get(name, name)
            whole = getattr(totals.inside, name)[0] + getattr(totals.outside, name).sum()
            assert whole == getattr(ops, of_ops).sum(), name


@PROPERTIES.seen_in("hook_amp_bf16", "lenet-amp-fp16")
def a_module_is_its_own_part_and_the_modules_below(recording: Recording) -> None:
    view = recording.view
    totals, tree = module_totals(view, view.selection()), module_tree(view)
    if totals is None or tree is None:
        raise NotRecorded("no modules were recorded")
    below = np.zeros(len(tree), dtype=np.int64)
    np.add.at(below, tree.parent[1:], totals.inside.cpu.total[1:])
    assert (totals.inside.cpu.total == totals.own_cpu_ns + below).all()
    assert (totals.inside.cpu.total == totals.forward_cpu_ns + totals.backward_cpu_ns).all()
    assert (totals.inside.gpu.total <= totals.inside.gpu_sum_ns).all()
    assert (totals.inside.gpu.total[1:] <= totals.inside.gpu.total[tree.parent[1:]]).all()


# ---- idle time


@PROPERTIES.seen_in("cuda_training", "two_gpus")
def busy_time_and_gaps_make_up_each_iteration_of_each_gpu(recording: Recording) -> None:
    view, iterations = recording.view, recording.profile.iterations
    if not iterations.gpu_ids:
        raise NotRecorded("no GPU")
    gaps = idle_gaps(view, view.selection())
    idle = np.zeros_like(gaps.window_ns)
    np.add.at(idle, (gaps.iteration, gaps.gpu), gaps.duration_ns)
    assert (gaps.window_ns == iterations.duration_ns[:, None]).all()
    assert (gaps.busy_ns + idle == gaps.window_ns).all()
    assert (gaps.busy_ns == iterations.category_ns[:, :, GPU_CATEGORIES].sum(axis=2)).all()
    assert (gaps.activity_ns.sum(axis=1) == gaps.duration_ns).all()
    assert (gaps.activity_ns >= 0).all()
    pace = iteration_pace(view, view.selection())
    assert (pace.busy_ns + pace.idle_ns == pace.window_ns).all()
    assert (pace.starved_ns + pace.unknown_ns <= pace.idle_ns).all()


@PROPERTIES.seen_in("cuda_training", "two_gpus")
def the_idle_time_of_the_step_is_what_its_gpu_time_leaves(recording: Recording) -> None:
    view = recording.view
    if not recording.profile.iterations.gpu_ids:
        raise NotRecorded("no GPU")
    for selection in selections(view):
        idle, totals = step_idle(view, selection), step_totals(view, selection)
        assert (idle.activity_ns >= 0).all()
        assert (idle.kind_ns >= 0).all()
        assert (idle.activity_ns.sum(axis=1) == idle.idle_ns).all()
        assert (idle.kind_ns.sum(axis=1) == idle.idle_ns).all()
        # The mean over several GPUs is rounded.
        assert abs(int(idle.idle_ns.sum()) / len(idle.idle_ns) - (totals.gpu_idle_ns or 0)) <= 3


@PROPERTIES.of_every_recording
def delays_are_of_the_launches_of_the_kernels_page(recording: Recording) -> None:
    view = recording.view
    whole = launch_totals(view, view.selection())
    parts = [launch_totals(view, view.selection(i, i)) for i in range(len(recording.profile.iterations))]
    for name in ("calls", "delays", "delay_ns", "queued", "queue", "short", "call_ns"):
        assert (sum(getattr(part, name) for part in parts) == getattr(whole, name)).all(), name
    assert (whole.calls == kernel_totals(view, view.selection()).calls).all()
    assert (whole.delays <= whole.calls).all()


@PROPERTIES.of_every_recording
def waits_of_iterations_sum_to_those_of_their_range(recording: Recording) -> None:
    view = recording.view
    whole = sync_groups(view, view.selection())
    parts = [sync_groups(view, view.selection(i, i)) for i in range(len(recording.profile.iterations))]
    assert sum(int(part.calls.sum()) for part in parts) == whole.calls.sum()
    assert sum(int(part.time_ns.sum()) for part in parts) == whole.time_ns.sum()


# ---- memory


@PROPERTIES.seen_in("all_options", "torch_2_1_cpu_memory")
def categories_make_up_what_is_allocated(recording: Recording) -> None:
    for memory in _devices(recording.view):
        assert (memory.category_bytes.sum(axis=0) == memory.allocated).all()
        assert (np.delete(memory.category_bytes, 0, axis=0) >= 0).all() or memory.contradictions


@PROPERTIES.seen_in("all_options", "torch_1_9_cpu_memory")
def the_curve_follows_the_events(recording: Recording) -> None:
    for memory in _devices(recording.view):
        assert len(memory.allocated) == len(memory) + 1
        if not memory.has_totals:
            assert (np.diff(memory.allocated) == memory.delta).all()


@PROPERTIES.seen_in("torch_1_9_cpu_memory")
def without_addresses_the_curve_is_the_running_sum_of_the_events(recording: Recording) -> None:
    if any("Addr" in event or "Total Allocated" in event for event in recording.raw.memory):
        raise NotRecorded("addresses or totals were recorded")
    for memory in _devices(recording.view):
        assert (np.diff(memory.allocated) == memory.bytes).all()


@PROPERTIES.seen_in("all_options", "torch_2_1_cpu_memory")
def the_peak_is_the_most_that_was_allocated(recording: Recording) -> None:
    view = recording.view
    for memory in _devices(view):
        for selection in selections(view):
            window = memory.window(selection.first, selection.last)
            peak = memory.peak(window)
            assert peak.allocated == memory.allocated[window.first : window.last + 1].max()


def test_breakdowns(recording: Recording) -> None:
    PROPERTIES.assert_hold(recording)


def _devices(view: ProfileView) -> list[DeviceMemory]:
    devices = recorded_devices(view.profile)
    if not devices:
        raise NotRecorded("no memory was recorded")
    return [DeviceMemory(view, device) for device in devices]
