"""Combined saving of several findings: the step simulated with all their changes at once."""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.advice.finding import CombinedSaving
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.savings import Saving
from tb_dlprof_plugin.metrics.iterations import percent


def combined(context: RuleContext, savings: Sequence[tuple[Saving, str]]) -> CombinedSaving | None:
    """The combined saving per step (ns); None without any saving.

    Args:
        context: the run.
        savings: each with its group, "" for none. A group holds alternatives, of which the largest counts.
    """
    known = [(saving, group) for saving, group in savings if not saving.unknown_because]
    if not known:
        return None
    chosen = _without_alternatives(known)
    simulation = context.simulation
    step, share = simulation.estimate.ns, simulation.share
    together = step - simulation.step([saving.change for saving in chosen]).ns
    at_best = step - simulation.step([saving.most for saving in chosen], share.high).ns
    # The combined saving is at least that of the largest change alone.
    expected = min(max(together, *(saving.expected_ns for saving in chosen), 0.0), step)
    high = min(max(at_best, expected, *(saving.high_ns for saving in chosen)), step)
    low = min(max(saving.low_ns for saving in chosen), expected)
    return CombinedSaving(
        low_ns=round(low),
        expected_ns=round(expected),
        high_ns=round(high),
        percent=percent(expected, step) or 0.0,
        findings=len(known),
        added_up_ns=sum(max(0, saving.expected_ns) for saving, _ in known),
    )


def _without_alternatives(savings: Sequence[tuple[Saving, str]]) -> list[Saving]:
    """Keep the largest saving of each group."""
    largest: dict[str, Saving] = {}
    for number, (saving, group) in enumerate(savings):
        key = group or f"only {number}"
        if key not in largest or saving.expected_ns > largest[key].expected_ns:
            largest[key] = saving
    return list(largest.values())
