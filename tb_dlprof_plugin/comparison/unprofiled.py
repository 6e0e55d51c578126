"""What a recorded step takes without the profiler.

Where the GPU sets the pace the recorded step is it. Where the CPU does, the profiler made the step longer: on the
recorded pairs by 60 % at the median. There the recorded launches are replayed with the CPU as fast as it is without
the profiler (`forecast.calibration`), which comes within 7 % at the median (docs/comparing.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.comparison.forecast.calibration import CALIBRATION
from tb_dlprof_plugin.comparison.forecast.host import host_clock
from tb_dlprof_plugin.comparison.forecast.launched import events, launched
from tb_dlprof_plugin.comparison.forecast.replay import replay
from tb_dlprof_plugin.measures.frame import Frame, Selection, per_selection
from tb_dlprof_plugin.measures.iterations import step_totals

GPU_PACED_PERCENT = 90.0
"""With the GPU busy for this share of the recorded step, the profiler changes the step by no more than the rest."""


@dataclass(frozen=True, slots=True)
class UnprofiledStep:
    """Step time without the profiler (ns); ``low_ns`` to ``high_ns`` by how much the profiler may have slowed the CPU.

    ``recorded_ns`` is the recorded step. ``estimated`` says whether ``ns`` is anything else.
    """

    ns: float
    low_ns: float
    high_ns: float
    recorded_ns: float
    estimated: bool


@per_selection
def unprofiled_step(frame: Frame, selection: Selection) -> UnprofiledStep:
    """The mean step of the selected iterations; where it has to be estimated, of all.

    Without a GPU it is the recorded one: what the profiler adds to CPU ops alone was not measured.
    """
    steps = step_totals(frame, selection)
    recorded = float(steps.average_ns)
    utilization = steps.gpu_utilization
    if utilization is None or utilization >= GPU_PACED_PERCENT:
        return UnprofiledStep(recorded, recorded, recorded, recorded, estimated=False)
    known = CALIBRATION
    # The profiler makes no step shorter.
    middle, low, high = (
        min(_replayed_ns(frame, share), recorded)
        for share in (known.unprofiled, known.unprofiled_low, known.unprofiled_high)
    )
    return UnprofiledStep(middle, min(low, middle), max(high, middle), recorded, estimated=True)


def _replayed_ns(frame: Frame, unprofiled: float) -> float:
    work = launched(frame, host_clock(frame, unprofiled))
    is_launch = work.launch >= 0
    duration = frame.profile.launches.duration_ns
    gpu_ns = np.where(is_launch, duration[np.maximum(work.launch, 0)], 0).astype(np.float64)
    return replay(events(work, gpu_ns, {}), work.gap_ns).step_ns
