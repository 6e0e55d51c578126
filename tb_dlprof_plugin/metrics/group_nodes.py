"""CPU overhead and GPU idle time of each module: what DLProf's Group Node Report has besides `ModuleTotals`.

Both are flattened and rolled up from the ops below (User Guide 1.8, sections 8.5 and 10.8). The overhead of a module is
the part of its CPU time outside CUDA calls. Its GPU idle time is the union of the idle pieces within its ops, per GPU
and iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.module_tree import module_tree
from tb_dlprof_plugin.metrics.modules import GpuWork, ModuleSpread, flattened_with_all_below, host_spread, host_work
from tb_dlprof_plugin.metrics.op_idle import idle_pieces
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.model.tree import inherit
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class GroupNodeWaits:
    """One row per node of `module_tree`; least and most are of one iteration."""

    overhead: ModuleSpread
    idle: ModuleSpread


@per_selection
def group_node_waits(view: ProfileView, selection: Selection) -> GroupNodeWaits | None:
    """Overhead and idle time of each module over the selected iterations; None where no module was recorded."""
    tree = module_tree(view)
    if tree is None:
        return None
    profile = view.profile
    runtime = (profile.ops.kind == CallKind.RUNTIME)[profile.calls.op]
    in_cuda_call = inherit(runtime, runtime, view.call_parent)[view.selected_calls(selection)]
    host = host_work(view, selection, tree)

    pieces = idle_pieces(view, selection)
    node = tree.of_call[pieces.call]
    rows = np.flatnonzero(node >= 0)
    rows = rows[np.lexsort((pieces.start_ns[rows], pieces.device[rows], pieces.iteration[rows]))]
    iteration = pieces.iteration[rows] - selection.first
    nothing = np.zeros(len(rows), dtype=np.int64)
    idle = GpuWork(
        node=node[rows],
        role=nothing,
        place=iteration * (int(pieces.device.max(initial=0)) + 1) + pieces.device[rows],
        iteration=iteration,
        start_ns=pieces.start_ns[rows],
        stop_ns=pieces.stop_ns[rows],
        group=nothing,
        eligible=nothing.astype(np.bool_),
        verdict=nothing,
        own_ns=nothing,
    )
    return GroupNodeWaits(
        overhead=host_spread(host.only((host.node >= 0) & ~in_cuda_call), tree, selection.count),
        idle=flattened_with_all_below(idle, tree, selection.count),
    )
