"""Arithmetic and copied bytes of each op over the selected iterations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.frame import Frame, Selection, per_selection
from tb_dlprof_plugin.measures.all_ops import all_ops, selected_activities
from tb_dlprof_plugin.measures.figure import sums
from tb_dlprof_plugin.measures.flops import UNKNOWN, matrix_calls
from tb_dlprof_plugin.storage.model import Bools, Ints


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
def op_work(frame: Frame, selection: Selection) -> OpWork:
    """The work of every op."""
    every, launches = all_ops(frame), frame.profile.launches
    work = matrix_calls(frame, selection)
    group = frame.call_group[work.call]
    inside = group >= 0
    flops, multiplies = np.zeros(len(every), dtype=np.int64), np.zeros(len(every), dtype=np.bool_)
    multiplies[group[inside]] = True
    np.add.at(flops, group[inside], work.flops[inside])
    flops[group[inside & (work.flops == UNKNOWN)]] = UNKNOWN
    rows = selected_activities(frame, selection)
    return OpWork(flops, multiplies, sums(every.of_launch[rows], np.maximum(launches.bytes[rows], 0), len(every)))
