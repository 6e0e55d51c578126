"""What the CPU spends around compiled code: between regions, around the calls of graphs, and launching inside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.rules.idle_gpu.host_phases import without
from tb_dlprof_plugin.metrics.amp_calls import compiled_calls
from tb_dlprof_plugin.model.grouping import first_rows
from tb_dlprof_plugin.model.intervals import Intervals, union, union_of
from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.profile import Bools, Ints, Role
from tb_dlprof_plugin.model.tree import any_in_subtree, outermost
from tb_dlprof_plugin.names.compiled import COMPILED_REGION, GRAPH_CALL
from tb_dlprof_plugin.names.cuda_calls import LAUNCHES_KERNELS, CudaCall
from tb_dlprof_plugin.names.ops import AUTOGRAD_NODE
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

_RESUMED = "torch_dynamo_resume_in_"
"""Begins the name of a function that goes on behind a graph break."""
_NEVER = 2**62
_BACKWARD = f"{AUTOGRAD_NODE}CompiledFunction"


@dataclass(frozen=True, slots=True)
class CompiledRegions:
    """The compiled code of the selected iterations. Intervals are times of the CPU (ns), disjoint and in order.

    Attributes:
        count: regions. Code that goes on behind a break is a region inside that of the code before it, or comes after.
        chains: regions that begin one of these: none runs right before them in the same thread and iteration, without
            a backward pass or an optimizer's step between.
        resumed: regions that go on behind a graph break, by the name of their function.
        around: of chains with more than one region what is not inside calls of graphs, from the first launch there to
            the last: guards, Dynamo's code, Python between the regions. Nothing where calls of graphs leave no range
            (before torch 2.9).
        around_backward: the same around the graphs of as many backward nodes as one region in place of each chain
            would not have.
        launched: rows of `Profile.calls`: calls of graphs that launch their kernels one by one.
    """

    count: int
    chains: int
    resumed: int
    around: Intervals
    around_backward: Intervals
    launched: Ints


@per_selection
def compiled_regions(view: ProfileView, selection: Selection) -> CompiledRegions:
    """The compiled regions of the selected iterations."""
    calls = view.profile.calls
    compiled, chosen = compiled_calls(view), view.selected_calls(selection)
    first = compiled & chosen & (outermost(compiled, view.call_parent) == np.arange(len(calls)))
    region = compiled & chosen & _begins(view, COMPILED_REGION)
    nodes = np.flatnonzero(first & _begins(view, _BACKWARD))
    graphs = np.flatnonzero(chosen & _begins(view, GRAPH_CALL))
    inside = np.cumsum(np.concatenate(([0], region)))
    outer = np.flatnonzero(region & first)
    outer = outer[np.lexsort((calls.start_ns[outer], calls.thread[outer], view.call_iteration[outer]))]
    chain = np.cumsum(~_joined(view, outer)) - 1
    regions_of = np.bincount(chain, weights=inside[view.call_end[outer]] - inside[outer]).astype(np.int64)
    begin, end = np.full(len(regions_of), _NEVER), np.full(len(regions_of), -_NEVER)
    np.minimum.at(begin, chain, calls.start_ns[outer])
    np.maximum.at(end, chain, calls.start_ns[outer] + calls.duration_ns[outer])
    broken = regions_of > 1 if len(graphs) else np.zeros(len(regions_of), dtype=np.bool_)
    iteration = view.call_iteration[outer][first_rows(chain)]
    more = np.bincount(iteration, weights=regions_of - 1).astype(np.int64)
    launching = _from_first_to_last(view, graphs)
    is_graph = np.zeros(len(calls), dtype=np.bool_)
    is_graph[graphs] = True
    fewer = _shortest(view, nodes, dict(enumerate(more.tolist())))
    fewer = fewer[any_in_subtree(is_graph, view.call_end)[fewer]]
    replays = any_in_subtree(view.is_cuda_call(CudaCall.GRAPH_LAUNCH), view.call_end)
    launches = any_in_subtree(view.is_cuda_call(*LAUNCHES_KERNELS), view.call_end)
    return CompiledRegions(
        count=int(region.sum()),
        chains=len(regions_of),
        resumed=int((region & _is_resumed(view)).sum()),
        around=without(union(begin[broken], end[broken]), launching),
        around_backward=without(union_of(calls, fewer), launching),
        launched=graphs[(launches & ~replays)[graphs]],
    )


def _begins(view: ProfileView, text: str) -> Bools:
    return view.profile.ops_named(lambda name: name.startswith(text))[view.profile.calls.op]


def _joined(view: ProfileView, outer: Ints) -> Bools:
    """Which of the regions in order come right after another one, see `CompiledRegions.chains`."""
    profile, calls = view.profile, view.profile.calls
    joined = np.zeros(len(outer), dtype=np.bool_)
    before, after = outer[:-1], outer[1:]
    stop, start = calls.start_ns[before] + calls.duration_ns[before], calls.start_ns[after]
    joined[1:] = view.call_iteration[before] == view.call_iteration[after]
    joined[1:] &= calls.thread[before] == calls.thread[after]
    apart = np.sort(calls.start_ns[np.isin(profile.ops.role[calls.op], (Role.BACKWARD, Role.OPTIMIZER))])
    joined[1:] &= (start >= stop) & (np.searchsorted(apart, stop) == np.searchsorted(apart, start))
    return joined


def _from_first_to_last(view: ProfileView, graphs: Ints) -> Intervals:
    """Of each call of a graph the time from the first call in it to the end of the last."""
    calls, parent = view.profile.calls, view.call_parent
    begin, end = np.full(len(calls), _NEVER), np.full(len(calls), -_NEVER)
    rows = np.flatnonzero(np.isin(parent, graphs))
    np.minimum.at(begin, parent[rows], calls.start_ns[rows])
    np.maximum.at(end, parent[rows], calls.start_ns[rows] + calls.duration_ns[rows])
    known = graphs[begin[graphs] < end[graphs]]
    return union(begin[known], end[known])


def _shortest(view: ProfileView, nodes: Ints, number: dict[int, int]) -> Ints:
    """Of the nodes of each iteration a number of them, the shortest."""
    kept = [np.zeros(0, dtype=np.int64)]
    for iteration, rows in rows_of_each(view.call_iteration[nodes]):
        own = nodes[rows]
        kept.append(own[np.argsort(view.profile.calls.duration_ns[own], kind="stable")][: number.get(iteration, 0)])
    return np.concatenate(kept)


def _is_resumed(view: ProfileView) -> Bools:
    """Per call whether it is the region of a function that goes on behind a break."""
    frames = {one.compile_id.partition("/")[0] for one in view.profile.facts.compilations if _RESUMED in one.place}

    def test(name: str) -> bool:
        return name.removeprefix(COMPILED_REGION).partition("/")[0] in frames and name.startswith(COMPILED_REGION)

    return view.profile.ops_named(test)[view.profile.calls.op]
