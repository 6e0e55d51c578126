"""From faster kernels to a shorter step.

Without the profiler a step takes as long as the slower of the two: ``step = max(GPU busy time, CPU time)``. Kernels
that save time make it ``step' = max(GPU busy time - saved, CPU time * overhead)``. The CPU time is the recorded one
less its waiting for the GPU, divided by how much faster the CPU is without the profiler.
"""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.finding import SavingItem, Severity
from tb_dlprof_plugin.advice.thresholds import HIGH_SEVERITY_PERCENT, MEDIUM_SEVERITY_PERCENT, Speedup
from tb_dlprof_plugin.comparison.forecast import Forecast
from tb_dlprof_plugin.comparison.forecast_words import headline
from tb_dlprof_plugin.measures.iterations import percent

NO_OVERHEAD = Speedup(1.0, 1.0, 1.0)


def faster_kernels(
    case: Case, parts: list[tuple[int, Speedup]], derivation: str, overhead: Speedup = NO_OVERHEAD
) -> SavingItem:
    """The saving if each part of the kernel time per step (ns) became faster by its factor.

    Args:
        case: the run.
        parts: kernel time per step with the speedup it should see.
        derivation: how the factors come about; the CPU bound is added to it.
        overhead: how much longer the CPU takes for a step afterwards.
    """
    host = thresholds.CPU_WITHOUT_PROFILER
    low, expected, high = (
        _shorter(case, sum(time * (1 - 1 / factor) for time, factor in pairs), faster, slower)
        for pairs, faster, slower in (
            ([(time, s.low) for time, s in parts], host.low, overhead.high),
            ([(time, s.expected) for time, s in parts], host.expected, overhead.expected),
            ([(time, s.high) for time, s in parts], host.high, overhead.low),
        )
    )
    # Each bound has assumptions of its own about the CPU; the middle one may not leave the interval.
    low, high = min(low, expected), max(expected, high)
    floor = (
        f" A step cannot get shorter than what the CPU needs for it: {case.host_floor_ns / 1e6:.2f} ms as recorded, "
        f"{case.host_floor_ns / host.high / 1e6:.2f} ms or more without the profiler."
    )
    return saving(case, low, expected, high, derivation + floor)


def of_forecast(found: Forecast) -> SavingItem:
    """The saving that a forecast states; the low end is below 0 where the step may get longer.

    Steps are those without the profiler, and so is the share of the step.
    """
    low, expected, high = (round(found.base_ns - after) for after in (found.high_ns, found.predicted_ns, found.low_ns))
    casts = f" Casts take {found.cast_ns / 1e6:.2f} ms of it." if found.casts else ""
    derivation = (
        "Forecast: the launches of this run replayed with the kernel times of similar measured ops. "
        f"{headline(found)}{casts} Steps are without the profiler."
    )
    return SavingItem(low, expected, high, percent(expected, found.base_ns) or 0.0, derivation)


def saving(case: Case, low_ns: int, expected_ns: int, high_ns: int, derivation: str) -> SavingItem:
    """A saving with its share of the step."""
    return SavingItem(low_ns, expected_ns, high_ns, percent(expected_ns, case.step_ns) or 0.0, derivation)


def severity(item: SavingItem | None) -> Severity:
    """By expected saving; medium where it is unknown. One less where the step may as well get longer."""
    if item is None:
        return "medium"
    uncertain = item.low_ns < 0
    if item.percent >= HIGH_SEVERITY_PERCENT:
        return "medium" if uncertain else "high"
    return "medium" if item.percent >= MEDIUM_SEVERITY_PERCENT and not uncertain else "low"


def _shorter(case: Case, saved_ns: float, faster: float, slower: float) -> int:
    busy = (case.steps.gpu_busy_ns or 0) / case.selection.count
    cpu = case.host_floor_ns / faster
    return max(0, round(max(busy, cpu) - max(busy - saved_ns, cpu * slower)))
