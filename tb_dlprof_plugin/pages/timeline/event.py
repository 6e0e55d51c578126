"""One event of the timeline in full: its op, its launch, what is around it."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.compiled_code import compiled_kernel_of_call
from tb_dlprof_plugin.metrics.idle_gaps import idle_gaps
from tb_dlprof_plugin.metrics.launches import launch_columns
from tb_dlprof_plugin.model.formatting import dtypes_text, shapes_text
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.common import ROLES, KernelText, OpText, Role, Slice, Verdict
from tb_dlprof_plugin.pages.compiled import compiled_launch
from tb_dlprof_plugin.pages.idle_causes import DEFINITIONS, IdleActivity, activity_rows, cause_slices
from tb_dlprof_plugin.pages.kernels import launch_shape
from tb_dlprof_plugin.pages.launches import gap_kind_label
from tb_dlprof_plugin.pages.timeline.event_lookup import TimelineSpot, find, spot, spots_of
from tb_dlprof_plugin.pages.timeline.events import TimelineEvents, timeline_events
from tb_dlprof_plugin.pages.timeline.iteration import IterationOption, one_iteration
from tb_dlprof_plugin.pages.timeline.kinds import call_label
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef


class TimelineLaunch(msgspec.Struct, frozen=True):
    """Launch of one GPU activity, as on the Launches page; None if it was not recorded.

    ``call`` is the launching CUDA call (or the op, where only that is known), ``delay_ns`` the time from its end to the
    activity's start, ``queue`` the amount of waiting work of the stream, including this one. ``early``: it began before
    the call returned; ``clock_disagrees``: before the call began.
    """

    call: TimelineSpot | None
    call_ns: int | None
    delay_ns: int | None
    queue: int | None
    early: bool
    clock_disagrees: bool


class TimelineGpuWork(msgspec.Struct, frozen=True):
    """Details of a kernel, copy or set; None or "" if not recorded."""

    kernel_id: str
    kind: str
    tensor_core: Verdict
    precision: str
    grid: str
    block: str
    registers_per_thread: int | None
    shared_memory_bytes: int | None
    occupancy_percent: int | None
    bytes: int | None
    bytes_per_second: float | None
    launch: TimelineLaunch


class TimelineGap(msgspec.Struct, frozen=True):
    """An idle gap by cause and, in detail, by what the CPU did, and the work that ended it (None where the iteration
    did). ``definitions`` are those of the causes, by key; ``launched`` says when that work was launched, as on the
    Launches page."""

    causes: list[Slice]
    activities: list[IdleActivity]
    definitions: dict[str, str]
    launched: str
    ended_by: TimelineSpot | None


class TimelineCompiled(msgspec.Struct, frozen=True):
    """What a launch of torch.compile's wrapper computes; "" or None where it is not known.

    ``bytes`` is an estimate by its arguments; ``bytes_per_second`` and ``bandwidth_percent`` follow from it, for a
    generated kernel. ``shared``: it computes ops of several modules.
    """

    kernel: str
    ops: str
    places: str
    modules: str
    shared: bool
    bytes: int | None
    bytes_per_second: float | None
    bandwidth_percent: float | None


class TimelineEvent(msgspec.Struct, frozen=True):
    """``around`` are the calls around it, the outermost first: of GPU work those around its launching call, that call
    being the last. ``launched`` is the GPU work of a call and of all calls in it: the first ones of
    ``launched_total``, which take ``launched_ns`` together. ``iteration`` is the number of the one that it belongs to.
    """

    ref: RunRef
    spot: TimelineSpot
    name: str
    track: str
    iteration: int | None
    previous: TimelineSpot | None
    next: TimelineSpot | None
    inside: TimelineSpot | None = None
    around: list[TimelineSpot] = []
    op: str = ""
    op_id: str = ""
    module: str = ""
    role: Role = "other"
    shapes: str = ""
    dtypes: str = ""
    self_ns: int | None = None
    launched: list[TimelineSpot] = []
    launched_total: int = 0
    launched_ns: int = 0
    gpu: TimelineGpuWork | None = None
    gap: TimelineGap | None = None
    compiled: TimelineCompiled | None = None


_LAUNCHED = 100


def timeline_event(
    view: ProfileView,
    ref: RunRef,
    selection: Selection,
    iteration: IterationOption,
    id: Annotated[str, Option("Id of an event.")],
) -> TimelineEvent:
    """The event ``id`` of one iteration's window.

    Raises:
        KeyError: the window has no such event.
        ValueError: there is no such iteration.
    """
    shown = one_iteration(view, selection, iteration)
    events = timeline_events(view, shown)
    at = find(events, id)
    row, source = int(events.row[at]), events.tracks[int(events.track[at])].source
    same_lane = np.flatnonzero((events.track == events.track[at]) & (events.level == events.level[at]))
    place = int(np.searchsorted(same_lane, at))
    basis = TimelineEvent(
        ref=ref,
        spot=spot(events, at),
        name=events.labels[int(events.name[at])],
        track=events.tracks[int(events.track[at])].label,
        iteration=_number(view, shown.first),
        previous=spot(events, int(same_lane[place - 1])) if place else None,
        next=spot(events, int(same_lane[place + 1])) if place + 1 < len(same_lane) else None,
    )
    if source == "c":
        return _of_call(view, events, basis, row)
    if source == "g":
        return _of_launch(view, events, basis, row)
    if source == "i":
        return _of_gap(view, shown, events, basis, row)
    return basis


def _of_call(view: ProfileView, events: TimelineEvents, basis: TimelineEvent, row: int) -> TimelineEvent:
    profile = view.profile
    calls, ops, strings = profile.calls, profile.ops, profile.strings
    op = int(calls.op[row])
    end = _subtree_end(view, row)
    launched = np.flatnonzero((profile.launches.call >= row) & (profile.launches.call < end))
    inner = spots_of(view, events, "c", np.array([row + 1])) if end > row + 1 else []
    name = call_label(view, op) if ops.kind[op] == CallKind.MODULE else strings[ops.name[op]]
    return msgspec.structs.replace(
        basis,
        name=name,
        iteration=_number(view, int(view.call_iteration[row])),
        inside=next((one for one in inner if one.track >= 0), None),
        around=_around(view, events, int(view.call_parent[row])),
        shapes=shapes_text(view.profile.shapes_of(op)),
        dtypes=dtypes_text(view.profile.dtypes_of(op)),
        self_ns=int(view.call_self_ns[row]),
        compiled=_compiled(view, row, int(profile.launches.duration_ns[launched].sum())),
        launched=spots_of(view, events, "g", launched[:_LAUNCHED]),
        launched_total=len(launched),
        launched_ns=int(profile.launches.duration_ns[launched].sum()),
        role=ROLES[int(ops.role[op])],
        **_op(view, int(view.call_group[row]), strings[ops.module[op]]),
    )


def _of_launch(view: ProfileView, events: TimelineEvents, basis: TimelineEvent, row: int) -> TimelineEvent:
    profile = view.profile
    launches, configs, strings = profile.launches, profile.launch_configs, profile.strings
    text, config, call = KernelText(view, int(launches.kernel[row])), int(launches.config[row]), int(launches.call[row])
    moved, time = _known(launches.bytes[row]), int(launches.duration_ns[row])
    around = _around(view, events, call)
    role = ROLES[int(profile.ops.role[profile.calls.op[call]])] if call >= 0 else "other"
    module = strings[profile.ops.module[profile.calls.op[call]]] if call >= 0 else ""
    return msgspec.structs.replace(
        basis,
        name=text.name,
        iteration=_number(view, int(view.launch_iteration[row])),
        around=around,
        role=role,
        gpu=TimelineGpuWork(
            kernel_id=text.id,
            kind={"memcpy": "copy", "memset": "set"}.get(text.kind, text.kind),
            tensor_core=text.tensor_core,
            precision=text.precision,
            **launch_shape(profile, config),
            # Kineto writes 0 without an estimate.
            occupancy_percent=_known(configs.occupancy_percent[config]) or None,
            bytes=moved,
            bytes_per_second=moved * 1e9 / time if moved is not None and time else None,
            launch=_launch(view, around, row),
        ),
        compiled=_compiled(view, call, time) if call >= 0 else None,
        **_op(view, int(view.launch_group[row]), module),
    )


def _compiled(view: ProfileView, call: int, time_ns: int) -> TimelineCompiled | None:
    """Of the launch of compiled code that a call is of; ``time_ns`` is that of its kernels."""
    row = int(compiled_kernel_of_call(view)[call])
    if row < 0:
        return None
    return struct_from(TimelineCompiled, compiled_launch(view, row, 1, time_ns))


def _launch(view: ProfileView, around: list[TimelineSpot], row: int) -> TimelineLaunch:
    columns = launch_columns(view, view.selection())
    return TimelineLaunch(
        call=around[-1] if around else None,
        call_ns=_known(columns.call_ns[row]),
        delay_ns=_known(columns.delay_ns[row]),
        queue=_known(columns.queue[row]),
        early=bool(columns.early[row]),
        clock_disagrees=bool(columns.clock[row]),
    )


def _of_gap(view: ProfileView, one: Selection, events: TimelineEvents, basis: TimelineEvent, row: int) -> TimelineEvent:
    gaps = idle_gaps(view, one)
    following = int(gaps.next[row])
    ended_by = spots_of(view, events, "g", np.array([following]))[0] if following >= 0 else None
    times = gaps.activity_ns[row]
    op = _op(view, int(view.launch_group[following]) if following >= 0 else -1, "")
    gap = TimelineGap(
        causes=[part for part in cause_slices(view, times) if part.value_ns],
        activities=activity_rows(view, times),
        definitions={str(cause): definition for cause, definition in DEFINITIONS.items()},
        launched=gap_kind_label(int(gaps.kind[row])),
        ended_by=ended_by,
    )
    return msgspec.structs.replace(basis, gap=gap, **op)


def _around(view: ProfileView, events: TimelineEvents, call: int) -> list[TimelineSpot]:
    """``call`` and the calls around it, the outermost first; none for -1."""
    rows: list[int] = []
    while call >= 0 and len(rows) < _LAUNCHED:
        rows.append(call)
        call = int(view.call_parent[call])
    return spots_of(view, events, "c", np.array(rows[::-1], dtype=np.int64))


def _subtree_end(view: ProfileView, row: int) -> int:
    """The row after the calls inside a call; calls are sorted by thread, parents first."""
    depth = view.profile.calls.depth
    out = depth[row + 1 :] <= depth[row]
    return row + 1 + (int(np.argmax(out)) if out.any() else len(out))


def _op(view: ProfileView, group: int, module: str) -> dict[str, str]:
    if group < 0:
        return {"op": "", "op_id": "", "module": module}
    op = OpText(view, group)
    return {"op": op.name, "op_id": op.id, "module": op.module or module}


def _number(view: ProfileView, index: int) -> int | None:
    return int(view.profile.iterations.number[index]) if index >= 0 else None


def _known(value: np.int64) -> int | None:
    return None if value < 0 else int(value)
