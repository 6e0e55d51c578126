"""What a rule cannot do without: needs of every claim (`metrics.needs`), and needs beyond one recording.

The engine asks before the rule.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from tb_dlprof_plugin.advice.finding import Silent
from tb_dlprof_plugin.advice.gpu_memory import capacity_bytes
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.fleet.answers.scenarios import UNRELIABLE_PERCENT
from tb_dlprof_plugin.metrics.needs import Need, missing, no


class JobNeed(Enum):
    """The same of what is around the recording: its job, its GPU. The value says that it is missing, as in `Need`."""

    REPLAYED_JOB = no(
        f"other rank whose collectives match its own, or the job's replay is more than {UNRELIABLE_PERCENT:.0f} % off"
    )
    OTHER_RANKS = "No other rank was recorded"
    PEAK_MEMORY = "The peak memory or the GPU's memory was not recorded"


_HAS: dict[JobNeed, Callable[[RuleContext], object]] = {
    JobNeed.REPLAYED_JOB: lambda context: context.replay_holds,
    JobNeed.OTHER_RANKS: lambda context: context.job is not None and context.job.step is not None,
    JobNeed.PEAK_MEMORY: lambda context: (
        bool(capacity_bytes(context)) and context.facts.peak_memory_allocated_bytes is not None
    ),
}


def unmet(needs: tuple[Need | JobNeed, ...], context: RuleContext) -> str:
    """The reason why a rule does not apply to a run; "" where the run has all that the rule needs."""
    for need in needs:
        if isinstance(need, Need):
            if why := missing(context.view, context.selection, need):
                return why
        elif not _HAS[need](context):
            return f"{need.value}."
    return ""


def lacks(need: Need | JobNeed) -> Silent:
    """The answer of a rule that needs this after it has looked at something else."""
    return Silent(f"{need.value}.", applicable=False)
