"""Estimates how much a change shortens the step without the profiler, with an interval.

Every saving comes from `simulation`: the share by which a change shortens the replayed step, applied to the step
without the profiler. An effect that a replay cannot show is a share of that step. So no saving exceeds the step, and
those of several findings are combined by simulating all their changes (`combined`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.finding import SavingItem, Severity, Silent
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.advice.thresholds import HIGH_SEVERITY_PERCENT, MEDIUM_SEVERITY_PERCENT, SpeedupRange
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.intervals import Intervals, union
from tb_dlprof_plugin.model.profile import Bools, Floats
from tb_dlprof_plugin.planning import Forecast, Precision
from tb_dlprof_plugin.planning.candidates import forecasts
from tb_dlprof_plugin.planning.forecast_text import gains, headline
from tb_dlprof_plugin.simulation.change import Change, without_calls
from tb_dlprof_plugin.simulation.simulator import SimulatedStep

ALL_OF_IT = SpeedupRange(1.0, 1.0, 1.0)
_CPU_ERROR, _GPU_ERROR = 0.064, 0.02
"""Share of the remaining step. If the CPU paces it: the median error of an estimated step on recorded runs
(docs/comparing.md). If the GPU does: the variation of step times within a run."""
_HALVINGS = 8


@dataclass(frozen=True, eq=False)
class Saving:
    """A saving, and the changes behind it: the expected one and the best case.

    ``room_ns`` is the most that can be saved: the remaining GPU work takes its time. ``unknown_because`` says why
    the numbers cannot be estimated; "" if they can.
    """

    item: SavingItem
    change: Change
    most: Change
    room_ns: float
    unknown_because: str = ""

    @property
    def low_ns(self) -> int:
        """Lower bound of the saving per step."""
        return self.item.low_ns

    @property
    def expected_ns(self) -> int:
        """Expected saving per step."""
        return self.item.expected_ns

    @property
    def high_ns(self) -> int:
        """Upper bound of the saving per step."""
        return self.item.high_ns

    @property
    def percent(self) -> float:
        """The expected saving in percent of the step without the profiler."""
        return self.item.percent

    @property
    def derivation(self) -> str:
        """How the saving was computed."""
        return self.item.derivation

    def between(self, low_ns: float, high_ns: float, noise_ns: float = 0.0) -> Saving:
        """The same saving with other bounds, which may exceed `room_ns` by the variation of a step."""
        room = self.room_ns + noise_ns
        low, high = (round(min(max(end, 0.0), room)) for end in (low_ns, high_ns))
        item = msgspec.structs.replace(
            self.item, low_ns=min(low, self.expected_ns), high_ns=max(high, self.expected_ns)
        )
        return replace(self, item=item)


def shorter_step(
    context: RuleContext,
    low: Change,
    expected: Change,
    high: Change,
    derivation: str,
    at_most_ns: float | None = None,
    realised: SpeedupRange = ALL_OF_IT,
) -> Saving:
    """The saving if the step changed in one of three ways.

    Args:
        context: the run.
        low: what is certainly removed. expected: what should be removed. high: the most that can be removed.
        derivation: how the changes follow; a sentence on the simulation is appended.
        at_most_ns: no more than this can be saved per step.
        realised: what part of such a saving is realised, lowest and highest.
    """
    known = context.simulation
    step, before = known.estimate.ns, known.step()
    replayed: dict[tuple[int, float], SimulatedStep] = {}

    def after(change: Change, share: float) -> SimulatedStep:
        key = (id(change), share)
        if key not in replayed:
            replayed[key] = known.step([change], share)
        return replayed[key]

    def gone(change: Change, share: float) -> float:
        return max(step - after(change, share).ns, 0.0)

    most = max(step - after(high, known.share.low).gpu_ns, 0.0)
    most = most if at_most_ns is None else min(most, max(at_most_ns, 0.0))

    middle = min(gone(expected, known.share.expected), most)
    ends = [middle]
    if high is not expected or 100.0 * middle >= thresholds.WORTHWHILE_SAVING_PERCENT * step:
        ends += [gone(change, share) for change in (low, high) for share in {known.share.low, known.share.high}]
    least, best = min(ends) * realised.low, max(ends) * realised.high
    if round(best) > 0:
        error = _GPU_ERROR if before.gpu_paced else _CPU_ERROR
        least, best = least - error * (step - least), best + error * (step - best)
    how = (
        "The light window, replayed,"
        if known.from_light_window
        else "The recorded launches, replayed with the CPU as fast as in the steps that were timed,"
        if known.timed
        else "The recorded launches, replayed with launching in "
        f"{known.share.low:.2f} to {known.share.high:.2f} of its recorded time,"
    )
    part = (
        f" Of such savings {realised.low:g} to {realised.high:g} are realised."
        if (realised.low, realised.high) != (1.0, 1.0)
        else ""
    )
    text = (
        f"{derivation} Without the profiler the step takes {ms(step)} ({known.estimate.words}). {how} become "
        f"{percent(middle, step) or 0.0:.0f} % shorter by the change.{part}"
    )
    return _saving(context, (least, middle, best), most, text, expected, high)


def saved(
    context: RuleContext,
    expected: Change,
    derivation: str,
    low: Change | None = None,
    high: Change | None = None,
    limit_ns: float | None = None,
) -> Saving:
    """`shorter_step` of a step without some of its waits and copies.

    Args:
        context: the run.
        expected: the change.
        derivation: how it comes about.
        low: the change that saves least; the same where None.
        high: the change that saves most; the same where None.
        limit_ns: the most that can be saved per step.
    """
    return shorter_step(
        context, low or expected, expected, high or expected, derivation, limit_ns, thresholds.REPLAYED_WAITS
    )


def with_doubt_of_step(context: RuleContext, found: Saving) -> Saving:
    """The same saving, its interval widened by that of the step: a share of a step is no better known than the step."""
    step = context.simulation.estimate
    least, most = step.low_ns / step.ns, step.high_ns / step.ns
    return found.between(found.low_ns * least, found.high_ns * most, found.room_ns * (most - 1))


def step_saving(context: RuleContext, low: Change, expected: Change, high: Change, derivation: str) -> Saving:
    """`shorter_step`, its interval widened by the variation of a step between runs."""
    found = shorter_step(context, low, expected, high, derivation)
    noise = thresholds.STEP_NOISE * context.simulation.estimate.ns
    return found.between(found.low_ns - noise, found.high_ns + noise, noise)


def stated(context: RuleContext, low_ns: float, expected_ns: float, high_ns: float, derivation: str) -> Saving:
    """A saving that a replay cannot show, such as one in another process or on another GPU; at most the step."""
    step = context.simulation.estimate.ns
    changes = [Change(keep_rest=max(1.0 - value / step, 0.0) if step else 1.0) for value in (expected_ns, high_ns)]
    return _saving(context, (low_ns, expected_ns, high_ns), step, derivation, changes[0], changes[1], by_replay=False)


def of_job_step(context: RuleContext, job: Job, saved_ms: float) -> float:
    """What a change saves of a job's step (ns), as the same share of the run's step."""
    assert job.step is not None
    return min(saved_ms / job.step.ms, 1.0) * context.step_ns


def partly(
    context: RuleContext,
    change: Callable[[float], Change],
    low_ns: float,
    expected_ns: float,
    high_ns: float,
    derivation: str,
) -> Saving:
    """A known saving that comes from less of something.

    Args:
        context: the run.
        change: the change that leaves a share of it.
        low_ns: the saving at the least.
        expected_ns: the expected saving; the share that leads to it is found by bisection.
        high_ns: the saving at best.
        derivation: how the saving was computed.
    """
    known = context.simulation
    step = known.estimate.ns

    def leaving(saved_ns: float) -> Change:
        least, most = 0.0, 1.0
        if step - known.step([change(least)]).ns <= saved_ns:
            return change(least)
        for _ in range(_HALVINGS):
            middle = (least + most) / 2
            enough = step - known.step([change(middle)]).ns >= saved_ns
            least, most = (middle, most) if enough else (least, middle)
        return change(least)

    room = max(step - known.step([change(0.0)], known.share.low).gpu_ns, 0.0)
    ends = (low_ns, expected_ns, high_ns)
    return _saving(context, ends, room, derivation, leaving(expected_ns), leaving(high_ns))


def faster_kernels(
    context: RuleContext, parts: list[tuple[Bools, SpeedupRange]], derivation: str, slower: SpeedupRange = ALL_OF_IT
) -> Saving:
    """The saving if kernels became faster.

    Args:
        context: the run.
        parts: launches with their expected speedup.
        derivation: how the factors come about.
        slower: how much longer the CPU takes for a step afterwards.
    """
    iterations = context.profile.iterations
    whole = union(iterations.host_start_ns, iterations.host_stop_ns)

    def end(which: str, longer: float) -> Change:
        stays = np.ones(len(context.profile.launches))
        for launches, speedup in parts:
            stays[launches] /= getattr(speedup, which)
        return Change(cpu=whole, keep_cpu=longer, gpu=stays)

    return shorter_step(
        context, end("low", slower.high), end("expected", slower.expected), end("high", slower.low), derivation
    )


def by_forecast(context: RuleContext, precision: Precision) -> Saving | Silent | None:
    """The saving of another precision by the run's forecast, silent where the step gains nothing; None without one."""
    found = forecasts(context.view).get(precision)
    if found is None:
        return None
    return of_forecast(context, found) if gains(found) else Silent(f"Forecast: {headline(found)}")


def why_unknown(context: RuleContext, launches: Bools, kernels: str) -> Silent | str:
    """Why it cannot be known what faster kernels save, "" where it can; silent where they take hardly any GPU time.

    ``kernels`` names the launches, as the subject of a sentence.
    """
    why, share = context.saving_unknown, context.kernel_share(launches)
    if why and share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{kernels} take {share:.1f} % of the kernels' time.")
    return why


def of_forecast(context: RuleContext, found: Forecast) -> Saving:
    """The saving of a forecast; the lower bound is below 0 if the step may get longer."""
    step = context.simulation.estimate
    low, expected, high = (
        round(found.base_ns * (1.0 - share)) for share in (found.most_share, 1.0 / found.speedup, found.least_share)
    )
    # The uncertainty of the step itself widens the interval.
    low, high = (round(low * step.low_ns / step.ns) if low > 0 else low), round(high * step.high_ns / step.ns)
    high = max(expected, min(high, round(found.base_ns)))
    casts = f" Casts take {ms(found.cast_ns)} of it." if found.casts else ""
    derivation = (
        "Forecast: the launches of this run replayed with the kernel times of similar measured ops. "
        f"{headline(found)}{casts} Steps are without the profiler."
    )
    item = SavingItem(low, expected, high, percent(expected, found.base_ns) or 0.0, derivation)
    return Saving(item, found.change, found.change, found.base_ns, _unknown(context))


def change(context: RuleContext, *parts: tuple[Bools, float | Floats], gone: Bools | None = None) -> Change:
    """The change of a step in which kernels are faster and calls are removed.

    Args:
        context: the run.
        parts: launches, with the share of their time that remains.
        gone: removed calls, with everything in them and their launches.
    """
    stays = np.ones(len(context.profile.launches))
    for launches, share in parts:
        stays[launches] *= share if isinstance(share, float) else share[launches]
    return Change(gpu=stays) if gone is None else without_calls(context.view, gone, stays)


def without_waits(
    context: RuleContext, waits: Bools, gone: Bools | None = None, new_ns: Floats | None = None
) -> Change:
    """The change of a step in which some synchronising calls are assumed to return immediately.

    Args:
        context: the run.
        waits: those calls.
        gone: removed calls, with their launches.
        new_ns: new time of each row of `Profile.launches`.
    """
    stays = None if new_ns is None else new_ns / np.maximum(context.profile.launches.duration_ns, 1)
    if gone is None:
        return Change(gpu=stays, removed_waits=waits)
    found = without_calls(context.view, gone, stays)
    assert found.removed_waits is not None
    return replace(found, removed_waits=found.removed_waits | waits)


def less_cpu(times: Intervals) -> Callable[[float], Change]:
    """Changes that leave a share of some of the CPU's time."""
    return lambda share: Change(cpu=times, keep_cpu=share)


def that_goes(left: SpeedupRange) -> str:
    """The removed share, from the shares that may remain: "20 to 100 % (expected 75 %)"."""
    least, expected, most = (100 * (1 - share) for share in (left.high, left.expected, left.low))
    return f"{least:.0f} to {most:.0f} % (expected {expected:.0f} %)"


def severity(item: SavingItem | None) -> Severity:
    """By expected saving; medium if it is unknown. One level less if the step may get longer."""
    if item is None:
        return "medium"
    uncertain = item.low_ns < 0
    if item.percent >= HIGH_SEVERITY_PERCENT:
        return "medium" if uncertain else "high"
    return "medium" if item.percent >= MEDIUM_SEVERITY_PERCENT and not uncertain else "low"


def _saving(
    context: RuleContext,
    ends: tuple[float, float, float],
    room_ns: float,
    derivation: str,
    expected: Change,
    most: Change,
    by_replay: bool = True,
) -> Saving:
    step = context.simulation.estimate.ns
    low, middle, high = (min(max(value, 0.0), room_ns) for value in ends)
    item = SavingItem(
        low_ns=round(min(low, middle)),
        expected_ns=round(middle),
        high_ns=round(max(high, middle)),
        percent=percent(middle, step) or 0.0,
        derivation=derivation,
    )
    return Saving(item, expected, most, room_ns, _unknown(context) if by_replay else "")


def _unknown(context: RuleContext) -> str:
    known = context.simulation
    if known.trusted or known.off_percent is None:
        return ""
    return (
        f"The saving cannot be estimated: the replay of this recording is {abs(known.off_percent):.0f} % off what was "
        "recorded."
    )
