"""Simulated jobs for the cases of rules: a recorded profile with other facts, in a job whose repaired step is known."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from advice.recorded import opened

from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.fleet.answers.job_of import replayed_job
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.run_facts import FsdpFacts, RunFacts
from tb_dlprof_plugin.profile_view import ProfileView

LATE = FsdpFacts(2, 6, 6, True, False)
DIVIDED = FsdpFacts(2, 6, 6, True, False, shard_ranks=4, replicas=1)


class Posed(RuleContext):
    """A recorded profile with other facts, in a simulated job."""

    def __init__(self, ranks: Sequence[RankFacts], facts: RunFacts, view: ProfileView) -> None:
        with_facts = ProfileView(replace(view.profile, facts=facts))
        super().__init__(with_facts, with_facts.selection())
        self._ranks = ranks

    @functools.cached_property
    def replayed_job(self) -> Any:
        return replayed_job(self._ranks)


def posed(ranks: Sequence[RankFacts], **facts: Any) -> Posed:
    return Posed(ranks, RunFacts(**facts), opened("ranks/settings_recorded/gloo_units"))


def posing(ranks: Callable[[], Sequence[RankFacts]], **facts: Any) -> Callable[[Any], Posed]:
    """Makes the context of a rule when a case runs."""
    return lambda _: posed(ranks(), **facts)


def on_gpu(ranks: Callable[[], Sequence[RankFacts]], **facts: Any) -> Callable[[Any], Posed]:
    """The same for a profile with a GPU."""
    return lambda trace: Posed(ranks(), RunFacts(**facts), trace.view())


def on_hosts(ranks: Sequence[RankFacts], per_host: int, gpu: str = "NVIDIA H200") -> list[RankFacts]:
    return [replace(one, host=f"host{one.rank // per_host}", gpu=gpu) for one in ranks]
