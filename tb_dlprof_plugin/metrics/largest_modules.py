"""The few modules that hold most of a step, with their forward and backward time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.module_tree import ModuleTree, module_tree
from tb_dlprof_plugin.metrics.modules import GpuWork, flattened, gpu_work, host_work
from tb_dlprof_plugin.model.profile import Bools, Ints, Role
from tb_dlprof_plugin.profile_view import ProfileView, Selection

_SPLIT = 0.5
"""A module with a larger share of the time names no layer: those in it take its place."""


@dataclass(frozen=True, slots=True)
class ModuleShare:
    """A module with all below it; times (ns) are sums over the selection, equal to those of `module_totals`.

    ``percent`` is of the summed time of all ops, on the GPU or, without one, on the CPU. ``holds`` counts the modules
    right below.
    """

    path: str
    total_ns: int
    forward_ns: int
    backward_ns: int
    percent: float
    holds: int


def largest_modules(view: ProfileView, selection: Selection, count: int) -> list[ModuleShare]:
    """At most ``count`` modules by falling time, none within another; empty where none was recorded."""
    tree = module_tree(view)
    if tree is None or len(tree) < 2:
        return []
    return _on_gpu(view, selection, tree, count) if view.profile.has_gpu else _on_cpu(view, selection, tree, count)


def _on_gpu(view: ProfileView, selection: Selection, tree: ModuleTree, count: int) -> list[ModuleShare]:
    work = gpu_work(view, selection, tree)
    inside = work.node >= 0
    taken = tree.rolled_up(sums(work.node[inside], work.own_ns[inside], len(tree)))
    chosen = _chosen(tree, taken, count)
    at = _places(tree, chosen, work.node)

    def time_of(rows: Bools) -> Ints:
        of_chosen: GpuWork = work.keyed(at).only(rows & (at >= 0))
        return flattened(of_chosen, len(chosen), selection.count).total

    everything = np.ones(len(at), dtype=np.bool_)
    times = [time_of(rows) for rows in (everything, ~work.backward, work.backward)]
    return _shares(tree, chosen, times, taken, int(work.own_ns.sum()))


def _on_cpu(view: ProfileView, selection: Selection, tree: ModuleTree, count: int) -> list[ModuleShare]:
    host = host_work(view, selection, tree)
    counted = (host.node >= 0) | host.counts
    inside, backward = host.node >= 0, host.role == Role.BACKWARD
    taken, of_backward = (
        tree.rolled_up(sums(host.node[rows], host.self_ns[rows], len(tree))) for rows in (inside, inside & backward)
    )
    chosen = _chosen(tree, taken, count)
    times = [taken[chosen], (taken - of_backward)[chosen], of_backward[chosen]]
    return _shares(tree, chosen, times, taken, int(host.self_ns[counted].sum()))


def _chosen(tree: ModuleTree, taken: Ints, count: int) -> Ints:
    """The nodes, the largest first."""

    def below(node: int) -> list[int]:
        return [int(child) for child in np.flatnonzero(tree.parent == node) if taken[child] > 0]

    nodes = below(0)
    while nodes:
        largest = max(nodes, key=lambda node: int(taken[node]))
        inner = below(largest)
        if taken[largest] <= _SPLIT * taken[0] or not inner:
            break
        nodes = [node for node in nodes if node != largest] + inner
    nodes.sort(key=lambda node: (-int(taken[node]), node))
    return np.array(nodes[:count], dtype=np.int64)


def _places(tree: ModuleTree, chosen: Ints, node: Ints) -> Ints:
    """Per node the place of the chosen module that holds it, -1 for none."""
    of_node = np.full(len(tree) + 1, -1, dtype=np.int64)
    for place, top in enumerate(chosen.tolist()):
        of_node[top : tree.end[top]] = place
    # Work outside every module has node -1, which is the last row.
    return of_node[node]


def _shares(tree: ModuleTree, chosen: Ints, times: list[Ints], taken: Ints, whole_ns: int) -> list[ModuleShare]:
    holds = np.bincount(tree.parent[1:][taken[1:] > 0], minlength=len(tree))
    return [
        ModuleShare(
            path=tree.path[node],
            total_ns=int(total),
            forward_ns=int(forward),
            backward_ns=int(backward),
            percent=percent(int(taken[node]), whole_ns) or 0.0,
            holds=int(holds[node]),
        )
        for node, total, forward, backward in zip(chosen.tolist(), *times, strict=True)
    ]
