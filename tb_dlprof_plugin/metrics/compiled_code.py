"""The time of torch.compile's code by launch of its wrappers: known of a module, shared by several, or unknown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.amp_calls import compiled_calls, in_calls
from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.model.compiled_graph import common_path
from tb_dlprof_plugin.model.lookup import rows_of_each, take_or
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.tree import inherit
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection, per_view

_NUMBERED = re.compile(r"(|(?:[^.]*[^.\d][^.]*\.)+)(\d+)(?:\.|$)")


@dataclass(frozen=True, slots=True)
class CompiledTime:
    """Times are sums over kernels, copies and sets (ns); without a GPU over the launches' calls on the CPU.

    ``region_ns == module_ns + shared_ns + without_module_ns + unknown_ns``.

    Attributes:
        launches: per row of `CompiledKernels` how often it ran.
        time_ns: per row of `CompiledKernels` its time.
        region_ns: all that ran in compiled code.
        module_ns: what a single module computes.
        shared_ns: kernels that compute ops of several modules.
        without_module_ns: kernels whose launch is known, but not its modules.
        unknown_ns: what is no known launch of a wrapper.
    """

    launches: Ints
    time_ns: Ints
    region_ns: int
    module_ns: int
    shared_ns: int
    without_module_ns: int
    unknown_ns: int


@dataclass(frozen=True, slots=True)
class ModuleTime:
    """What a module's ops take in compiled code (ns): in kernels of their own, and their parts of kernels that they
    share with other modules, by bytes. ``path`` is None for shared kernels whose parts are not known."""

    path: str | None
    alone_ns: int
    shared_ns: int


@per_view
def compiled_kernel_of_call(view: ProfileView) -> Ints:
    """Per row of `Profile.calls` the row of `CompiledKernels` that it is of, -1 for none."""
    own = view.profile.ops.compiled[view.profile.calls.op]
    return inherit(own, own >= 0, view.call_parent)


@per_selection
def compiled_time(view: ProfileView, selection: Selection) -> CompiledTime | None:
    """The time of compiled code in the selected iterations; None where none ran."""
    profile = view.profile
    calls, count = profile.calls, len(profile.compiled_kernels)
    own = profile.ops.compiled[calls.op]
    called = np.flatnonzero((own >= 0) & view.selected_calls(selection))
    spent = _spent(view, selection)
    if spent is None:
        return None
    call, time_ns = spent
    kernel = compiled_kernel_of_call(view)[call]
    modules = take_or(profile.compiled_kernels.module_count, kernel, -1)

    def total(wanted: int) -> int:
        return int(time_ns[modules == wanted].sum())

    return CompiledTime(
        launches=np.bincount(own[called], minlength=count).astype(np.int64),
        time_ns=sums(kernel[kernel >= 0], time_ns[kernel >= 0], count),
        region_ns=int(time_ns.sum()),
        module_ns=total(1),
        shared_ns=int(time_ns[modules > 1].sum()),
        without_module_ns=total(0),
        unknown_ns=total(-1),
    )


@dataclass(frozen=True, slots=True)
class RepeatedBlocks:
    """Numbered modules in one graph: the path that holds them, their number, and their share of its launches."""

    path: str
    count: int
    share: float


@per_view
def repeated_blocks(view: ProfileView) -> RepeatedBlocks | None:
    """The numbered modules with most launches in one compiled graph; None where there are none."""
    kernels, strings = view.profile.compiled_kernels, view.profile.strings
    best: RepeatedBlocks | None = None
    most = 0
    for graph, rows in rows_of_each(kernels.graph):
        del graph
        numbers: dict[str, set[int]] = {}
        launches: dict[str, int] = {}
        for row in rows[kernels.module_count[rows] > 0].tolist():
            found = {
                (numbered[1].rstrip("."), int(numbered[2]))
                for path in strings[kernels.modules[row]].split(", ")
                if (numbered := _NUMBERED.match(path))
            }
            for path, number in found:
                numbers.setdefault(path, set()).add(number)
            for path in {path for path, _ in found}:
                launches[path] = launches.get(path, 0) + 1
        for path, count in launches.items():
            if count > most and len(numbers[path]) > 1:
                most, best = count, RepeatedBlocks(path, len(numbers[path]), count / len(rows))
    return best


@per_selection
def compiled_modules(view: ProfileView, selection: Selection) -> list[ModuleTime]:
    """The modules of compiled code by falling time; their sum is that of kernels with one module and of shared ones."""
    spent = _spent(view, selection)
    if spent is None:
        return []
    profile = view.profile
    own = profile.ops.compiled[profile.calls.op]
    op = inherit(np.where(own >= 0, profile.calls.op, -1), own >= 0, view.call_parent)[spent[0]]
    time_of_op = sums(op[op >= 0], spent[1][op >= 0], len(profile.ops))
    alone: dict[str | None, int] = {}
    shared: dict[str | None, int] = {}
    for row in np.flatnonzero(time_of_op).tolist():
        paths, weights = _modules_of_op(view, row)
        time_ns = int(time_of_op[row])
        if len(paths) == 1:
            alone[paths[0]] = alone.get(paths[0], 0) + time_ns
        elif paths:
            parts = split_by(time_ns, weights) if weights else [time_ns]
            for path, part in zip(paths if weights else [None], parts, strict=True):
                shared[path] = shared.get(path, 0) + part
    found = [ModuleTime(path, alone.get(path, 0), shared.get(path, 0)) for path in {**alone, **shared}]
    return sorted(found, key=lambda one: -one.alone_ns - one.shared_ns)


def split_by(total: int, weights: Sequence[int]) -> list[int]:
    """Whole parts of the total by weights that are not all 0; their sum is the total."""
    whole, before, parts = sum(weights), 0, []
    so_far = 0
    for weight in weights:
        so_far += weight
        upto = total * so_far // whole
        parts.append(upto - before)
        before = upto
    return parts


def _modules_of_op(view: ProfileView, op: int) -> tuple[list[str], list[int]]:
    """The whole paths of the modules that a launch computes for, and the bytes that each of them moves."""
    profile, strings = view.profile, view.profile.strings
    row = int(profile.ops.compiled[op])
    kernels = profile.compiled_kernels
    if kernels.module_count[row] <= 0:
        return [], []
    below = strings[kernels.modules[row]].split(", ")
    # The op has the path of the module that holds all of them.
    inside = common_path(below)
    outside = strings[profile.ops.module[op]].removesuffix(inside).rstrip(".")
    weights = strings[kernels.module_bytes[row]]
    paths = [".".join(filter(None, (outside, path))) for path in below]
    return paths, list(map(int, weights.split(", "))) if weights else []


def _spent(view: ProfileView, selection: Selection) -> tuple[Ints, Ints] | None:
    """What ran in compiled code: the call of each, and its time (ns). None where nothing did."""
    profile = view.profile
    compiled = compiled_calls(view)
    if not (compiled & view.selected_calls(selection)).any():
        return None
    if profile.has_gpu:
        launches = profile.launches
        rows = np.flatnonzero(view.selected_launches(selection) & in_calls(compiled, launches.call))
        return launches.call[rows], launches.duration_ns[rows]
    rows = np.flatnonzero(compiled & view.selected_calls(selection))
    return rows, view.call_self_ns[rows]
