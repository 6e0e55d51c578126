"""The replays of a job: with its hosts where their launches are known, else by own times of its GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.fleet.answers.call_paths import paced_steps
from tb_dlprof_plugin.fleet.answers.calls import Calls, calls_of
from tb_dlprof_plugin.fleet.answers.own_time_scenarios import OwnTimeScenarios
from tb_dlprof_plugin.fleet.answers.paced_scenarios import PacedScenarios
from tb_dlprof_plugin.fleet.answers.replay import waves
from tb_dlprof_plugin.fleet.answers.what_if import Scenarios
from tb_dlprof_plugin.fleet.job import JobStep
from tb_dlprof_plugin.fleet.matching import Matched
from tb_dlprof_plugin.fleet.rank_facts import RankFacts


def scenarios_of(facts: Sequence[RankFacts], matched: Matched, calls: Calls, step: JobStep | None) -> Scenarios:
    """The replays of these calls, which are those that ``matched`` matches, in some steps."""
    order = waves(calls)
    numbers = paced_steps(facts, calls.numbers)
    if len(numbers) > 1:
        paced = calls if len(numbers) == calls.steps else calls_of(facts, matched, numbers)
        if paced.paths is not None:
            return PacedScenarios(facts, calls, order, step, paced)
    return OwnTimeScenarios(facts, calls, order, step)
