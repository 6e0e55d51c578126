"""A job with too many calls in one step is answered from some of its ranks: nearly as from all of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from lab.ranks.many_facts import job_facts
from tb_dlprof_plugin.fleet.answers import job_of as job_module
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.chosen_ranks import ranks_with_room
from tb_dlprof_plugin.fleet.job_files import read_job
from tb_dlprof_plugin.fleet.rank_facts import Group, RankFacts

RECORDED = Path(__file__).parents[2] / "tests" / "data" / "ranks" / "recorded"
RANKS, STRAGGLER = 96, 37


@pytest.fixture(scope="module")
def facts() -> list[RankFacts]:
    first, second = read_job([RECORDED / "ddp_slow_gpu"]).facts
    return list(job_facts((first, second), RANKS, 4, 26, STRAGGLER))


def test_answers_from_a_quarter_of_the_ranks_are_those_from_all(
    facts: list[RankFacts], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = job_of(facts)
    few = sum(len(one.collectives) for one in facts) // 4

    def fewer(given: list[RankFacts], limit: int) -> object:
        return ranks_with_room(given, few)

    monkeypatch.setattr(job_module, "ranks_with_room", fewer)
    part = job_of(facts)
    assert any(note.startswith("Calls are compared on 24 of 96 ranks") for note in part.notes)
    assert (part.delays[0].rank, part.delays[0].cause, part.delays[0].certain) == (STRAGGLER, "slow_gpu", True)
    assert part.delays[0].saving_ms == pytest.approx(whole.delays[0].saving_ms, rel=0.03)
    assert part.delays[0].caused_waiting_ms == pytest.approx(whole.delays[0].caused_waiting_ms, rel=0.05)
    assert part.step == whole.step
    assert [row.rank for row in part.account] == list(range(RANKS))
    for one, other in zip(part.account, whole.account, strict=True):
        parts = (one.compute_ms, one.transfer_ms, one.waiting_ms or 0.0, one.bubble_ms, one.host_ms)
        assert sum(parts) == pytest.approx(one.step_ms, abs=1e-9)
        assert one.compute_ms == pytest.approx(other.compute_ms)
        assert one.waiting_ms == pytest.approx(other.waiting_ms, abs=0.02 * one.step_ms)
    assert part.heat == whole.heat
    assert [one.change for one in part.what_if] == [one.change for one in whole.what_if]
    for one, other in zip(part.what_if, whole.what_if, strict=True):
        assert one.step_ms == pytest.approx(other.step_ms, rel=0.03), one.change


def test_small_groups_are_compared_whole_and_the_rank_that_communicates_least_is_among_them(
    facts: list[RankFacts],
) -> None:
    def in_groups(one: RankFacts) -> RankFacts:
        begin = one.rank // 4 * 4
        tensor = Group("tp", "mesh_tp", tuple(range(begin, begin + 4)), "tp")
        return dataclasses.replace(one, groups=(*one.groups, tensor))

    jobs = [in_groups(one) for one in facts]
    calls = len(jobs[0].collectives)
    # Parts of four ranks fit into a sixteenth of the room.
    chosen = ranks_with_room(jobs, 70 * calls)
    assert chosen is not None
    assert 64 <= len(chosen) <= 70
    assert STRAGGLER in chosen
    assert np.bincount(chosen // 4).tolist() == [
        4 if rank * 4 in chosen else 0 for rank in range(int(chosen[-1]) // 4 + 1)
    ]
    assert ranks_with_room(jobs, 70 * calls, limit=RANKS * calls) is None
