"""What the CPU spends around compiled code: between regions, around the calls of graphs, and launching inside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.rules.idle_gpu.host_phases import without
from tb_dlprof_plugin.metrics.amp_calls import compiled_calls
from tb_dlprof_plugin.model.intervals import Intervals, covered, union, union_of
from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.profile import Bools, Ints, Role
from tb_dlprof_plugin.model.tree import any_in_subtree, outermost
from tb_dlprof_plugin.names.compiled import COMPILED_REGION, GRAPH_CALL
from tb_dlprof_plugin.names.cuda_calls import LAUNCHES_KERNELS, CudaCall
from tb_dlprof_plugin.names.ops import AUTOGRAD_NODE
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

_RESUMED = "torch_dynamo_resume_in_"
"""Begins the name of a function that goes on behind a graph break."""
_BACKWARD = f"{AUTOGRAD_NODE}CompiledFunction"


@dataclass(frozen=True, slots=True)
class CompiledRegions:
    """The compiled code of the selected iterations. Intervals are times of the CPU (ns), disjoint and in order.

    Attributes:
        count: regions.
        joints: regions that come after another one of the same thread and iteration, without a backward pass or an
            optimizer's step between.
        resumed: how many of these go on behind a graph break, by the name of their function.
        between: from the end of one to the start of the next, at these joints.
        wrapping: what one region in place of joined ones would not do again: guards, Dynamo's code and autograd's
            around the calls of graphs, in both passes; nothing where calls of graphs leave no range (before torch 2.9).
        launched: rows of `Profile.calls`: calls of graphs that launch their kernels one by one.
    """

    count: int
    joints: int
    resumed: int
    between: Intervals
    wrapping: Intervals
    launched: Ints


@per_selection
def compiled_regions(view: ProfileView, selection: Selection) -> CompiledRegions:
    """The compiled regions of the selected iterations."""
    calls = view.profile.calls
    compiled, chosen = compiled_calls(view), view.selected_calls(selection)
    first = compiled & chosen & (outermost(compiled, view.call_parent) == np.arange(len(calls)))
    regions = np.flatnonzero(first & _begins(view, COMPILED_REGION))
    nodes = np.flatnonzero(first & _begins(view, _BACKWARD))
    graphs = chosen & _begins(view, GRAPH_CALL)
    before, after = _joints(view, regions)
    wrapping = np.concatenate((after, _shortest(view, nodes, after)))
    wrapping = wrapping[any_in_subtree(graphs, view.call_end)[wrapping]]
    around = without(union_of(calls, wrapping), union_of(calls, graphs))
    replays = any_in_subtree(view.is_cuda_call(CudaCall.GRAPH_LAUNCH), view.call_end)
    launches = any_in_subtree(view.is_cuda_call(*LAUNCHES_KERNELS), view.call_end)
    return CompiledRegions(
        count=len(regions),
        joints=len(after),
        resumed=int(_is_resumed(view)[after].sum()),
        between=union(calls.start_ns[before] + calls.duration_ns[before], calls.start_ns[after]),
        wrapping=around,
        launched=np.flatnonzero(graphs & launches & ~replays),
    )


def _begins(view: ProfileView, text: str) -> Bools:
    return view.profile.ops_named(lambda name: name.startswith(text))[view.profile.calls.op]


def _joints(view: ProfileView, regions: Ints) -> tuple[Ints, Ints]:
    """Each two regions of which one follows the other, see `CompiledRegions.joints`."""
    profile, calls = view.profile, view.profile.calls
    order = regions[np.lexsort((calls.start_ns[regions], calls.thread[regions], view.call_iteration[regions]))]
    before, after = order[:-1], order[1:]
    stop, start = calls.start_ns[before] + calls.duration_ns[before], calls.start_ns[after]
    same = (view.call_iteration[before] == view.call_iteration[after]) & (calls.thread[before] == calls.thread[after])
    apart = np.sort(calls.start_ns[np.isin(profile.ops.role[calls.op], (Role.BACKWARD, Role.OPTIMIZER))])
    same &= (start >= stop) & (np.searchsorted(apart, stop) == np.searchsorted(apart, start))
    return before[same], after[same]


def _shortest(view: ProfileView, nodes: Ints, after: Ints) -> Ints:
    """Of the backward nodes of each iteration as many as it has joints: the shortest."""
    joints = dict(zip(*np.unique(view.call_iteration[after], return_counts=True), strict=True))
    kept = [np.zeros(0, dtype=np.int64)]
    for iteration, rows in rows_of_each(view.call_iteration[nodes]):
        own = nodes[rows]
        kept.append(own[np.argsort(view.profile.calls.duration_ns[own], kind="stable")][: joints.get(iteration, 0)])
    return np.concatenate(kept)


def _is_resumed(view: ProfileView) -> Bools:
    """Per call whether it is the region of a function that goes on behind a break."""
    frames = {one.compile_id.partition("/")[0] for one in view.profile.facts.compilations if _RESUMED in one.place}

    def test(name: str) -> bool:
        return name.removeprefix(COMPILED_REGION).partition("/")[0] in frames and name.startswith(COMPILED_REGION)

    return view.profile.ops_named(test)[view.profile.calls.op]


def covered_ns(one: Intervals, other: Intervals) -> int:
    """How much of the first the second covers (ns)."""
    return int(covered(other, *one).sum())
