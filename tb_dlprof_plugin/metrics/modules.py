"""The module tree, with the times of each module over the selected iterations: DLProf's group nodes.

Every dotted prefix of a recorded module path is a node, the whole model (path "") above them all. A call belongs to the
module whose forward ran it, a backward call to that of its forward op. A node's numbers include those of the modules
below it. GPU times are flattened: the union of the intervals per GPU, iteration by iteration. CPU times are sums of
self times, which is the union per thread: what a module calls by another path than its own counts there, on CPU and
GPU.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.module_tree import ModuleTree, module_tree
from tb_dlprof_plugin.metrics.op_gpu_time import own_gpu_ns
from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.model.intervals import covered, union
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, Role, Verdict
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

OUTSIDE_ROLES = (Role.FORWARD, Role.BACKWARD, Role.OPTIMIZER, Role.DATALOADER, Role.OTHER)
"""The parts of a step that split the work outside every module; rows of `ModuleTotals.outside` in this order."""

_CELLS = 4_000_000
"""Most cells of a (nodes, iterations) table that are held at once."""


@dataclass(frozen=True, slots=True)
class ModuleSpread:
    """Time per node (ns): its sum over the iterations, and the least and most in one of them."""

    total: Ints
    low: Ints
    high: Ints


@dataclass(frozen=True, slots=True)
class NodeTotals:
    """One row per node; times in ns.

    ``gpu`` is flattened, ``gpu_sum_ns`` the sum over the calls of ops: they differ where ops overlap. Of
    ``eligible_ns``, the time of kernels in ops that can use Tensor Cores, ``tensor_core_ns`` ran on them and for
    ``eligible_unknown_ns`` it is not known. ``ops`` counts rows of `ProfileView.groups`, ``op_calls`` outermost calls
    of ops.
    """

    gpu: ModuleSpread
    gpu_sum_ns: Ints
    cpu: ModuleSpread
    kernel_calls: Ints
    op_calls: Ints
    ops: Ints
    eligible_ops: Ints
    tensor_core_ops: Ints
    eligible_ns: Ints
    tensor_core_ns: Ints
    eligible_unknown_ns: Ints


@dataclass(frozen=True, slots=True)
class ModuleTotals:
    """Totals of each node of the tree, and of the work outside, by role.

    ``inside.gpu_sum_ns[0] + outside.gpu_sum_ns.sum()`` is the GPU time of all ops of the selection (`op_totals`).

    Attributes:
        calls: forward calls of the module itself.
        inside: a node with all below it.
        own_gpu_ns, own_cpu_ns: the part in no module below it, GPU time flattened.
        forward_gpu_ns, backward_gpu_ns: flattened each; their sum is over ``inside.gpu`` where the two overlap.
        forward_cpu_ns, backward_cpu_ns: sum to ``inside.cpu``.
        outside: rows follow `OUTSIDE_ROLES`.
    """

    calls: Ints
    inside: NodeTotals
    own_gpu_ns: Ints
    own_cpu_ns: Ints
    forward_gpu_ns: Ints
    backward_gpu_ns: Ints
    forward_cpu_ns: Ints
    backward_cpu_ns: Ints
    outside: NodeTotals


@per_selection
def module_totals(view: ProfileView, selection: Selection) -> ModuleTotals | None:
    """Totals of each node of `module_tree` over the selected iterations; None where no module was recorded."""
    tree = module_tree(view)
    if tree is None:
        return None
    work, host = gpu_work(view, selection, tree), host_work(view, selection, tree)
    count = len(tree)
    own = _accumulated(view, selection, work, host, count)
    inside, forward = host.node >= 0, host.role != Role.BACKWARD
    own_forward_cpu = sums(host.node[inside & forward], host.self_ns[inside & forward], count)
    own_backward_cpu = sums(host.node[inside & ~forward], host.self_ns[inside & ~forward], count)
    return ModuleTotals(
        calls=np.bincount(host.node[inside & forward & host.is_range], minlength=count).astype(np.int64),
        inside=NodeTotals(
            gpu=flattened_with_all_below(work.only(work.node >= 0), tree, selection.count),
            cpu=host_spread(host.only(inside), tree, selection.count),
            **{name: tree.rolled_up(column) for name, column in own.items()},
        ),
        own_gpu_ns=flattened(work.only(work.node >= 0), count, selection.count).total,
        own_cpu_ns=own_forward_cpu + own_backward_cpu,
        forward_gpu_ns=flattened_with_all_below(work.only((work.node >= 0) & ~work.backward), tree, 0).total,
        backward_gpu_ns=flattened_with_all_below(work.only((work.node >= 0) & work.backward), tree, 0).total,
        forward_cpu_ns=tree.rolled_up(own_forward_cpu),
        backward_cpu_ns=tree.rolled_up(own_backward_cpu),
        outside=_outside(view, selection, work, host),
    )


@dataclass(frozen=True, slots=True)
class GpuWork:
    """Linked activities of the selection in order of iteration, device and start; ``place`` numbers these pairs,
    ``own_ns`` is each one's part of the GPU time of its op's call."""

    node: Ints
    role: Ints
    place: Ints
    iteration: Ints
    start_ns: Ints
    stop_ns: Ints
    group: Ints
    eligible: Bools
    verdict: Ints
    own_ns: Ints

    @property
    def backward(self) -> Bools:
        """Which were launched in the backward pass."""
        backward: Bools = self.role == Role.BACKWARD
        return backward

    def only(self, rows: Bools) -> GpuWork:
        """Some of the rows."""
        return GpuWork(*(getattr(self, name)[rows] for name in self.__slots__))

    def keyed(self, node: Ints) -> GpuWork:
        """With other nodes."""
        return GpuWork(node, *(getattr(self, name) for name in self.__slots__[1:]))


@dataclass(frozen=True, slots=True)
class HostWork:
    """Calls of the selection."""

    node: Ints
    role: Ints
    iteration: Ints
    self_ns: Ints
    group: Ints
    is_range: Bools
    is_top: Bools
    continues: Bools
    counts: Bools

    def only(self, rows: Bools) -> HostWork:
        """Some of the rows."""
        return HostWork(*(getattr(self, name)[rows] for name in self.__slots__))

    def keyed(self, node: Ints) -> HostWork:
        """With other nodes."""
        return HostWork(node, *(getattr(self, name) for name in self.__slots__[1:]))


def gpu_work(view: ProfileView, selection: Selection, tree: ModuleTree) -> GpuWork:
    """The GPU work of the selection by module."""
    profile = view.profile
    launches = profile.launches
    rows = np.flatnonzero(view.selected_launches(selection) & (view.launch_group >= 0))
    iteration = view.launch_iteration[rows] - selection.first
    rows = rows[np.lexsort((launches.start_ns[rows], launches.device[rows], iteration))]
    iteration = view.launch_iteration[rows] - selection.first
    devices, device = np.unique(launches.device[rows], return_inverse=True)
    call, kernel = launches.call[rows], launches.kernel[rows]
    return GpuWork(
        node=tree.of_call[call],
        role=profile.ops.role[profile.calls.op[call]],
        place=iteration * max(1, len(devices)) + device.reshape(-1),
        iteration=iteration,
        start_ns=launches.start_ns[rows],
        stop_ns=launches.start_ns[rows] + launches.duration_ns[rows],
        group=view.launch_group[rows],
        eligible=(view.launch_in_matrix_op & view.launch_is_kernel)[rows],
        verdict=profile.kernels.tensor_core[kernel],
        own_ns=own_gpu_ns(view)[rows],
    )


def host_work(view: ProfileView, selection: Selection, tree: ModuleTree) -> HostWork:
    """The calls of the selection by module."""
    ops, calls = view.profile.ops, view.profile.calls
    rows = np.flatnonzero(view.selected_calls(selection))
    op = calls.op[rows]
    role = ops.role[op]
    return HostWork(
        node=tree.of_call[rows],
        role=role,
        iteration=view.call_iteration[rows] - selection.first,
        self_ns=view.call_self_ns[rows],
        group=view.call_group[rows],
        is_range=ops.kind[op] == CallKind.MODULE,
        is_top=ops.top[op],
        continues=ops.continuation[op],
        # A step's own annotation is around everything: its remaining time is not work.
        counts=(ops.kind[op] != CallKind.ANNOTATION) | (role != Role.OTHER),
    )


def _accumulated(view: ProfileView, selection: Selection, work: GpuWork, host: HostWork, count: int) -> dict[str, Ints]:
    """The columns of `NodeTotals` that add up, of each node alone; what has node -1 is left out."""
    work, host = work.only(work.node >= 0), host.only(host.node >= 0)
    duration = work.stop_ns - work.start_ns
    of_op = op_totals(view, selection)
    top = host.only(host.is_top)
    counted = top.only(~top.continues)
    pairs = np.unique(top.node * len(view.groups) + top.group)
    node, group = np.divmod(pairs, max(1, len(view.groups)))

    def time_of(rows: Bools) -> Ints:
        return sums(work.node[rows], duration[rows], count)

    def number_of(nodes: Ints) -> Ints:
        return np.bincount(nodes, minlength=count).astype(np.int64)

    return {
        "gpu_sum_ns": sums(work.node, work.own_ns, count),
        "kernel_calls": number_of(work.node),
        "op_calls": number_of(counted.node),
        "ops": number_of(node),
        "eligible_ops": number_of(node[of_op.eligible[group]]),
        "tensor_core_ops": number_of(node[of_op.tensor_core_ns[group] > 0]),
        "eligible_ns": time_of(work.eligible),
        "tensor_core_ns": time_of(work.eligible & (work.verdict == Verdict.YES)),
        "eligible_unknown_ns": time_of(work.eligible & (work.verdict == Verdict.UNKNOWN)),
    }


def _outside(view: ProfileView, selection: Selection, work: GpuWork, host: HostWork) -> NodeTotals:
    """What lies in no module, by role: the roles take the place of the nodes."""
    of_role = np.zeros(max(Role) + 1, dtype=np.int64)
    of_role[list(OUTSIDE_ROLES)] = np.arange(len(OUTSIDE_ROLES))
    work, host = work.only(work.node < 0), host.only((host.node < 0) & host.counts)
    work, host = work.keyed(of_role[work.role]), host.keyed(of_role[host.role])
    flat = _flat_tree(len(OUTSIDE_ROLES))
    return NodeTotals(
        gpu=flattened(work, len(OUTSIDE_ROLES), selection.count),
        cpu=host_spread(host, flat, selection.count),
        **_accumulated(view, selection, work, host, len(OUTSIDE_ROLES)),
    )


def _flat_tree(count: int) -> ModuleTree:
    """Nodes that hold no others."""
    none = np.full(count, -1, dtype=np.int64)
    rows = np.arange(count, dtype=np.int64)
    return ModuleTree(path=[""] * count, parent=none, depth=rows * 0, end=rows + 1, of_call=rows[:0])


def flattened_with_all_below(work: GpuWork, tree: ModuleTree, iterations: int) -> ModuleSpread:
    """Flattened time of each node with all below it, level by level: all work of a level has one node there."""
    result = ModuleSpread(*(np.zeros(len(tree), dtype=np.int64) for _ in range(3)))
    node = work.node
    for level in range(int(tree.depth.max(initial=0)), -1, -1):
        node = np.where(tree.depth[node] > level, tree.parent[node], node)
        here = flattened(work.keyed(node).only(tree.depth[node] == level), len(tree), iterations)
        at = tree.depth == level
        for name in ("total", "low", "high"):
            getattr(result, name)[at] = getattr(here, name)[at]
    return result


def flattened(work: GpuWork, count: int, iterations: int) -> ModuleSpread:
    """Union of each node's intervals per iteration and device, summed over devices; least and most of an iteration."""
    result = ModuleSpread(*(np.zeros(count, dtype=np.int64) for _ in range(3)))
    if not len(work.node):
        return result
    # Few nodes fit 16 bits, which numpy sorts by counting.
    order = np.argsort(work.node.astype(np.uint16 if count <= 1 << 16 else np.int64), kind="stable")
    node, place, iteration = work.node[order], work.place[order], work.iteration[order]
    start, stop = work.start_ns[order], work.stop_ns[order]
    first = _changes(node, place)
    # Laid end to end, the intervals of all nodes and places are one line of time without overlap between them.
    length = np.maximum.reduceat(stop, first) - start[first]
    begin = np.cumsum(length) - length
    shift = np.repeat(begin - start[first], np.diff(np.append(first, len(node))))
    time_ns = covered(union(start + shift, stop + shift), begin, begin + length)

    node, iteration = node[first], iteration[first]
    first = _changes(node, iteration)
    time_ns, node = np.add.reduceat(time_ns, first), node[first]
    first = _changes(node, node)
    node, found = node[first], np.diff(np.append(first, len(node)))
    result.total[node] = np.add.reduceat(time_ns, first)
    result.high[node] = np.maximum.reduceat(time_ns, first)
    result.low[node] = np.where(found < iterations, 0, np.minimum.reduceat(time_ns, first))
    return result


def _changes(first: Ints, second: Ints) -> Ints:
    """Rows at which the sorted pair of columns has a new value."""
    changed = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return np.flatnonzero(np.append(True, changed))


def host_spread(host: HostWork, tree: ModuleTree, iterations: int) -> ModuleSpread:
    """CPU time of each node with all below it; least and most of an iteration."""
    count = len(tree)
    total = tree.rolled_up(sums(host.node, host.self_ns, count))
    low, high = total, total * 0
    for part in _parts(iterations, max(1, _CELLS // count)):
        rows = (host.iteration >= part.start) & (host.iteration < part.stop)
        cell = host.node[rows] * len(part) + (host.iteration[rows] - part.start)
        table = tree.rolled_up(sums(cell, host.self_ns[rows], count * len(part)).reshape(count, len(part)))
        low, high = np.minimum(low, table.min(axis=1)), np.maximum(high, table.max(axis=1))
    return ModuleSpread(total, low, high)


def _parts(total: int, size: int) -> Iterable[range]:
    return (range(at, min(total, at + size)) for at in range(0, total, size))
