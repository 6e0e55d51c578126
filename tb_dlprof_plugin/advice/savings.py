"""Savings: what a change of the step saves of the step without the profiler, and how sure that is.

Every saving comes from `simulation`: the share by which a change makes the replayed step shorter, of the step as it is
without the profiler. An effect that no replay shows is stated as a share of that step. So none is above the step, and
those of several findings can be had together by simulating all their changes (`combined`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.finding import SavingItem, Severity
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.thresholds import HIGH_SEVERITY_PERCENT, MEDIUM_SEVERITY_PERCENT, Speedup
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.intervals import Intervals, union
from tb_dlprof_plugin.model.profile import Bools, Floats
from tb_dlprof_plugin.planning import Forecast
from tb_dlprof_plugin.planning.forecast_text import headline
from tb_dlprof_plugin.simulation.change import Change, without_calls

ALL_OF_IT = Speedup(1.0, 1.0, 1.0)
_CPU_ERROR, _GPU_ERROR = 0.064, 0.02
"""Of what is left of a step. Where the CPU paces it: the median error of an estimated step on recorded runs
(docs/comparing.md). Where the GPU does: what step times of one run vary by."""
_HALVINGS = 8


@dataclass(frozen=True, eq=False)
class Saving:
    """A saving, and the changes that make it: the expected one and the one at best.

    ``room_ns`` is what can be saved at most: the GPU's work that is left takes its time. ``unknown_because`` says why
    the numbers cannot be stated; "" where they can.
    """

    item: SavingItem
    change: Change
    most: Change
    room_ns: float
    unknown_because: str = ""

    @property
    def low_ns(self) -> int:
        """What is saved at the least, per step."""
        return self.item.low_ns

    @property
    def expected_ns(self) -> int:
        """What should be saved per step."""
        return self.item.expected_ns

    @property
    def high_ns(self) -> int:
        """What is saved at best, per step."""
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
        """The same saving with other ends, which may lie beyond `room_ns` by what a step varies."""
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
    realised: Speedup = ALL_OF_IT,
) -> Saving:
    """The saving if the step changed in one of three ways.

    Args:
        context: the run.
        low: what is certain to go.
        expected: what should go.
        high: what can go at best.
        derivation: how the changes come about; the simulation is added to it.
        at_most_ns: no more than this can be saved per step.
        realised: what part of such a saving is realised, at the least and at most.
    """
    known = context.simulation
    step, before = known.estimate.ns, known.step()
    most = max(step - known.step([high], known.share.low).gpu_ns, 0.0)
    most = most if at_most_ns is None else min(most, max(at_most_ns, 0.0))

    def gone(change: Change, share: float) -> float:
        return max(step - known.step([change], share).ns, 0.0)

    middle = min(gone(expected, known.share.expected), most)
    ends = [middle]
    if high is not expected or 100.0 * middle >= thresholds.WORTHWHILE_SAVING_PERCENT * step:
        ends += [gone(change, share) for change in (low, high) for share in {known.share.low, known.share.high}]
    least, best = min(ends) * realised.low, max(ends) * realised.high
    if best > 0:
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
        f"{derivation} Without the profiler the step takes {step / 1e6:.2f} ms ({known.estimate.words}). {how} become "
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


def step_saving(context: RuleContext, low: Change, expected: Change, high: Change, derivation: str) -> Saving:
    """`shorter_step`, its ends wider by what a step varies from run to run."""
    found = shorter_step(context, low, expected, high, derivation)
    noise = thresholds.STEP_NOISE * context.simulation.estimate.ns
    return found.between(found.low_ns - noise, found.high_ns + noise, noise)


def stated(context: RuleContext, low_ns: float, expected_ns: float, high_ns: float, derivation: str) -> Saving:
    """A saving that no replay shows, such as one of another process or of another GPU; never above the step."""
    step = context.simulation.estimate.ns
    changes = [Change(keep_rest=max(1.0 - value / step, 0.0) if step else 1.0) for value in (expected_ns, high_ns)]
    return _saving(context, (low_ns, expected_ns, high_ns), step, derivation, changes[0], changes[1], by_replay=False)


def partly(
    context: RuleContext,
    change: Callable[[float], Change],
    low_ns: float,
    expected_ns: float,
    high_ns: float,
    derivation: str,
) -> Saving:
    """A saving that is known, and comes from less of something.

    Args:
        context: the run.
        change: the change that leaves a share of it.
        low_ns: the saving at the least.
        expected_ns: the expected saving; the share that makes it is found by trying.
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
    context: RuleContext, parts: list[tuple[Bools, Speedup]], derivation: str, slower: Speedup = ALL_OF_IT
) -> Saving:
    """The saving if kernels became faster.

    Args:
        context: the run.
        parts: launches with the speedup that they should see.
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


def of_forecast(context: RuleContext, found: Forecast) -> Saving:
    """The saving that a forecast states; the low end is below 0 where the step may get longer."""
    step = context.simulation.estimate
    low, expected, high = (
        round(found.base_ns * (1.0 - share)) for share in (found.most_share, 1.0 / found.speedup, found.least_share)
    )
    # What is not known of the step itself makes the ends wider.
    low, high = (round(low * step.low_ns / step.ns) if low > 0 else low), round(high * step.high_ns / step.ns)
    high = max(expected, min(high, round(found.base_ns)))
    casts = f" Casts take {found.cast_ns / 1e6:.2f} ms of it." if found.casts else ""
    derivation = (
        "Forecast: the launches of this run replayed with the kernel times of similar measured ops. "
        f"{headline(found)}{casts} Steps are without the profiler."
    )
    item = SavingItem(low, expected, high, percent(expected, found.base_ns) or 0.0, derivation)
    return Saving(item, found.change, found.change, found.base_ns, _unknown(context))


def change(context: RuleContext, *parts: tuple[Bools, float | Floats], gone: Bools | None = None) -> Change:
    """The change of a step in which kernels are faster and calls are not made any more.

    Args:
        context: the run.
        parts: launches, with what stays of their time.
        gone: calls that go, with everything in them and what they launch.
    """
    stays = np.ones(len(context.profile.launches))
    for launches, share in parts:
        stays[launches] *= share if isinstance(share, float) else share[launches]
    return Change(gpu=stays) if gone is None else without_calls(context.view, gone, stays)


def without_waits(
    context: RuleContext, waits: Bools, gone: Bools | None = None, new_ns: Floats | None = None
) -> Change:
    """The change of a step in which the CPU goes on at once at some calls.

    Args:
        context: the run.
        waits: those calls.
        gone: calls that are not made any more, with what they launch.
        new_ns: new time of each row of `Profile.launches`.
    """
    stays = None if new_ns is None else new_ns / np.maximum(context.profile.launches.duration_ns, 1)
    if gone is None:
        return Change(gpu=stays, waits_gone=waits)
    found = without_calls(context.view, gone, stays)
    assert found.waits_gone is not None
    return replace(found, waits_gone=found.waits_gone | waits)


def less_cpu(times: Intervals) -> Callable[[float], Change]:
    """Changes that leave a share of some of the CPU's time."""
    return lambda share: Change(cpu=times, keep_cpu=share)


def that_goes(left: Speedup) -> str:
    """Of the shares that may be left, what goes: "20 to 100 % (expected 75 %)"."""
    least, expected, most = (100 * (1 - share) for share in (left.high, left.expected, left.low))
    return f"{least:.0f} to {most:.0f} % (expected {expected:.0f} %)"


def severity(item: SavingItem | None) -> Severity:
    """By expected saving; medium where it is unknown. One less where the step may as well get longer."""
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
