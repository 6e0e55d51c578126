"""Times of each op type over the instances of all ops of the type: DLProf's Op Type Summary Report.

Times are accumulated over instances, so that they sum to those of the ops. In addition there is the flattened GPU time
(User Guide 1.8, section 8.5): the union of the intervals in which work of the type ran, per GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.op_statistics import OpStatistics, op_statistics
from tb_dlprof_plugin.metrics.op_work import OpWork, op_work
from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.metrics.unattributed_ops import all_ops, selected_activities
from tb_dlprof_plugin.model.intervals import union
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class OpTypes:
    """One row per op type.

    Attributes:
        names: of the types.
        of_op: per row of `AllOps` its type.
        nodes: number of ops of the type that ran in the selection.
        statistics: as of one op that has the instances of all.
        work: of all ops of the type.
        cpu_self_ns: of all ops of the type, without what lies outside every op (ns).
        flattened_gpu_ns: union of the intervals in which work of the type ran, summed over the GPUs (ns).
    """

    names: list[str]
    of_op: Ints
    nodes: Ints
    statistics: OpStatistics
    work: OpWork
    cpu_self_ns: Ints
    flattened_gpu_ns: Ints

    def __len__(self) -> int:
        return len(self.names)


@per_selection
def op_types(view: ProfileView, selection: Selection) -> OpTypes:
    """The op types of the selected iterations."""
    every, found = all_ops(view), op_statistics(view, selection)
    names = [view.profile.strings[i] for i in view.groups.op_type.tolist()] + every.names
    distinct = sorted(set(names))
    number = {name: row for row, name in enumerate(distinct)}
    of_op = np.array([number[name] for name in names], dtype=np.int64)
    count = len(distinct)
    ran = (found.instances > 0) | (found.kernel_calls > 0) | (found.cpu.total > 0)
    return OpTypes(
        names=distinct,
        of_op=of_op,
        nodes=np.bincount(of_op[ran], minlength=count).astype(np.int64),
        statistics=OpStatistics(
            instances=sums(of_op, found.instances, count),
            kernel_calls=sums(of_op, found.kernel_calls, count),
            cpu=found.cpu.merged(of_op, count),
            gpu=found.gpu.merged(of_op, count),
            overhead=found.overhead.merged(of_op, count),
            idle=found.idle.merged(of_op, count),
        ),
        work=op_work(view, selection).merged(of_op, count),
        cpu_self_ns=sums(of_op[: every.groups], op_totals(view, selection).cpu_self_ns, count),
        flattened_gpu_ns=_flattened(view, selection, of_op, count),
    )


def _flattened(view: ProfileView, selection: Selection, of_op: Ints, count: int) -> Ints:
    launches = view.profile.launches
    rows = selected_activities(view, selection)
    result = np.zeros(count, dtype=np.int64)
    if not len(rows):
        return result
    place = of_op[all_ops(view).of_launch[rows]] * (int(launches.device.max()) + 2) + launches.device[rows] + 1
    order = np.argsort(place, kind="stable")
    rows, place = rows[order], place[order]
    for part in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(place)) + 1):
        mine = rows[part]
        start, stop = union(launches.start_ns[mine], (launches.start_ns + launches.duration_ns)[mine])
        result[of_op[all_ops(view).of_launch[mine[0]]]] += int((stop - start).sum())
    return result
