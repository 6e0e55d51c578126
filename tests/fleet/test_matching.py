"""Calls of several ranks that are the same collective are found, and what contradicts itself is named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tb_dlprof_plugin.fleet.matching import Matched, match
from tb_dlprof_plugin.fleet.rank_facts import Group, Operation, RankFacts

NewRank = Callable[..., RankFacts]
WORLD = (Group("0", "default_pg", (0, 1, 2)),)


def together(matched: Matched) -> list[list[tuple[int, int]]]:
    """Rank index and row of the members of each collective."""
    return [
        list(zip(matched.rank_index[a:b].tolist(), matched.row[a:b].tolist(), strict=True))
        for a, b in zip(matched.first[:-1].tolist(), matched.first[1:].tolist(), strict=True)
    ]


def calls(*ends: int, **more: object) -> list[dict[str, object]]:
    return [{"start": end - 100, "end": end, **more} for end in ends]


def test_equal_calls_are_matched_in_their_order(new_rank: NewRank) -> None:
    found = match([new_rank(0, calls(1000, 2000)), new_rank(1, calls(1000, 2000))])
    assert together(found) == [[(0, 0), (1, 0)], [(0, 1), (1, 1)]]
    assert (found.matching.total, found.matching.matched_percent, found.matching.by) == (2, 100.0, "order")


@pytest.mark.parametrize("missing", ["first", "last"])
def test_ends_say_which_of_equal_calls_a_rank_lacks(new_rank: NewRank, missing: str) -> None:
    ends = [1000, 2000, 3500, 4100, 6000]
    fewer = ends[1:] if missing == "first" else ends[:-1]
    found = match([new_rank(0, calls(*ends)), new_rank(1, calls(*(end + 7_000_000 for end in fewer)))])
    shift = 1 if missing == "first" else 0
    assert together(found) == [[(0, row + shift), (1, row)] for row in range(4)]
    assert (found.matching.total, found.matching.matched) == (5, 4)


def test_calls_that_only_one_rank_made_are_left_out(new_rank: NewRank) -> None:
    one = calls(1000) + calls(2000, operation=Operation.ALL_GATHER) + calls(3000)
    two = calls(1000, 3000)
    assert together(match([new_rank(0, one), new_rank(1, two)])) == [[(0, 0), (1, 0)], [(0, 2), (1, 1)]]


def test_sequence_numbers_stand_above_order(new_rank: NewRank) -> None:
    one = [call | {"sequence": number} for number, call in enumerate(calls(1000, 2000, 3000), start=5)]
    found = match([new_rank(0, one), new_rank(1, one[1:])])
    assert together(found) == [[(0, 1), (1, 0)], [(0, 2), (1, 1)]]
    assert found.matching.by == "sequence"


def test_a_number_that_one_event_lacks_follows_from_its_neighbours(new_rank: NewRank) -> None:
    one = [call | {"sequence": number} for number, call in enumerate(calls(1000, 2000, 3000), start=5)]
    two = [one[0], one[1] | {"sequence": -1}, one[2]]
    found = match([new_rank(0, one), new_rank(1, two)])
    assert (found.matching.matched, found.matching.by) == (3, "sequence")


def test_groups_of_one_name_are_apart_by_their_members(new_rank: NewRank) -> None:
    groups = [(Group("tp", "mesh_tp", (0, 1)),), (Group("tp", "mesh_tp", (2, 3)),)]
    ranks = [new_rank(rank, calls(1000), groups=groups[rank // 2], world_size=4) for rank in range(4)]
    assert together(match(ranks)) == [[(0, 0), (1, 0)], [(2, 0), (3, 0)]]


@pytest.mark.parametrize(
    "other",
    [{"operation": Operation.ALL_GATHER}, {"bytes": 4000}, {"dtype": 2}],
)
def test_members_that_disagree_contradict_each_other(new_rank: NewRank, other: dict[str, object]) -> None:
    found = match([new_rank(0, calls(1000, sequence=3)), new_rank(1, calls(1000, sequence=3, **other))])
    assert (len(found), found.matching.contradictions, found.matching.matched) == (0, 1, 0)


def test_uneven_all_to_alls_do_not_contradict_each_other(new_rank: NewRank) -> None:
    one = calls(1000, operation=Operation.ALL_TO_ALL, bytes=10)
    two = calls(1000, operation=Operation.ALL_TO_ALL, bytes=90)
    assert match([new_rank(0, one), new_rank(1, two)]).matching.matched == 1


def test_sends_meet_their_receives(new_rank: NewRank) -> None:
    send = calls(1000, 2000, operation=Operation.SEND, peer=1) + calls(3000, operation=Operation.RECEIVE, peer=1)
    receive = calls(1100, 2100, operation=Operation.RECEIVE, peer=0) + calls(2900, operation=Operation.SEND, peer=0)
    found = match([new_rank(0, send), new_rank(1, receive)])
    assert together(found) == [[(0, 0), (1, 0)], [(0, 1), (1, 1)], [(0, 2), (1, 2)]]
    assert set(found.operation.tolist()) == {int(Operation.SEND)}


def test_calls_that_cannot_have_run_together_are_not_the_same(new_rank: NewRank) -> None:
    ends = [1_000, 2_000, 3_000, 4_000, 5_000]
    other = [*ends[:-1], 900_000]
    assert match([new_rank(0, calls(*ends)), new_rank(1, calls(*other))]).matching.matched == 4


def test_ranks_that_are_not_recorded_do_not_count_against_the_others(new_rank: NewRank) -> None:
    found = match([new_rank(rank, calls(1000), groups=WORLD, world_size=3) for rank in (0, 2)])
    assert (len(found), found.matching.matched_percent) == (1, 100.0)


def test_steps_that_ranks_do_not_share_are_not_matched(new_rank: NewRank) -> None:
    found = match([new_rank(0, calls(1000), steps=(4,)), new_rank(1, calls(1000), steps=(5,))])
    assert (len(found), found.matching.total, found.matching.matched) == (0, 2, 0)


def test_nothing_is_matched_of_nothing(new_rank: NewRank) -> None:
    assert match([]).matching.matched_percent is None
    assert len(match([new_rank(0, [])])) == 0


def test_every_call_is_in_one_collective_at_most(new_rank: NewRank) -> None:
    source = np.random.default_rng(3)
    kinds = [Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.BROADCAST]
    starts = np.cumsum(source.integers(1_000, 9_000, 60)).tolist()
    plan = [{"end": at + 900, "start": at, "operation": kinds[k % 3]} for k, at in enumerate(starts)]
    ranks = []
    for rank in range(3):
        kept = [call for call in plan if source.random() > 0.1]
        ranks.append(new_rank(rank, kept, groups=WORLD, world_size=3))
    found = match(ranks)
    members = list(zip(found.rank_index.tolist(), found.row.tolist(), strict=True))
    assert len(set(members)) == len(members)
    assert all(len({ranks[i].collectives.start_ns[row] for i, row in one}) == 1 for one in together(found))
    assert found.matching.matched > 40
