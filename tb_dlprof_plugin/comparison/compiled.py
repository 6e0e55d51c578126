"""An eager run against a compiled one of the same model: what compiled code replaced, module by module."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.compiled_code import compiled_modules
from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.op_sites import Run
from tb_dlprof_plugin.model.profile import Ints, Role
from tb_dlprof_plugin.names.cuda_calls import CudaCall

_MOST_OPS = 4


@dataclass(frozen=True, slots=True)
class ReplacedModule:
    """GPU time per step of a module's own ops (ns) in run a and run b: in the compiled run that of its kernels, with
    its parts of shared ones.

    ``ops`` are the types of the eager ops, most time first. ``module`` is "" for the compiled module itself, None for
    shared kernels whose parts are not known.
    """

    module: str | None
    a_ns: int
    b_ns: int
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Replaced:
    """What compiled code replaced: ``gpu_ns`` is the GPU time of forward and backward pass per step in run a and run b,
    ``launches`` their kernels, copies and sets, ``replays`` the CUDA graphs that a step launches. ``compiled`` is the
    run that is compiled, 0 or 1; ``modules`` come by falling time, none where they are not known."""

    compiled: int
    gpu_ns: tuple[int, int]
    launches: tuple[float, float]
    replays: tuple[float, float]
    modules: list[ReplacedModule]


def replaced_by_compiled(a: Run, b: Run) -> Replaced | None:
    """What one run's compiled code replaced of the other; None where none or both have some, or one has no GPU."""
    has = [bool(run.sites.compiled.any()) for run in (a, b)]
    if has[0] == has[1] or not (a.view.profile.has_gpu and b.view.profile.has_gpu):
        return None
    compiled, runs = has.index(True), (a, b)
    found = compiled_modules(runs[compiled].view, runs[compiled].selection)
    after = {one.path: one.alone_ns + one.shared_ns for one in found}
    before, types = _by_module(runs[1 - compiled])
    rows = []
    for module in dict.fromkeys([*after, *before]) if after else ():
        times = [before.get(module, 0), after.get(module, 0)]
        if compiled == 0:
            times.reverse()
        ops = tuple(sorted(types.get(module, ()), key=lambda kind: -types[module][kind])[:_MOST_OPS])
        rows.append(ReplacedModule(module, times[0] // a.selection.count, times[1] // b.selection.count, ops))
    rows.sort(key=lambda row: -max(row.a_ns, row.b_ns))
    gpu_a, launches_a, replays_a = _passes(a)
    gpu_b, launches_b, replays_b = _passes(b)
    return Replaced(compiled, (gpu_a, gpu_b), (launches_a, launches_b), (replays_a, replays_b), rows)


def _by_module(run: Run) -> tuple[dict[str | None, int], dict[str | None, dict[str, int]]]:
    """By module the GPU time of its own ops in both passes, in all and by op type. Work in no module is left out."""
    profile = run.view.profile
    launches, ops, strings = profile.launches, profile.ops, profile.strings
    rows = _of_passes(run)
    time = sums(profile.calls.op[run.view.call_top[launches.call[rows]]], launches.duration_ns[rows], len(ops))
    total: dict[str | None, int] = {}
    types: dict[str | None, dict[str, int]] = {}
    for row in np.flatnonzero(time).tolist():
        module, kind = strings[ops.module[row]], strings[ops.op_type[row]]
        if module:
            total[module] = total.get(module, 0) + int(time[row])
            of_type = types.setdefault(module, {})
            of_type[kind] = of_type.get(kind, 0) + int(time[row])
    return total, types


def _of_passes(run: Run) -> Ints:
    """Rows of `Profile.launches`: those of ops of the forward and the backward pass in the selected iterations."""
    profile = run.view.profile
    launches = profile.launches
    rows = np.flatnonzero(run.view.selected_launches(run.selection) & (launches.call >= 0))
    top = run.view.call_top[launches.call[rows]]
    rows, top = rows[top >= 0], top[top >= 0]
    found: Ints = rows[np.isin(profile.ops.role[profile.calls.op[top]], (Role.FORWARD, Role.BACKWARD))]
    return found


def _passes(run: Run) -> tuple[int, float, float]:
    """GPU time (ns), launches and replayed graphs of both passes per step."""
    rows, count = _of_passes(run), run.selection.count
    graphs = run.view.is_cuda_call(CudaCall.GRAPH_LAUNCH) & run.view.selected_calls(run.selection)
    return int(run.view.profile.launches.duration_ns[rows].sum()) // count, len(rows) / count, int(graphs.sum()) / count
