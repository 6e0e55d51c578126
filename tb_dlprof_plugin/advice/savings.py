"""From faster kernels to a shorter step.

Making the GPU faster shortens a step only down to what the CPU needs for it: ``step' = max(CPU, step - saved)``. The
CPU's time is the recorded one, profiler overhead included, so that the estimate errs to the low side.
"""

from __future__ import annotations

from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.finding import SavingItem, Severity
from tb_dlprof_plugin.advice.thresholds import HIGH_SEVERITY_PERCENT, MEDIUM_SEVERITY_PERCENT, Speedup
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
    low, expected, high = (
        _shorter(case, sum(time * (1 - 1 / factor) for time, factor in pairs), cpu)
        for pairs, cpu in (
            ([(time, s.low) for time, s in parts], overhead.high),
            ([(time, s.expected) for time, s in parts], overhead.expected),
            ([(time, s.high) for time, s in parts], overhead.low),
        )
    )
    floor = f" A step cannot get shorter than the {case.host_floor_ns / 1e6:.2f} ms that the CPU needs for it."
    return saving(case, low, expected, high, derivation + floor)


def saving(case: Case, low_ns: int, expected_ns: int, high_ns: int, derivation: str) -> SavingItem:
    """A saving with its share of the step."""
    return SavingItem(low_ns, expected_ns, high_ns, percent(expected_ns, case.step_ns) or 0.0, derivation)


def severity(item: SavingItem | None) -> Severity:
    """By expected saving; medium where it is unknown."""
    if item is None:
        return "medium"
    if item.percent >= HIGH_SEVERITY_PERCENT:
        return "high"
    return "medium" if item.percent >= MEDIUM_SEVERITY_PERCENT else "low"


def _shorter(case: Case, saved_ns: float, overhead: float) -> int:
    after = max(case.host_floor_ns * overhead, case.step_ns - saved_ns)
    return max(0, round(case.step_ns - after))
