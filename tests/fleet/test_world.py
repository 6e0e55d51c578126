"""How many ranks a job has, where a recording may state anything."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from support.simulated_job import ddp, simulate

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.facts_codec import decode_facts, encode_facts
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN
from tb_dlprof_plugin.fleet.world import MOST_RANKS, missing_of, world_of
from tb_dlprof_plugin.profile_view import ProfileView


def test_the_largest_that_is_stated_or_needed_counts() -> None:
    assert world_of([2, None, UNKNOWN], [0, 1]) == 2
    assert world_of([8, 8], [0, 5]) == 8
    assert world_of([], [0, 5]) == 6
    assert world_of([UNKNOWN], [UNKNOWN, UNKNOWN]) == 2
    assert missing_of(6, [0, 5, 9]) == [1, 2, 3, 4]


@pytest.mark.parametrize("stated", [MOST_RANKS + 1, 2**31 - 1, 2**62])
def test_more_ranks_than_any_job_has_are_as_if_not_stated(stated: int) -> None:
    """A list of 2**31 missing ranks would take more than 20 GB."""
    facts = simulate(2, ddp(2))
    damaged = decode_facts(encode_facts(replace(facts[0], world_size=stated)))
    assert damaged.world_size == UNKNOWN
    assert job_of([damaged, facts[1]]).missing_ranks == []
    assert world_of([stated], [0, 1]) == 2


def test_a_profile_of_a_job_with_more_ranks_than_any_has_states_none(cpu_view: ProfileView) -> None:
    facts = msgspec.structs.replace(cpu_view.profile.facts, world_size=2**31 - 1)
    view = ProfileView(replace(cpu_view.profile, facts=facts))
    assert facts_of_profile(view).world_size == UNKNOWN


def test_a_rank_with_a_number_that_none_has_counts_as_one_more() -> None:
    facts = simulate(2, ddp(2))
    found = job_of([facts[0], replace(facts[1], rank=2**31 - 1, world_size=UNKNOWN)])
    assert found.ranks == [0, 2**31 - 1]
    assert found.world_size == 2
    assert len(found.missing_ranks) < 2
