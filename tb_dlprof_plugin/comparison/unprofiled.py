"""What a recorded step takes without the profiler.

The hook may have timed steps before the profiler began. Without them, where the GPU sets the pace the recorded step is
it. Where the CPU does, the profiler made the step longer: on the recorded pairs by 56 % at the median. There the
recorded launches are replayed with the CPU as fast as it is without the profiler (`forecast.calibration`), which comes
within 6.4 % at the median (docs/comparing.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.comparison.forecast.calibration import CALIBRATION
from tb_dlprof_plugin.comparison.forecast.launched import replay_as_recorded
from tb_dlprof_plugin.measures.frame import Frame, Selection, per_selection
from tb_dlprof_plugin.measures.iterations import step_totals

GPU_PACED_PERCENT = 90.0
"""With the GPU busy for this share of the recorded step, the profiler changes the step by no more than the rest."""


@dataclass(frozen=True, slots=True)
class UnprofiledStep:
    """Step time without the profiler (ns); ``low_ns`` to ``high_ns`` by how much the profiler may have slowed the CPU.

    ``recorded_ns`` is the recorded step. ``source`` says what ``ns`` is: that, the median of steps timed before the
    profiler began, or an estimate.
    """

    ns: float
    low_ns: float
    high_ns: float
    recorded_ns: float
    source: Literal["recorded", "timed", "estimated"]

    @property
    def estimated(self) -> bool:
        """Whether ``ns`` was measured in no way."""
        return self.source == "estimated"


@per_selection
def unprofiled_step(frame: Frame, selection: Selection) -> UnprofiledStep:
    """The mean step of the selected iterations; where it was timed before or has to be estimated, of the whole run.

    Without a GPU it is the recorded one: what the profiler adds to CPU ops alone was not measured.
    """
    steps = step_totals(frame, selection)
    recorded = float(steps.average_ns)
    timed = frame.profile.facts.unprofiled_step_ns
    if timed:
        return UnprofiledStep(float(timed), float(timed), float(timed), recorded, "timed")
    utilization = steps.gpu_utilization
    if utilization is None or utilization >= GPU_PACED_PERCENT:
        return UnprofiledStep(recorded, recorded, recorded, recorded, "recorded")
    known = CALIBRATION
    # The profiler makes no step shorter.
    middle, low, high = (
        min(replay_as_recorded(frame, share).step_ns, recorded)
        for share in (known.unprofiled, known.unprofiled_low, known.unprofiled_high)
    )
    return UnprofiledStep(middle, min(low, middle), max(high, middle), recorded, "estimated")
