"""What collectives cost kernels that run in parallel with them, for the savings of rules about communication."""

from __future__ import annotations

from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.communication import communication_slowdown

COMMUNICATION_SLOWDOWN = SpeedupRange(0.15, 0.27, 0.5)
"""Time that a collective adds to other kernels for each time that it runs in parallel with them, where a recording does
not show its own: 0.22 to 0.30 on seven recordings of two H200s over NVLink (lab/ranks)."""

_ENOUGH_NS = 500_000.0
"""Time in parallel per step from which a recording's own figure is used."""
_OFF = 0.4
"""By what share of itself it may be wrong: kernels of other ops may be hit more."""


def slowdown_shares(context: RuleContext) -> SpeedupRange:
    """Time that collectives add to other kernels, as a share of the time in parallel: measured, else typical."""
    found = communication_slowdown(context.view, context.selection)
    if found.share is None or found.during_ns < _ENOUGH_NS:
        return COMMUNICATION_SLOWDOWN
    return SpeedupRange(found.share * (1 - _OFF), found.share, found.share * (1 + _OFF))
