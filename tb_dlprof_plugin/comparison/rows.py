"""Groups matched sites into ops: the rows of a comparison, with the reason where a row has only one side.

Where modules are known, all sites with one module path, op type and role in both runs are one row. Without modules the
input dims tell the ops apart that a model has many of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tb_dlprof_plugin.comparison.match import How, Matching
from tb_dlprof_plugin.metrics.op_sites import Run
from tb_dlprof_plugin.model.profile import Bools, Ints, Role
from tb_dlprof_plugin.model.shapes import InputShapes

Reason = Literal["", "casts", "scaler", "compiled", "layer", "replaced", "more_calls", "other_op"]
"""Why a row is in one run only. It holds casts alone, or GradScaler's work; it runs in torch.compile's code, there or
here; the other run has no such module; the module runs other ops there; it is called more often here; none of these."""

_PARTS_OF_OPS = ("casts", "node")
"""What is listed with its op although it has no counterpart: casts, whatever autograd calls their
node, and nodes that only one precision has (gradients of several ops are added up in a cast's, in FP32 in another)."""

_Key = tuple[int, int, InputShapes, Reason]
_Name = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class Rows:
    """``group_a`` and ``group_b`` are rows of `ProfileView.groups`, -1 where a run lacks the op.

    ``of_a`` and ``of_b`` give each site's row; ``dims`` is () where sites of several dims were put together.
    """

    group_a: list[int]
    group_b: list[int]
    dims: list[InputShapes]
    how: list[How | None]
    reason: list[Reason]
    of_a: Ints
    of_b: Ints

    def __len__(self) -> int:
        return len(self.group_a)

    @property
    def paired(self) -> Bools:
        """Per row whether both runs have it."""
        return (np.array(self.group_a, dtype=np.int64) >= 0) & (np.array(self.group_b, dtype=np.int64) >= 0)


def gather(a: Run, b: Run, matching: Matching) -> Rows:
    """The rows; those with one side last."""
    builder = _RowBuilder(a, b)
    for site, partner in enumerate(matching.of_a.tolist()):
        if partner >= 0:
            builder.pair(site, partner, matching.how[site])
    for side, (run, other, mine, theirs) in enumerate(
        ((a, b, matching.of_a, matching.of_b), (b, a, matching.of_b, matching.of_a))
    ):
        builder.leave_alone(side, _reasons(run, other, mine, theirs, (matching.names[side], matching.names[1 - side])))
    return builder.rows()


class _RowBuilder:
    def __init__(self, a: Run, b: Run) -> None:
        self._runs = (a, b)
        self._named = tuple(_has_module(run) for run in (a, b))
        self._rows: dict[_Key, int] = {}
        self._how: list[How | None] = []
        self._of = (np.full(len(a.sites), -1, dtype=np.int64), np.full(len(b.sites), -1, dtype=np.int64))

    def pair(self, site: int, partner: int, how: How) -> None:
        a, b = self._runs
        group_a, group_b = int(a.sites.group[site]), int(b.sites.group[partner])
        named = self._named[0][group_a] and self._named[1][group_b]
        row = self._row((group_a, group_b, () if named else a.sites.dims[site], ""), how)
        self._of[0][site] = self._of[1][partner] = row

    def leave_alone(self, side: int, reasons: dict[int, Reason | Literal["node"]]) -> None:
        """Gives the unmatched sites rows of their own, or that of the op that they are a part of."""
        sites, row_of = self._runs[side].sites, self._of[side]
        groups = sites.group.tolist()
        # The nodes of one op follow each other, so that the row of the site before in the group is theirs.
        before: dict[int, int] = {}
        for site in reversed(range(len(groups))):
            if row_of[site] >= 0:
                before[groups[site]] = int(row_of[site])
        for site, group in enumerate(groups):
            if site not in reasons:
                before[group] = int(row_of[site])
                continue
            reason = reasons[site]
            if reason in _PARTS_OF_OPS and group in before:
                row_of[site] = before[group]
                continue
            alone: Reason = "other_op" if reason == "node" else reason
            dims = () if self._named[side][group] or alone in ("casts", "scaler", "compiled") else sites.dims[site]
            row_of[site] = self._row((group, -1, dims, alone) if side == 0 else (-1, group, dims, alone), None)

    def rows(self) -> Rows:
        keys = list(self._rows)
        return Rows(
            [key[0] for key in keys],
            [key[1] for key in keys],
            [key[2] for key in keys],
            self._how,
            [key[3] for key in keys],
            *self._of,
        )

    def _row(self, key: _Key, how: How | None) -> int:
        row = self._rows.setdefault(key, len(self._rows))
        if row == len(self._how):
            self._how.append(how)
        return row


def _has_module(run: Run) -> list[bool]:
    return [bool(run.view.profile.strings[module]) for module in run.view.groups.module.tolist()]


def _reasons(
    run: Run, other: Run, partner: Ints, others_partner: Ints, shown: tuple[Mapping[str, str], Mapping[str, str]]
) -> dict[int, Reason | Literal["node"]]:
    """Per unmatched site of ``run`` why ``other`` has none."""
    sites, names, others = run.sites, _group_names(run, shown[0]), _group_names(other, shown[1])
    strings, strings_there = run.view.profile.strings, other.view.profile.strings
    modules = set(shown[1].values())
    nodes_there: dict[_Name, set[str]] = defaultdict(set)
    for group, node in zip(other.sites.group.tolist(), other.sites.node.tolist(), strict=True):
        nodes_there[others[group]].add(strings_there[node])
    left = other.sites.group[(others_partner < 0) & ~other.sites.amp_only]
    left_there = {others[group][:2] for group in left.tolist()}
    compiled_there = {others[group][0] for group in other.sites.group[other.sites.compiled].tolist()}
    scaling = _scaler_sites(run)
    result: dict[int, Reason | Literal["node"]] = {}
    for site in np.flatnonzero(partner < 0).tolist():
        name = role, module, _ = names[int(sites.group[site])]
        if sites.amp_only[site]:
            result[site] = "scaler" if scaling[site] else "casts"
        elif name in nodes_there:
            same = role != Role.BACKWARD or strings[int(sites.node[site])] in nodes_there[name]
            result[site] = "more_calls" if same else "node"
        elif sites.compiled[site] or role in compiled_there:
            result[site] = "compiled"
        elif module and modules and module not in modules:
            result[site] = "layer"
        elif module and (role, module) in left_there:
            result[site] = "replaced"
        else:
            result[site] = "other_op"
    return result


def _group_names(run: Run, shown: Mapping[str, str]) -> list[_Name]:
    groups, strings = run.view.groups, run.view.profile.strings
    return [
        (role, shown.get(strings[module], strings[module]), strings[op_type])
        for role, module, op_type in zip(
            groups.role.tolist(), groups.module.tolist(), groups.op_type.tolist(), strict=True
        )
    ]


def _scaler_sites(run: Run) -> list[bool]:
    result = np.zeros(len(run.sites), dtype=np.bool_)
    rows = run.scaler & (run.sites.of_call >= 0)
    result[run.sites.of_call[rows]] = True
    flags: list[bool] = result.tolist()
    return flags
