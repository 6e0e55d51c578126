"""What must add up, adds up to the nanosecond, in every recording there is."""

from __future__ import annotations

import dataclasses
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from invariants.conftest import Recording, selections
from invariants.properties import NotRecorded, Properties
from invariants.raw import GPU_KINDS, LAUNCH_CATEGORIES, Event, RawTrace, device_of, disjoint, union_ns

from tb_dlprof_plugin.metrics.iterations import category_sums, step_totals
from tb_dlprof_plugin.metrics.kernels import coverage, kernel_totals, time_split
from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.metrics.step_account import iterations_with_recorder
from tb_dlprof_plugin.metrics.tensor_cores import tensor_core_totals
from tb_dlprof_plugin.model.profile import Attribution, CallKind, KernelKind, Profile
from tb_dlprof_plugin.model.tree import any_in_subtree
from tb_dlprof_plugin.pages.kernels import kernels_page
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.pages.work_detail import work_detail
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.codec import decode, encode
from tb_dlprof_plugin.store.run_ref import RunRef

PROPERTIES = Properties()
REF = RunRef("run", "trace", 0, 0)
REPAIRED_OR_LOST = ("negative_duration", "absurd_time", "events_lost", "cut_short", "gzip_cut", "gzip_damaged")
OPS_IN_DETAIL = 25
LAUNCHED_OUTSIDE_OPS = {
    "data_parallel": "torch records no ops in the replicas' threads",
    "two_streams": "torch.cuda._sleep() is no op",
}
"""Recordings in which the user's code launches kernels outside every op."""


# ---- time


@PROPERTIES.of_every_recording
def the_seven_categories_sum_to_the_wall_time_of_each_iteration_and_gpu(recording: Recording) -> None:
    iterations = recording.profile.iterations
    assert (iterations.category_ns >= 0).all()
    wall = np.broadcast_to(iterations.duration_ns[:, None], iterations.category_ns.shape[:2])
    assert (iterations.category_ns.sum(axis=2) == wall).all()


@PROPERTIES.of_every_recording
def the_categories_of_a_range_sum_to_its_wall_time(recording: Recording) -> None:
    for selection in selections(recording.view):
        totals = step_totals(recording.view, selection)
        assert sum(value or 0 for value in totals.category_ns.values()) == totals.wall_ns
        assert all(value is None or value >= 0 for value in totals.category_ns.values())
        assert (totals.gpu_utilization or 0) <= 100
        recorded = category_sums(recording.view, slice(selection.first, selection.last + 1))
        assert sum(value or 0 for value in recorded.values()) == totals.recorded_wall_ns
        assert totals.recorder_ns == max(totals.recorded_wall_ns - totals.wall_ns, 0)


@PROPERTIES.of_every_recording
def iterations_with_the_recorders_part_sum_to_what_was_recorded(recording: Recording) -> None:
    view = recording.view
    times = iterations_with_recorder(view, view.selection())
    assert (times >= 0).all()
    assert (times.sum(axis=1) == recording.profile.iterations.duration_ns).all()


@PROPERTIES.of_every_recording
def iterations_follow_each_other_without_overlap(recording: Recording) -> None:
    iterations = recording.profile.iterations
    for start, stop in (
        (iterations.start_ns, iterations.stop_ns),
        (iterations.host_start_ns, iterations.host_stop_ns),
    ):
        assert (stop >= start).all()
        assert (start[1:] >= stop[:-1]).all()


@PROPERTIES.seen_in("cuda_training", "two_gpus")
def the_gpu_is_busy_while_anything_in_the_file_runs_on_it(recording: Recording) -> None:
    profile, raw = recording.profile, recording.raw
    to_file = profile.base_time_unix_ns - raw.base_ns
    for column, gpu in enumerate(profile.iterations.gpu_ids):
        here = [event for event in raw.gpu() if device_of(event) == gpu]
        kernels = [event.interval for event in here if GPU_KINDS[event.cat] == "kernel"]
        for index in range(len(profile.iterations)):
            window = (
                int(profile.iterations.start_ns[index]) + to_file,
                int(profile.iterations.stop_ns[index]) + to_file,
            )
            tensor_core, other, memory = profile.iterations.category_ns[index, column, :3].tolist()
            assert tensor_core + other == union_ns(kernels, window)
            assert tensor_core + other + memory == union_ns((event.interval for event in here), window)


# ---- gpu activities


@PROPERTIES.seen_in("cuda_training", "two_streams")
def each_of_the_file_is_one_launch_of_its_duration(recording: Recording) -> None:
    profile = recording.profile
    if recording.has_note(*REPAIRED_OR_LOST):
        raise NotRecorded("events were repaired or lost")
    kind = profile.kernels.kind[profile.launches.kernel]
    found = Counter(
        zip(
            [KernelKind(value).name.lower() for value in kind.tolist()],
            profile.launches.duration_ns.tolist(),
            strict=True,
        )
    )
    assert found == Counter((GPU_KINDS[event.cat], event.duration_ns) for event in recording.raw.gpu())


@PROPERTIES.seen_in("cuda_training", "cuda_only")
def linked_orphan_and_unattributed_make_up_all_gpu_time_of_the_file(recording: Recording) -> None:
    if recording.has_note(*REPAIRED_OR_LOST):
        raise NotRecorded("events were repaired or lost")
    found = coverage(recording.view)
    whole = sum(event.duration_ns for event in recording.raw.gpu())
    assert found.linked_ns + found.orphan_ns + found.unattributed_ns == found.total_ns == whole
    assert 0 <= found.outside_ns <= found.linked_ns


@PROPERTIES.seen_in("cuda_training", "two_streams")
def kernels_whose_launch_is_in_the_file_belong_to_ops(recording: Recording) -> None:
    """99 % of their time, but where the user's code launches outside of ops."""
    if not recording.profile.has_gpu or not any(e.cat in ("cpu_op", "Operator") for e in recording.raw.host()):
        raise NotRecorded("no GPU, or no ops recorded")
    launched, attributed = launched_and_attributed(recording)
    if not launched:
        raise NotRecorded("no launch is in the file")
    assert (attributed >= 0.99 * launched) == (recording.name not in LAUNCHED_OUTSIDE_OPS)


@PROPERTIES.seen_in("cuda_training", "data_parallel")
def a_kernel_launched_within_an_op_by_the_clock_is_linked(recording: Recording) -> None:
    profile = recording.profile
    expected = launched_within_ops(recording.raw)
    linked = profile.launches.duration_ns[profile.launches.attribution == Attribution.LINKED]
    assert not expected - Counter(linked.tolist())


@PROPERTIES.seen_in("cuda_training", "threads")
def orphans_have_no_launch_in_the_file(recording: Recording) -> None:
    known = recording.raw.launched_correlations()
    with_launch = Counter(event.duration_ns for event in recording.raw.gpu() if event.args.get("correlation") in known)
    profile = recording.profile
    linked_or_not = profile.launches.duration_ns[profile.launches.attribution != Attribution.ORPHAN]
    assert not with_launch - Counter(linked_or_not.tolist())


# ---- calls


@PROPERTIES.seen_in("cuda_training", "torch_1_9_cpu_memory", "torch_1_12_cpu_stack")
def each_host_event_of_the_file_is_one_call(recording: Recording) -> None:
    if recording.has_note(*REPAIRED_OR_LOST):
        raise NotRecorded("events were repaired or lost")
    events = [*recording.raw.host(), *module_frames(recording.raw)]
    expected = Counter(event.duration_ns for event in events)
    assert Counter(recording.profile.calls.duration_ns.tolist()) == expected


@PROPERTIES.of_every_recording
def calls_side_by_side_do_not_overlap(recording: Recording) -> None:
    """So each moment of a thread is one call's own. Files in whole µs are off by one here and there.

    The profiler's own overhead, which it writes to a thread of its own, does overlap.
    """
    calls = recording.profile.calls
    overlap_ns = _overlap_of_siblings(recording.view)
    assert overlap_ns == 0 or (is_in_whole_us(recording.profile) and overlap_ns < 1000 * len(calls))


@PROPERTIES.of_every_recording
def no_call_has_a_negative_self_time(recording: Recording) -> None:
    shortest = recording.view.call_self_ns.min(initial=0)
    assert shortest >= 0 or (is_in_whole_us(recording.profile) and shortest > -100_000)


@PROPERTIES.of_every_recording
def self_times_of_a_thread_sum_to_its_outermost_calls(recording: Recording) -> None:
    calls, self_ns = recording.profile.calls, recording.view.call_self_ns
    for thread in np.unique(calls.thread):
        here = calls.thread == thread
        outermost = here & (calls.depth == 0)
        assert self_ns[here].sum() == calls.duration_ns[outermost].sum()


@PROPERTIES.seen_in("cuda_training", "torch_2_8_cpu_training")
def self_times_sum_to_the_time_that_the_file_s_events_cover(recording: Recording) -> None:
    raw = recording.raw
    if recording.has_note(*REPAIRED_OR_LOST) or is_in_whole_us(recording.profile):
        raise NotRecorded("events were repaired or lost, or times are rounded")
    threads: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for event in [*raw.host(), *module_frames(raw)]:
        if event.cat != "overhead":
            threads.setdefault(event.thread, []).append(event.interval)
    covered = sum(union_ns(intervals) for intervals in threads.values())
    calls = recording.profile.calls
    of_the_profiler = (calls.depth == 0) & (recording.profile.ops.kind[calls.op] == CallKind.OVERHEAD)
    assert recording.view.call_self_ns.sum() - calls.duration_ns[of_the_profiler].sum() == covered


# ---- tables


@PROPERTIES.seen_in("cuda_training", "mlp-fp32")
def the_rows_of_the_ops_page_sum_to_the_linked_time_of_the_range(recording: Recording) -> None:
    launches = recording.profile.launches
    if not recording.profile.has_gpu:
        raise NotRecorded("no GPU")
    for selection in selections(recording.view):
        page = ops_page(recording.view, REF, selection)
        linked = (launches.attribution == Attribution.LINKED) & recording.view.selected_launches(selection)
        assert sum(row.gpu_ns or 0 for row in page.rows) == launches.duration_ns[linked].sum()
        assert sum(row.kernel_calls for row in page.rows) == linked.sum()


@PROPERTIES.of_every_recording
def the_rows_of_the_ops_page_are_the_outermost_ops_of_the_range(recording: Recording) -> None:
    view, calls, ops = recording.view, recording.profile.calls, recording.profile.ops
    for selection in selections(view):
        rows = ops_page(view, REF, selection).rows
        outermost = ops.top[calls.op] & view.selected_calls(selection)
        assert len({row.id for row in rows}) == len(rows)
        assert sum(row.cpu_total_ns for row in rows) == calls.duration_ns[outermost].sum()
        assert sum(row.calls for row in rows) == (outermost & ~ops.continuation[calls.op]).sum()


@PROPERTIES.of_every_recording
def an_outermost_op_has_no_other_around_it(recording: Recording) -> None:
    view, calls = recording.view, recording.profile.calls
    outermost = recording.profile.ops.top[calls.op]
    parent = view.call_parent[outermost]
    holding = np.zeros(len(calls), dtype=np.bool_)
    holding[parent[parent >= 0]] = True
    assert not (any_in_subtree(holding, view.call_end) & outermost).any()


@PROPERTIES.of_every_recording
def the_rows_of_the_kernels_page_sum_to_all_that_the_range_launched(recording: Recording) -> None:
    view, launches = recording.view, recording.profile.launches
    for selection in selections(view):
        page = kernels_page(view, REF, selection)
        rows = view.selected_launches(selection)
        assert len({row.id for row in page.rows}) == len(page.rows)
        assert sum(row.total_ns for row in page.rows) == launches.duration_ns[rows].sum()
        assert sum(row.calls for row in page.rows) == rows.sum()
        assert sum(family.value_ns for family in page.by_family) == launches.duration_ns[rows].sum()


@PROPERTIES.of_every_recording
def what_no_range_launched_is_orphan_unattributed_or_outside(recording: Recording) -> None:
    view, launches = recording.view, recording.profile.launches
    found = coverage(view)
    in_range = view.selected_launches(view.selection())
    shown = int(launches.duration_ns[in_range].sum())
    without_op = int(launches.duration_ns[in_range & (launches.attribution != Attribution.LINKED)].sum())
    assert found.total_ns - shown == found.orphan_ns + found.unattributed_ns + found.outside_ns - without_op


@PROPERTIES.of_every_recording
def an_op_in_detail_sums_to_its_row(recording: Recording) -> None:
    view, selection = recording.view, recording.view.selection()
    for row in ops_page(view, REF, selection).rows[:OPS_IN_DETAIL]:
        detail = work_detail(view, REF, selection, "op", row.id)
        gpu_ns = row.gpu_ns or 0
        assert sum(item.total_ns for item in detail.kernels) == gpu_ns
        assert sum(item.calls for item in detail.kernels) == row.kernel_calls
        assert sum(item.gpu_ns or 0 for item in detail.shapes) == gpu_ns
        assert sum(item.gpu_ns or 0 for item in detail.iterations) == gpu_ns
        assert sum(item.cpu_total_ns for item in detail.shapes) == row.cpu_total_ns
        assert sum(item.cpu_total_ns for item in detail.iterations) == row.cpu_total_ns
        assert sum(item.calls for item in detail.iterations) == row.calls


@PROPERTIES.of_every_recording
def kernel_time_by_tensor_core_use_sums_to_the_kernels_page(recording: Recording) -> None:
    for selection in selections(recording.view):
        split = time_split(recording.view, selection)
        whole = int(kernel_totals(recording.view, selection).total_ns.sum())
        assert split.kernel_ns + split.memory_ns == whole


@PROPERTIES.of_every_recording
def eligible_kernel_time_is_using_not_using_or_unknown(recording: Recording) -> None:
    for selection in selections(recording.view):
        ops = op_totals(recording.view, selection)
        totals = tensor_core_totals(recording.view, selection)
        assert totals.using_ns + totals.not_using_ns + totals.unknown_ns == totals.eligible_ns
        assert (ops.eligible_ns <= ops.gpu_ns).all()


# ---- ranges


@PROPERTIES.of_every_recording
def the_totals_of_iterations_sum_to_those_of_their_range(recording: Recording) -> None:
    view = recording.view
    tables: tuple[Callable[[ProfileView, Selection], object], ...] = (op_totals, kernel_totals)
    for table in tables:
        for name in _sums_of(table(view, view.selection())):
            parts: list[npt.NDArray[np.int64]] = [
                getattr(table(view, view.selection(index, index)), name)
                for index in range(len(recording.profile.iterations))
            ]
            assert (sum(parts) == getattr(table(view, view.selection()), name)).all(), name


@PROPERTIES.of_every_recording
def the_time_of_iterations_sums_to_that_of_their_range(recording: Recording) -> None:
    view, count = recording.view, len(recording.profile.iterations)
    whole = step_totals(view, view.selection())
    parts = [step_totals(view, view.selection(index, index)) for index in range(count)]
    assert sum(part.recorded_wall_ns for part in parts) == whole.recorded_wall_ns
    # A mean over several GPUs is rounded once an iteration, and once for the range.
    rounding = count if len(recording.profile.iterations.gpu_ids) > 1 else 0
    for name, value in category_sums(view, slice(None)).items():
        off = abs(sum(category_sums(view, slice(i, i + 1))[name] or 0 for i in range(count)) - (value or 0))
        assert off <= rounding * (7 if name == "other" else 1), name


# ---- memory


@PROPERTIES.seen_in("all_options", "torch_1_9_cpu_memory")
def each_allocation_and_free_of_the_file_is_kept(recording: Recording) -> None:
    memory = recording.profile.memory
    expected = Counter(int(event["Bytes"]) for event in recording.raw.memory if "Bytes" in event)
    assert Counter(memory.bytes.tolist()) == expected


@PROPERTIES.of_every_recording
def a_free_returns_what_its_allocation_took(recording: Recording) -> None:
    memory = recording.profile.memory
    rows = np.flatnonzero(memory.partner >= 0)
    assert (memory.partner[memory.partner[rows]] == rows).all()
    assert (memory.bytes[rows] == -memory.bytes[memory.partner[rows]]).all()
    assert (memory.device[rows] == memory.device[memory.partner[rows]]).all()


# ---- storage


@PROPERTIES.of_every_recording
def a_profile_survives_its_stored_form(recording: Recording) -> None:
    profile = recording.profile
    again = decode(encode(profile))
    for field in dataclasses.fields(profile):
        before, after = getattr(profile, field.name), getattr(again, field.name)
        _assert_same(before, after, field.name)


def test_accounts(recording: Recording) -> None:
    PROPERTIES.assert_hold(recording)


def launched_and_attributed(recording: Recording) -> tuple[int, int]:
    """Time (ns) of kernels whose launch call is in the file, and how much of it belongs to ops."""
    known = recording.raw.launched_correlations()
    kernels = [event for event in recording.raw.gpu() if GPU_KINDS[event.cat] == "kernel"]
    launched = [event for event in kernels if event.args.get("correlation") in known]
    profile = recording.profile
    of_profile = Counter(_kernels_in_ops(recording))
    to_file = profile.base_time_unix_ns - recording.raw.base_ns
    attributed = 0
    for event in launched:
        key = (event.start_ns - to_file, event.duration_ns)
        if of_profile[key]:
            of_profile[key] -= 1
            attributed += event.duration_ns
    return sum(map(_duration, launched)), attributed


def launched_within_ops(raw: RawTrace) -> Counter[int]:
    """Durations of the GPU activities whose launch call starts within an op of its thread."""
    starts: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for event in raw.events:
        if event.cat in ("cpu_op", "Operator"):
            starts.setdefault(event.thread, []).append(event.interval)
    outermost = {thread: list(disjoint(intervals)) for thread, intervals in starts.items()}

    def in_op(call: Event) -> bool:
        intervals = outermost.get(call.thread, [])
        index = bisect_right(intervals, (call.start_ns, sys.maxsize)) - 1
        return index >= 0 and call.start_ns < intervals[index][1]

    calls = [event for event in raw.events if event.cat in LAUNCH_CATEGORIES]
    inside = {call.args.get("correlation") for call in calls if in_op(call)} - {None, 0}
    return Counter(event.duration_ns for event in raw.gpu() if event.args.get("correlation") in inside)


def _kernels_in_ops(recording: Recording) -> list[tuple[int, int]]:
    launches, kernels = recording.profile.launches, recording.profile.kernels
    rows = (launches.attribution == Attribution.LINKED) & (recording.view.launch_group >= 0)
    rows &= kernels.kind[launches.kernel] == KernelKind.KERNEL
    return list(zip(launches.start_ns[rows].tolist(), launches.duration_ns[rows].tolist(), strict=True))


def _duration(event: Event) -> int:
    return event.duration_ns


def is_in_whole_us(profile: Profile) -> bool:
    """Whether the file's times have no digits behind the microsecond: as torch wrote them up to 2.3."""
    return not (profile.calls.duration_ns % 1000).any()


def module_frames(raw: RawTrace) -> list[Event]:
    """The Python views that become calls."""
    return [e for e in raw.events if e.cat == "python_function" and e.name.startswith("nn.Module: ")]


def _overlap_of_siblings(view: ProfileView) -> int:
    """Time (ns) in which calls with the same parent overlap: of each group what it has more than it covers."""
    calls = view.profile.calls
    overhead = view.profile.ops.kind[calls.op] == CallKind.OVERHEAD
    families: dict[tuple[int, int], list[tuple[int, int]]] = {}
    columns = (calls.thread, view.call_parent, calls.start_ns, calls.duration_ns)
    for thread, parent, start, length in np.stack(columns, axis=1)[~overhead].tolist():
        families.setdefault((thread, parent), []).append((start, start + length))
    return sum(sum(stop - start for start, stop in family) - union_ns(family) for family in families.values())


def _sums_of(table: object) -> list[str]:
    """The columns of a table of totals that add up over iterations."""
    names = [field.name for field in dataclasses.fields(table)]  # type: ignore[arg-type]
    return [name for name in names if name not in ("min_ns", "max_ns", "eligible")]


def _assert_same(before: object, after: object, what: str) -> None:
    if isinstance(before, np.ndarray):
        assert isinstance(after, np.ndarray), what
        assert before.shape == after.shape, what
        assert np.array_equal(before, after), what
    elif dataclasses.is_dataclass(before):
        for column in dataclasses.fields(before):
            _assert_same(getattr(before, column.name), getattr(after, column.name), f"{what}.{column.name}")
    else:
        assert before == after, what
