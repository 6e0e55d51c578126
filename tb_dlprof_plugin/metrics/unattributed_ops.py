"""Every op that GPU work and CUDA calls can belong to: those of `ProfileView.groups`, and what lies outside of them.

DLProf (User Guide 1.8, section 8.3) makes an op ``unassociated_<name>`` of the CUDA calls and kernels of one name that
lie in no op, so that its reports account for all that ran. Here GPU work outside every op goes to the op of its
kernel's name, with the CUDA call that launched it; a CUDA call that launched nothing goes to the op of its own name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.profile import CallKind, Ints
from tb_dlprof_plugin.model.tree import any_in_subtree, outermost
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection, stable_id

PREFIX = "unassociated_"


@dataclass(frozen=True, slots=True)
class AllOps:
    """The ops of a recording: rows of `ProfileView.groups`, then one row for each of ``names``.

    Attributes:
        groups: number of the former.
        names: of what lies outside every op: kernels, copies, sets and CUDA calls.
        of_call: per row of `Profile.calls` its op, -1 for calls inside others and for what is neither an op nor a CUDA
            call. A CUDA call outside every op that launched GPU work has -1: it is part of that work's op.
        of_launch: per row of `Profile.launches` its op.
        api_call: per row of `Profile.launches` the CUDA call that launched it, -1 where none was recorded. Of several
            activities that one call launched (a CUDA graph) only the first has it, so that its time counts once.
    """

    groups: int
    names: list[str]
    of_call: Ints
    of_launch: Ints
    api_call: Ints

    def __len__(self) -> int:
        return self.groups + len(self.names)

    def name_of(self, row: int) -> str:
        """The op's name, such as "unassociated_cudaDeviceSynchronize"; for rows outside `ProfileView.groups`."""
        return PREFIX + self.names[row - self.groups]

    def id_of(self, row: int) -> str:
        """The op's id; for rows outside `ProfileView.groups`."""
        return stable_id(self.name_of(row))


def all_ops(view: ProfileView) -> AllOps:
    """The ops of the whole recording, whatever iterations are selected."""
    return _all_ops(view, view.selection())


@per_selection
def _all_ops(view: ProfileView, everything: Selection) -> AllOps:
    profile = view.profile
    ops, calls, launches = profile.ops, profile.calls, profile.launches
    rows = np.arange(len(calls), dtype=np.int64)
    runtime = (ops.kind == CallKind.RUNTIME)[calls.op]
    launched = launches.call >= 0

    by_runtime = launched.copy()
    by_runtime[launched] = runtime[launches.call[launched]]
    api_call = np.where(by_runtime, launches.call, -1)
    _, first = np.unique(api_call, return_index=True)
    repeated = np.ones(len(launches), dtype=np.bool_)
    repeated[first] = False
    api_call[repeated] = -1

    outside = view.launch_group < 0
    launching = np.zeros(len(calls), dtype=np.bool_)
    launching[launches.call[outside & launched]] = True
    # A runtime call may launch by a driver call inside it.
    launching = any_in_subtree(launching, view.call_end)
    alone = np.flatnonzero(runtime & (view.call_top < 0) & (outermost(runtime, view.call_parent) == rows) & ~launching)

    kernel_names = profile.kernels.name[launches.kernel[outside]]
    call_names = ops.name[calls.op[alone]]
    distinct = np.unique(np.concatenate((kernel_names, call_names)))
    count = len(view.groups)
    of_call = np.where(view.call_top == rows, view.call_group, -1)
    of_call[alone] = count + np.searchsorted(distinct, call_names)
    of_launch = view.launch_group.copy()
    of_launch[outside] = count + np.searchsorted(distinct, kernel_names)
    return AllOps(
        groups=count,
        names=[profile.strings[i] for i in distinct.tolist()],
        of_call=of_call,
        of_launch=of_launch,
        api_call=api_call,
    )


def activity_iteration(view: ProfileView) -> Ints:
    """Index of the iteration of each GPU activity, -1 outside all.

    By its launch where that was recorded, as on every page (`ProfileView.launch_iteration`). Work without a recorded
    launch
    counts where it began on the GPU: before the recording's first steps that is nowhere, but a recording without steps
    is one iteration, and with a key node the first one begins with the recording.
    """
    return _activity_iteration(view, view.selection())


@per_selection
def _activity_iteration(view: ProfileView, everything: Selection) -> Ints:
    launches, iterations = view.profile.launches, view.profile.iterations
    index = np.searchsorted(iterations.start_ns, launches.start_ns, side="right") - 1
    inside = (index >= 0) & (launches.start_ns < iterations.stop_ns[np.maximum(index, 0)])
    by_clock = np.where(inside, index, -1)
    return np.where(launches.call >= 0, view.launch_iteration, by_clock)


def selected_activities(view: ProfileView, selection: Selection) -> Ints:
    """Rows of the GPU activities of the selected iterations, in order of start."""
    iteration = activity_iteration(view)
    return np.flatnonzero((iteration >= selection.first) & (iteration <= selection.last))
