"""The verdict on a step from the log ratios of rounds (quads); a test reaches it as what `power` replays does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from tb_dlprof_plugin.model.regression import RegressionVerdict, judge
from tb_dlprof_plugin.trial.experiment import SURE
from tb_dlprof_plugin.trial.statistics import LEAST_QUADS, LOOKS, slowdown


def verdict(log_ratios: Sequence[float], limit_percent: float) -> RegressionVerdict:
    """Whether the candidate is slower by more than the limit. The interval holds at 95 % after all looks together."""
    if len(log_ratios) < LEAST_QUADS:
        why = f"there was time for {len(log_ratios)} of {LEAST_QUADS} rounds; give more seconds"
        return judge(limit_percent, "step", None, None, None, why)
    return judge(limit_percent, "step", *slowdown(log_ratios), "")


def decided(log_ratios: Sequence[float], limit_percent: float) -> str:
    """Why no more rounds are needed, "" where they are."""
    if len(log_ratios) in LOOKS and verdict(log_ratios, limit_percent).verdict != "cannot_say":
        return "the verdict is certain"
    return "no more looks are planned" if len(log_ratios) >= LOOKS[-1] else ""


def verdict_of_pairs(
    measure: Callable[[], Sequence[float]], limit_percent: float
) -> tuple[RegressionVerdict, Sequence[float]]:
    """The verdict, with the log ratios that it rests on. "slower" has to hold in a second pair of processes as well.

    One process may be slower than another one of the same code, by where its memory lies or which cores it has, and all
    its rounds alike. Only a slow-down that is larger than that needs no second pair.

    Args:
        measure: the log ratios of a fresh pair of processes, until `decided`.
        limit_percent: by how much the candidate may be slower.
    """
    first = measure()
    found = verdict(first, limit_percent)
    if found.verdict != "slower" or found.percent is None or found.percent >= SURE:
        return found, first
    second = measure()
    both = [*first, *second]
    found = verdict(both, limit_percent)
    if found.verdict == "slower" and verdict(second, limit_percent).verdict != "slower":
        why = "a second pair of processes does not show it"
        found = msgspec.structs.replace(found, verdict="cannot_say", why=why)
    return found, both
