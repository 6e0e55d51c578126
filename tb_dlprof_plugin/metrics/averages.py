"""Operator averages in the sense of ``torch.profiler``'s ``key_averages()``: every recorded name with its sums.

Rules followed, so that the figures are equal: a call's self time is its duration less its direct children's; a call
that is the only child of a call of the same name is merged into it; device time of a call is what it launched
itself (self) or with its children (total).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import figure, sums
from tb_dlprof_plugin.metrics.unattributed_ops import selected_activities
from tb_dlprof_plugin.model.grouping import group_rows
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints
from tb_dlprof_plugin.model.tree import climb, inherit, self_time, sum_in_subtree
from tb_dlprof_plugin.names.ops import PROFILER_STEP
from tb_dlprof_plugin.profile_view import ProfileView, Selection

_FRAME_PREFIXES = ("nn.Module: ",)
"""Python views, which are none of torch's events."""
_ASYNC_PREFIXES = ("nccl:", "gloo:", "ucc:", "mpi:")
"""Collectives, which may end in another thread: torch keeps them out of its tree and gives them no self time."""


@dataclass(frozen=True, slots=True)
class OperatorAverage:
    """One operator name; times in ns. Device times are None for a run without a GPU."""

    name: str
    calls: int
    cpu_total_ns: int
    cpu_self_ns: int
    device_total_ns: int | None
    device_self_ns: int | None


@dataclass(frozen=True, slots=True)
class KernelAverage:
    """One kernel, copy or set by its name: a row that ``key_averages()`` has for work on the GPU's timeline."""

    name: str
    calls: int
    device_ns: int


def operator_averages(view: ProfileView, selection: Selection | None = None) -> list[OperatorAverage]:
    """All ops, annotations and runtime calls by falling self CPU time.

    Args:
        view: the recording.
        selection: the calls that began in these iterations; all of the recording where None, as torch has them.
    """
    profile, calls = view.profile, view.profile.calls
    kind = profile.ops.kind[calls.op]
    name = _names(view, kind)
    frames = _named(view, _FRAME_PREFIXES) & (kind == CallKind.MODULE)
    outside = _named(view, _ASYNC_PREFIXES) & (kind == CallKind.ANNOTATION)
    parent = _parents_in_tree(view, frames | outside)
    device_self = _device_self_ns(view, (kind == CallKind.OP) | ((kind == CallKind.MODULE) & ~frames))
    # Of what is not in torch's tree no call is a child.
    device_total = np.where(frames | outside, device_self, sum_in_subtree(device_self, view.call_end))
    merged = _merged_calls(name, parent)
    own = np.where(outside, 0, self_time(calls.duration_ns, parent))
    cpu_self = _hand_up(own, merged, parent)
    device_self = _hand_up(device_self, merged, parent)

    chosen = ~merged & ~frames
    kept = np.flatnonzero(chosen if selection is None else chosen & view.selected_calls(selection))
    unique, group = group_rows(name[kept], kind[kept])
    columns = [
        sums(group, values[kept], len(unique[0])).tolist()
        for values in (np.ones(len(calls), dtype=np.int64), calls.duration_ns, cpu_self, device_total, device_self)
    ]
    rows = [
        OperatorAverage(
            name=_display(profile.strings[name_]),
            calls=count,
            cpu_total_ns=cpu_total,
            cpu_self_ns=cpu_own,
            device_total_ns=total if profile.has_gpu else None,
            device_self_ns=own if profile.has_gpu else None,
        )
        for name_, count, cpu_total, cpu_own, total, own in zip(unique[0].tolist(), *columns, strict=True)
    ]
    return sorted(rows, key=lambda row: -row.cpu_self_ns)


def kernel_averages(view: ProfileView, selection: Selection | None = None) -> list[KernelAverage]:
    """All kernels, copies and sets by falling time; where None is selected of the whole recording, orphans too."""
    profile, launches = view.profile, view.profile.launches
    rows = np.arange(len(launches)) if selection is None else selected_activities(view, selection)
    distinct, name = np.unique(profile.kernels.name[launches.kernel[rows]], return_inverse=True)
    time = figure(name.reshape(-1), launches.duration_ns[rows], len(distinct))
    averages = [
        KernelAverage(profile.strings[string], calls, total)
        for string, calls, total in zip(distinct.tolist(), time.count.tolist(), time.total.tolist(), strict=True)
    ]
    return sorted(averages, key=lambda average: -average.device_ns)


def _names(view: ProfileView, kind: Ints) -> Ints:
    """Name per call, a module's its path; all steps share one, as "ProfilerStep*" in torch."""
    ops, calls = view.profile.ops, view.profile.calls
    name = np.where(kind == CallKind.MODULE, ops.module[calls.op], ops.name[calls.op])
    steps = [i for i, text in enumerate(view.profile.strings) if text.startswith(PROFILER_STEP)]
    if steps:
        name[np.isin(name, steps)] = steps[0]
    return name


def _named(view: ProfileView, prefixes: tuple[str, ...]) -> Bools:
    """Which calls have a name that begins so."""
    begins = np.array([text.startswith(prefixes) for text in view.profile.strings], dtype=np.bool_)
    return begins[view.profile.ops.name[view.profile.calls.op]]


def _parents_in_tree(view: ProfileView, outside: Bools) -> Ints:
    """Parents in torch's tree, in which some calls are not: those have none, and their children their own parent."""
    parent = climb(view.call_parent, outside, view.call_parent)
    # The outermost call around may be one of them.
    parent = np.where(take_or(outside, parent, False), -1, parent)
    return np.where(outside, -1, parent)


def _device_self_ns(view: ProfileView, is_op: Bools) -> Ints:
    """GPU time that each op launched itself: torch joins kernels to ops by id, never to annotations around a launch."""
    launches, calls = view.profile.launches, view.profile.calls
    nearest = inherit(np.arange(len(calls), dtype=np.int64), is_op, view.call_parent)
    launched = launches.call >= 0
    owner = nearest[launches.call[launched]]
    of_op = is_op[owner]
    result = np.zeros(len(calls), dtype=np.int64)
    np.add.at(result, owner[of_op], launches.duration_ns[launched][of_op])
    return result


def _merged_calls(name: Ints, parent: Ints) -> Bools:
    """Calls that are the only child of a call of the same name."""
    children = np.bincount(parent[parent >= 0], minlength=len(name))
    nested = np.flatnonzero(parent >= 0)
    merged = np.zeros(len(name), dtype=np.bool_)
    merged[nested] = (name[nested] == name[parent[nested]]) & (children[parent[nested]] == 1)
    return merged


def _hand_up(values: Ints, merged: Bools, parent: Ints) -> Ints:
    """Adds a merged call's own value to the call that it is merged into."""
    result, rows = values.copy(), np.flatnonzero(merged)
    np.add.at(result, climb(rows, merged, parent), values[rows])
    return result


def _display(name: str) -> str:
    return "ProfilerStep*" if name.startswith(PROFILER_STEP) else name
