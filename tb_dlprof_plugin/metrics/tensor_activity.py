"""What Nsight tools measured: how busy the Tensor Cores were, and the counters of single kernels.

Samples of Nsight Systems show where they contradict the verdicts from kernel names; counters of Nsight Compute were
imported into the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.profile import Ints, Verdict
from tb_dlprof_plugin.profile_view import ProfileView, Selection

NO_TENSOR_CORES_PERCENT = 1.0
"""Below it a kernel counts as one without Tensor Cores: FP16 arithmetic and neighbours at the edges of samples."""
USES_TENSOR_CORES_PERCENT = 5.0
"""From it on a kernel must use them, whatever its name. Small matrix products on Tensor Cores reach as little."""
_LEAST_MEASURED_NS = 50_000
"""Time of a kernel below which its mean is of too few samples: five at 10 kHz, nsys' default."""


@dataclass(frozen=True, slots=True)
class SampledKernel:
    """A kernel that ran alone while samples were taken; ``kernel`` is its row in `Profile.kernels`."""

    kernel: int
    active_percent: float
    measured_ns: int


@dataclass(frozen=True, slots=True)
class MeasuredActivity:
    """What the counter ``metric`` says.

    Attributes:
        active_percent: mean over the time of the selected iterations that samples cover; idle time counts as 0.
        measured_ns: that time, over all GPUs.
        kernels: of all recorded iterations, by falling measured time.
        contradicting: those of ``kernels`` whose verdict it contradicts.
    """

    metric: str
    active_percent: float
    measured_ns: int
    kernels: tuple[SampledKernel, ...]
    contradicting: tuple[SampledKernel, ...]


def measured_activity(view: ProfileView, selection: Selection) -> MeasuredActivity | None:
    """The measured activity; None where no samples were recorded in the selected iterations."""
    profile, table = view.profile, view.profile.tensor_activity
    steps = (table.iteration >= selection.first) & (table.iteration <= selection.last)
    time = int(table.measured_ns[steps].sum())
    if not time:
        return None
    active = float((table.active_ppm[steps] * (table.measured_ns[steps] / time)).sum()) / 1e4
    rows = np.flatnonzero(table.kernel >= 0)
    rows = rows[np.argsort(-table.measured_ns[rows], kind="stable")]
    kernels = tuple(
        SampledKernel(int(table.kernel[row]), float(table.active_ppm[row]) / 1e4, int(table.measured_ns[row]))
        for row in rows
    )
    verdict = profile.kernels.tensor_core
    return MeasuredActivity(
        metric=profile.strings[int(table.metric[0])],
        active_percent=active,
        measured_ns=time,
        kernels=kernels,
        contradicting=tuple(one for one in kernels if _contradicts(one, int(verdict[one.kernel]))),
    )


def _contradicts(measured: SampledKernel, verdict: int) -> bool:
    if measured.measured_ns < _LEAST_MEASURED_NS:
        return False
    if verdict == Verdict.YES:
        return measured.active_percent < NO_TENSOR_CORES_PERCENT
    return verdict == Verdict.NO and measured.active_percent >= USES_TENSOR_CORES_PERCENT


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
