"""Which counters of Nsight Compute belong to which launch of a run, and the verdicts that follow from them.

Both are runs of one program: a launch is found by its kernel's name, its sizes and its place among the launches of the
same name and sizes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.model.profile import Ints, KernelCounters, KernelKind, Kernels, LaunchConfigs, Launches, Verdict
from tb_dlprof_plugin.model.string_table import StringTable

MEASURED = "measured"
"""The rule of a verdict that a counter decided."""

_Key = tuple[str, tuple[int, ...]]


def counters_of_launches(
    counters: KernelCounters, kernels: Kernels, launches: Launches, configs: LaunchConfigs, strings: list[str]
) -> Ints:
    """Per launch its row of ``counters``, -1 where none was measured.

    Names are compared in full, and by the function's name alone (as ``ncu --print-kernel-base function`` writes it)
    where no name of the run is equal and one kernel alone has this one. Where as many launches were measured as the run
    has, or the run has a multiple of them, the order says which is which; else the one of median time stands for all.
    """
    result = np.full(len(launches.kernel), -1, dtype=np.int64)
    if not len(counters):
        return result
    names = {row: _spelled(strings[name]) for row, name in enumerate(kernels.name.tolist())}
    in_full, by_base = set(names.values()), defaultdict(set)
    for name in in_full:
        by_base[_base(name)].add(name)

    measured: dict[_Key, list[int]] = defaultdict(list)
    for row, name in enumerate(counters.name.tolist()):
        spelled = _spelled(strings[name])
        alike = by_base.get(_base(spelled), set())
        known = spelled if spelled in in_full else next(iter(alike)) if len(alike) == 1 else None
        if known is not None:
            measured[known, _sizes(counters.grid[row], counters.block[row])].append(row)

    sizes = [_sizes(grid, block) for grid, block in zip(configs.grid, configs.block, strict=True)]
    launched: dict[_Key, list[int]] = defaultdict(list)
    is_kernel = kernels.kind[launches.kernel] == KernelKind.KERNEL
    for row in np.flatnonzero(is_kernel).tolist():
        launched[names[int(launches.kernel[row])], sizes[int(launches.config[row])]].append(row)
    for key, rows in launched.items():
        found = measured.get(key) or _of_any_size(measured, key)
        if not found:
            continue
        if len(rows) % len(found) == 0:
            result[rows] = np.resize(np.array(found), len(rows))
        else:
            result[rows] = sorted(found, key=lambda row: int(counters.duration_ns[row]))[len(found) // 2]
    return result


def with_measured_verdicts(
    kernels: Kernels, kernel_of_launch: Ints, row_of_launch: Ints, counters: KernelCounters, strings: list[str]
) -> Kernels:
    """The kernels, with the verdict that their launches' counters of the Tensor Core pipe give: yes where any worked
    there, no where all were measured and none did. Appends to ``strings``."""
    if not len(counters):
        return kernels
    known = np.flatnonzero((row_of_launch >= 0) & (counters.tensor_instructions[row_of_launch] >= 0))
    if not len(known):
        return kernels
    worked = counters.tensor_instructions[row_of_launch[known]] > 0
    count = len(kernels)
    launched = np.bincount(kernel_of_launch, minlength=count)
    measured = np.bincount(kernel_of_launch[known], minlength=count)
    using = np.bincount(kernel_of_launch[known][worked], minlength=count)
    yes, no = using > 0, (using == 0) & (measured == launched) & (launched > 0)
    rule = StringTable.over(strings).add(MEASURED)
    return replace(
        kernels,
        tensor_core=np.where(yes, int(Verdict.YES), np.where(no, int(Verdict.NO), kernels.tensor_core)),
        precision=np.where(no, 0, kernels.precision),
        rule=np.where(yes | no, rule, kernels.rule),
    )


def _of_any_size(measured: dict[_Key, list[int]], key: _Key) -> list[int]:
    """The launches of a name where the sizes of either were not recorded."""
    name, sizes = key
    return [
        row
        for (other, other_sizes), rows in measured.items()
        if other == name and (min(sizes) < 0 or min(other_sizes) < 0)
        for row in rows
    ]


def _sizes(grid: Ints, block: Ints) -> tuple[int, ...]:
    return (*grid.tolist(), *block.tolist())


def _spelled(name: str) -> str:
    """A name without what profilers spell differently: spaces, and the type of what a template returns."""
    return "".join(name.removeprefix("void ").split())


def _base(name: str) -> str:
    """The function's name, without its namespace, arguments of templates and of the call."""
    for end in ("(anonymousnamespace)", "<unnamed>"):
        name = name.replace(end, "")
    return name.partition("<")[0].partition("(")[0].rpartition("::")[2]
