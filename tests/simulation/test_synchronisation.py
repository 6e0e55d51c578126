"""Synchronising calls are found with the op and module that made them, and only those."""

from __future__ import annotations

from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.synchronisation import SyncKind, sync_groups

US = 1000


def _found(
    view: ProfileView, first: int | None = None, last: int | None = None
) -> list[tuple[str, str, str, str, int, int]]:
    """Call, kind, innermost op, outermost op with its module, calls, µs."""
    groups, strings = sync_groups(view, view.selection(first, last)), view.profile.strings

    def op(group: int) -> str:
        return f"{strings[view.groups.module[group]]}/{strings[view.groups.op_type[group]]}" if group >= 0 else ""

    return [
        (
            strings[groups.name[at]],
            SyncKind(int(groups.kind[at])).name.lower(),
            strings[groups.op[at]] if groups.op[at] >= 0 else "",
            op(int(groups.group[at])),
            int(groups.calls[at]),
            int(groups.time_ns[at]) // US,
        )
        for at in range(len(groups))
    ]


def test_an_item_shows_as_the_wait_inside_it(gpu_view: ProfileView) -> None:
    (wait,) = [row for row in _found(gpu_view) if row[1] == "wait"]
    assert wait[:5] == ("cudaStreamSynchronize", "wait", "aten::item", "/item", 3)
    assert [row[4] for row in _found(gpu_view, 1, 1) if row[1] == "wait"] == [1]


def test_asynchronous_copies_wait_only_where_the_memory_is_pageable(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 1000)
    trace.module("embed", 10, 200)
    trace.op("aten::to", 20, 100)
    trace.op("aten::copy_", 30, 80)
    trace.launch("Memcpy HtoD (Pageable -> Device)", 40, 60, 10)
    trace.op("aten::to", 120, 50)
    trace.launch("Memcpy HtoD (Pinned -> Device)", 130, 140, 10)
    assert _found(trace.view()) == [("cudaMemcpyAsync", "pageable_copy", "aten::copy_", "embed/to", 1, 2)]


def test_calls_of_cuda_hip_and_the_driver_are_known_and_asynchronous_ones_are_not_taken(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 1000)
    trace.launch("k", 5, 10, 10)
    names = ["cudaEventSynchronize", "hipDeviceSynchronize", "cuStreamSynchronize", "cudaMemcpy", "hipMemcpyWithStream"]
    for index, name in enumerate([*names, "cudaStreamWaitEvent", "cudaEventQuery", "cudaMemsetAsync"]):
        trace.runtime(20 + 20 * index, 10 - index, name=name)
    trace.runtime(400, 1, name="cudaStreamSynchronize_ptsz")
    assert [(row[0], row[1]) for row in _found(trace.view())] == [
        ("cudaEventSynchronize", "wait"),
        ("hipDeviceSynchronize", "wait"),
        ("cuStreamSynchronize", "wait"),
        ("cudaMemcpy", "copy"),
        ("hipMemcpyWithStream", "copy"),
        ("cudaStreamSynchronize_ptsz", "wait"),
    ]


def test_a_scalar_read_without_a_recorded_wait_counts_itself_and_one_on_the_cpu_does_not(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 1000)
    trace.op("aten::item", 10, 50)
    trace.op("aten::_local_scalar_dense", 12, 46)
    trace.launch("Memcpy DtoH (Device -> Pinned)", 20, 40, 5)
    trace.op("aten::item", 100, 5)
    trace.op("aten::_local_scalar_dense", 101, 3)
    assert _found(trace.view()) == [("aten::item", "scalar", "aten::item", "/item", 1, 50)]


def test_the_profilers_own_wait_is_left_out_and_the_users_is_kept(new_trace) -> None:
    """Without steps the whole recording is one iteration, the profiler's wait at its end included."""
    trace = new_trace()
    trace.op("aten::mm", 0, 20)
    trace.launch("k", 5, 10, 10)
    trace.runtime(30, 10, name="cudaDeviceSynchronize")
    trace.op("aten::mm", 50, 20)
    trace.launch("k", 55, 60, 10)
    trace.runtime(100, 30, name="cudaDeviceSynchronize")
    assert _found(trace.view()) == [("cudaDeviceSynchronize", "wait", "", "", 1, 10)]
