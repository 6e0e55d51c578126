"""Arithmetic and copied bytes of each op over the selected iterations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.flops import UNKNOWN, matrix_calls
from tb_dlprof_plugin.metrics.roofline import roofline
from tb_dlprof_plugin.metrics.unattributed_ops import all_ops, selected_activities
from tb_dlprof_plugin.model.profile import Bools, Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class OpWork:
    """One row per row of `AllOps`; `flops.UNKNOWN` is -1.

    Attributes:
        flops: of the matrix routines in the op; 0 where it has none, unknown where those of any call are.
        multiplies: whether it called a matrix routine.
        copied_bytes: what its copies and sets moved.
    """

    flops: Ints
    multiplies: Bools
    copied_bytes: Ints

    def flops_of(self, row: int) -> int | None:
        """FLOPs; None where they are unknown or the op has no matrix routine, whose FLOPs alone are counted."""
        return int(self.flops[row]) if self.multiplies[row] and self.flops[row] != UNKNOWN else None

    def merged(self, into: Ints, rows: int) -> OpWork:
        """The work of ``rows`` rows that each hold several ops; ``into`` has the new row of each."""
        flops, multiplies = sums(into, self.flops, rows), np.zeros(rows, dtype=np.bool_)
        multiplies[into[self.multiplies]] = True
        flops[into[self.flops == UNKNOWN]] = UNKNOWN
        return OpWork(flops, multiplies, sums(into, self.copied_bytes, rows))


@per_selection
def op_work(view: ProfileView, selection: Selection) -> OpWork:
    """The work of every op."""
    every, launches = all_ops(view), view.profile.launches
    work = matrix_calls(view, selection)
    group = view.call_group[work.call]
    inside = group >= 0
    flops, multiplies = np.zeros(len(every), dtype=np.int64), np.zeros(len(every), dtype=np.bool_)
    multiplies[group[inside]] = True
    np.add.at(flops, group[inside], work.flops[inside])
    flops[group[inside & (work.flops == UNKNOWN)]] = UNKNOWN
    flops[list(roofline(view, selection).impossible)] = UNKNOWN
    rows = selected_activities(view, selection)
    return OpWork(flops, multiplies, sums(every.of_launch[rows], np.maximum(launches.bytes[rows], 0), len(every)))
