"""Which ranges are ops and which are modules, where their texts alone do not tell.

Ranges that a program pushes by hand: those that contain others are its structure, and become modules whose path is the
chain of ranges around; those that contain none are ops. XLA's: of thunks in each other the innermost is the op, and
what a compiler runs to compile is no op of the program.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import HostKind, Ints
from tb_dlprof_plugin.readers.nvtx.nesting import anything_around, with_children
from tb_dlprof_plugin.readers.nvtx.xla import COMPILATION, DOMAIN

_MOST_LEVELS = 24


def by_structure(rows: Bools, kind: Ints, name: Ints, parent: Ints, strings: StringTable) -> tuple[Ints, Ints]:
    """Kinds and names in which the given ranges are ops and modules.

    Args:
        rows: ranges of the program.
        kind: of all ranges.
        name: of all ranges, string indices.
        parent: per range the row of the one around it, -1 for none.
        strings: receive the paths of modules.
    """
    kind, result = kind.copy(), name.copy()
    mine = np.flatnonzero(rows)
    if not len(mine):
        return kind, result
    contains = with_children(parent, rows)
    # By name: an op that once called another stays one.
    count = int(name.max()) + 1
    often = 2 * np.bincount(name[mine], weights=contains[mine], minlength=count) >= np.bincount(
        name[mine], minlength=count
    )
    structure = rows & often[name]
    kind[rows] = int(HostKind.OP)
    kind[structure] = int(HostKind.PYTHON_MODULE)
    paths: dict[tuple[int, int], int] = {}
    path = np.zeros(len(kind), dtype=np.int64)
    level = np.zeros(len(kind), dtype=np.int64)
    # Outer ranges first: their paths are known when those inside need them.
    for row in np.flatnonzero(structure)[_outer_first(structure, parent)].tolist():
        around = int(parent[row])
        while around >= 0 and not structure[around]:
            around = int(parent[around])
        above = int(path[around]) if around >= 0 else 0
        level[row] = level[around] + 1 if around >= 0 else 1
        key = (above, int(name[row]))
        if key not in paths:
            own = strings.values[name[row]].strip(". ") or "range"
            deep = above and level[row] <= _MOST_LEVELS
            paths[key] = strings.add(f"{strings.values[above]}.{own}" if deep else own)
        path[row] = paths[key]
    result[structure] = path[structure]
    return kind, result


def _outer_first(structure: Bools, parent: Ints) -> Ints:
    depth = np.zeros(len(parent), dtype=np.int64)
    around = parent.copy()
    while (around >= 0).any():
        depth += around >= 0
        around = take_or(parent, around, -1)
    return np.argsort(depth[structure], kind="stable")


def of_xla(kind: Ints, name: Ints, domain_is_xla: Bools, parent: Ints, strings: list[str]) -> Ints:
    """Kinds in which only the innermost thunks are ops, and nothing of a compilation is."""
    kind = kind.copy()
    if not domain_is_xla.any():
        return kind
    compiles = np.array([text.startswith(tuple(f"{DOMAIN}:{one}" for one in COMPILATION)) for text in strings])
    compiling = anything_around(domain_is_xla & compiles[name], parent)
    kind[compiling & domain_is_xla] = int(HostKind.ANNOTATION)
    ops = domain_is_xla & (kind == HostKind.OP)
    outer = ops & with_children(parent, ops)
    kind[outer] = int(HostKind.ANNOTATION)
    return kind
