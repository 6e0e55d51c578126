"""Estimates the step without the profiler, on which every rate, share, speedup and saving is based.

Four sources, the best that a recording has: steps timed without the profiler, the light window (GPU activities and CUDA
calls alone), the recorded launches replayed with the recorder's cost taken out, and, where the recorder cannot have
changed it, the recorded step itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.basis import Basis, basis
from tb_dlprof_plugin.simulation.change import Change
from tb_dlprof_plugin.simulation.clock_drift import clock_drift
from tb_dlprof_plugin.simulation.collective_waits import compared, without_waiting
from tb_dlprof_plugin.simulation.step_detection import unmarked
from tb_dlprof_plugin.simulation.timed_steps import LEAST_ERROR, LEAST_STEPS, timed_step

StepSource = Literal["measured", "light", "simulated", "recorded", "whole"]

SOURCES: dict[StepSource, str] = {
    "measured": "timed without the profiler",
    "light": "timed with GPU activities alone",
    "simulated": "estimated",
    "recorded": "as recorded",
    "whole": "the whole recording, in which no steps are marked",
}
"""The wording of a step's source on all pages."""

SHORTEST_STEP_NS = 1000.0
"""No step is shorter: a launch alone takes the CPU 2 us, and a smaller time is a damaged recording's."""
RECORDED_ERROR = 0.02
"""Of a recorded step at the GPU's pace: those of `lab/precision_pairs` and of `lab.precision_pairs.unseen` differ by
less from the timed ones in nine of ten."""
PACE_ERROR = 0.08
"""Of a step at the CPU's pace, from one run to the next (`planning.calibration`)."""
_SAME = 0.97
"""A step that is at least this share of the recorded one even with the fastest CPU is the recorded one: the GPU sets
its pace."""


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """The step without the profiler (ns).

    Attributes:
        ns: the step.
        low_ns, high_ns: ends of its 95 % interval.
        source: where ``ns`` comes from.
        recorded_ns: the mean recorded step of the selected iterations, profiler included.
        steps: number of steps that were timed; None where none were.
    """

    ns: float
    low_ns: float
    high_ns: float
    source: StepSource
    recorded_ns: float
    steps: int | None = None

    @property
    def words(self) -> str:
        """The source of the step, as a clause."""
        return SOURCES[self.source]

    @property
    def estimated(self) -> bool:
        """Whether ``ns`` is an estimate, not a measurement."""
        return self.source == "simulated"

    @property
    def whole_recording(self) -> bool:
        """Whether ``ns`` is no step: none are marked in the recording."""
        return self.source == "whole"

    @property
    def is_step(self) -> bool:
        """Whether ``ns`` is a step with a length, not a whole recording: only steps make a speedup."""
        return not self.whole_recording and self.ns > 0

    @property
    def as_recorded(self) -> bool:
        """Whether ``ns`` is what was recorded, the profiler included."""
        return self.source in ("recorded", "whole")

    @property
    def recorder_ns(self) -> float:
        """What the recorder added to each recorded step; below 0 where the recorded step is the shorter one."""
        return self.recorded_ns - self.ns


@per_selection
def step_estimate(view: ProfileView, selection: Selection) -> StepEstimate:
    """The step of a run. Only where it is the recorded one does it depend on the selected iterations.

    Where no steps are known it is the recording as it is: without the profiler it were not a step either.
    """
    recorded = _recorded(view, selection)
    if unmarked(view):
        return StepEstimate(recorded, recorded, recorded, "whole", recorded)
    facts = view.profile.facts
    groups = [group for group in (facts.unprofiled_before_ns, facts.unprofiled_after_ns) if len(group) >= LEAST_STEPS]
    if groups:
        return _measured(groups, recorded)
    if facts.unprofiled_step_ns:
        timed = float(facts.unprofiled_step_ns)
        error = LEAST_ERROR * timed
        return StepEstimate(timed, timed - error, timed + error, "measured", recorded, facts.unprofiled_steps)
    return _replayed(view, selection, recorded)


def _recorded(view: ProfileView, selection: Selection | None = None) -> float:
    steps = selection or view.selection()
    return float(round(view.profile.iterations.duration_ns[steps.first : steps.last + 1].mean()))


def _paces(known: Basis, changes: Sequence[Change] = ()) -> tuple[float, float, float]:
    """The step with the CPU as fast as it may be, as expected, and as slow."""
    share = known.share
    low, middle, high = (_pace(known, one, changes) for one in (share.low, share.expected, share.high))
    return low, middle, high


def _pace(known: Basis, share: float, changes: Sequence[Change]) -> float:
    # The error of the replay of the recorded step applies to this replay too.
    return known.run(share, changes).step_ns / (1.0 + (known.off_percent or 0.0) / 100.0)


def _of_all_ranks(
    view: ProfileView, known: Basis, low: float, middle: float, high: float
) -> tuple[float, float, float]:
    """The step of a rank that works with others: that of the rank which waits least for them, as it sets the pace.

    The others wait for it in collectives that slow down the kernels next to them, so that their own pace is too slow:
    it is the upper end. Where no other rank was recorded, the waiting may be the recorder's or the job's: the interval
    reaches from a step without collectives to one with them as recorded.
    """
    ranks = view.ranks or (view,)
    if not compared(view, ranks):
        own = without_waiting(view, ranks)
        return (low if own is None else _pace(known, known.share.low, [own.change])), middle, high
    found: list[tuple[float, tuple[float, float, float]]] = []
    for rank in ranks:
        own = without_waiting(rank, ranks)
        of_rank = known if rank is view else basis(rank, rank.selection())
        if own is not None and of_rank.off_percent is not None and of_rank.light is None:
            found.append((own.waited_ns, _paces(of_rank, [own.change])))
    _, (low, middle, high) = min(found)
    return low, middle, max(high, *(pace[1] for _, pace in found))


def _measured(groups: Sequence[Sequence[int]], recorded: float) -> StepEstimate:
    return StepEstimate(*timed_step(groups), "measured", recorded, sum(len(group) for group in groups))


def _replayed(view: ProfileView, selection: Selection, recorded: float) -> StepEstimate:
    """The launches replayed without the recorder's cost; the recorded step if that changes nothing."""
    known = basis(view, selection)
    off = known.off_percent
    if off is None:
        return StepEstimate(recorded, recorded, recorded, "recorded", recorded)
    low, middle, high = _paces(known)
    if known.light is None:
        low, middle, high = _of_all_ranks(view, known, low, middle, high)
        # The profiler makes no step shorter; of ranks that work together each has the same one.
        longest = max(recorded, *(_recorded(rank) for rank in view.ranks)) if view.ranks else recorded
        low, middle, high = (min(step, longest) for step in (low, middle, high))
    at_gpu_pace = low >= _SAME * recorded
    # A step that the CPU paces is another one in the next run.
    least = LEAST_ERROR if known.light is not None else RECORDED_ERROR if at_gpu_pace else PACE_ERROR
    # Kernels that became faster or slower while they were recorded may go on so.
    drift = (clock_drift(view, selection).kernels or 0.0) if known.light is None else 0.0
    error = max(least, abs(off) / 100.0, abs(drift) / 100.0) * middle
    low, high = max(min(low, middle) - error, 0.0), max(high, middle) + error
    if known.light is not None:
        return StepEstimate(middle, low, high, "light", recorded, len(known.replays.iterations))
    if at_gpu_pace:
        return StepEstimate(recorded, min(low, recorded), max(high, recorded), "recorded", recorded)
    return StepEstimate(middle, low, high, "simulated", recorded)
