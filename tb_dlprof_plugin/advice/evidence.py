"""Evidence rows: the ops behind a number."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.finding import EvidenceRow
from tb_dlprof_plugin.measures.frame import op_name
from tb_dlprof_plugin.measures.iterations import percent
from tb_dlprof_plugin.storage.model import Bools, Role

_ROWS = 5


def op_rows(case: Case, launches: Bools) -> list[EvidenceRow]:
    """The ops that launched most of the given GPU time, per step, with their share of it."""
    profile, groups, strings = case.profile, case.frame.groups, case.profile.strings
    rows = launches & (case.frame.launch_group >= 0)
    time = np.bincount(case.frame.launch_group[rows], weights=profile.launches.duration_ns[rows], minlength=len(groups))
    whole = float(time.sum())
    result = []
    for group in np.argsort(-time, kind="stable")[:_ROWS].tolist():
        if time[group] <= 0:
            break
        backward = " (bprop)" if groups.role[group] == Role.BACKWARD else ""
        result.append(
            EvidenceRow(
                label=op_name(strings[groups.module[group]], strings[groups.op_type[group]]) + backward,
                value_ns=int(time[group]) // case.selection.count,
                percent=percent(float(time[group]), whole),
                page="ops",
                id=groups.ids[group],
            )
        )
    return result
