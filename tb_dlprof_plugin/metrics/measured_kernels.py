"""What Nsight Compute measured of launches, where its counters were imported into the run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.profile_view import ProfileView


@dataclass(frozen=True, slots=True)
class KernelMeasurement:
    """Of launches of one kernel: ``launches`` were measured; ``occupancy_percent`` is the achieved one, the mean
    weighted by time in the run. Sums are over all launches, and None where any was not measured."""

    launches: int
    occupancy_percent: float | None
    dram_bytes: int | None
    flops: int | None
    tensor_instructions: int | None


def measured_kernel(view: ProfileView, launches: Ints) -> KernelMeasurement | None:
    """What is known of these launches; None where none of them was measured."""
    counters, row = view.profile.kernel_counters, view.launch_counters[launches]
    known = row >= 0
    if not known.any():
        return None
    weight = view.profile.launches.duration_ns[launches]
    with_occupancy = known & (counters.occupancy_permille[row] >= 0) & (weight > 0)
    occupancy = None
    if with_occupancy.any():
        values = counters.occupancy_permille[row[with_occupancy]] / 10
        occupancy = float(np.average(values, weights=weight[with_occupancy]))

    def total(column: Ints) -> int | None:
        return int(column[row].sum()) if known.all() and (column[row] >= 0).all() else None

    return KernelMeasurement(
        launches=int(known.sum()),
        occupancy_percent=occupancy,
        dram_bytes=total(counters.dram_bytes),
        flops=total(counters.flops),
        tensor_instructions=total(counters.tensor_instructions),
    )
