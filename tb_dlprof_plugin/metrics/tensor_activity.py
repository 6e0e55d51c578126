"""How busy the Tensor Cores were by the GPU's own counter, and where it contradicts the verdicts from kernel names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.profile import Verdict
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
