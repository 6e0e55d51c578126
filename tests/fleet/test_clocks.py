"""Clocks of ranks are found again after they were shifted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tb_dlprof_plugin.fleet.clocks import align
from tb_dlprof_plugin.fleet.matching import match
from tb_dlprof_plugin.fleet.rank_facts import Group, Operation, RankFacts

NewRank = Callable[..., RankFacts]
PAIRS = ((0, 1), (1, 2), (2, 3))


def job(new_rank: NewRank, clocks: list[int], drifts: list[float], noise_ns: int = 2_000) -> list[RankFacts]:
    """Four ranks in a chain of groups of two, with late starts and ends that are not quite together."""
    source = np.random.default_rng(7)
    plans: list[list[dict[str, object]]] = [[] for _ in clocks]
    groups = [Group(str(index), "", pair) for index, pair in enumerate(PAIRS)]
    for k in range(120):
        pair = PAIRS[k % 3]
        end = 3_000_000 * (k + 1)
        for rank in pair:
            late = int(source.integers(50_000, 1_000_000))
            own_end = end + int(source.normal(0, noise_ns))
            plans[rank].append({"start": end - late, "end": own_end, "group": k % 3, "operation": Operation.ALL_REDUCE})
    return [
        new_rank(rank, plan, groups=groups, world_size=4, clock_ns=clocks[rank], drift=drifts[rank])
        for rank, plan in enumerate(plans)
    ]


@pytest.mark.parametrize("drift", [0.0, 50e-6])
def test_offsets_up_to_5_ms_are_found_within_10_us(new_rank: NewRank, drift: float) -> None:
    clocks = [0, 5_000_000, -3_210_000, 1_234_567]
    ranks = job(new_rank, clocks, [0.0, 0.0, drift, 0.0])
    found = align(ranks, match(ranks))
    assert np.abs(found.offset_ns - clocks).max() < 10_000
    assert np.abs(found.drift - [0.0, 0.0, drift, 0.0]).max() < 15e-6
    assert found.uncertainty_ns == pytest.approx(2_000, rel=0.5)
    assert found.summary().offsets_us.keys() == {0, 1, 2, 3}


def test_aligned_ends_are_together(new_rank: NewRank) -> None:
    ranks = job(new_rank, [0, 4_000_000, -2_000_000, 900_000], [0.0, 40e-6, 0.0, 0.0], noise_ns=0)
    matched = match(ranks)
    found = align(ranks, matched)
    for k in range(len(matched)):
        ends = []
        for at in range(matched.first[k], matched.first[k + 1]):
            calls, row = ranks[matched.rank_index[at]].collectives, matched.row[at]
            end = ranks[matched.rank_index[at]].base_ns + calls.start_ns[row : row + 1] + calls.duration_ns[row]
            ends.append(int(found.aligned_ns(int(matched.rank_index[at]), end)[0]))
        assert max(ends) - min(ends) < 2_000


def test_broadcasts_say_nothing_about_clocks(new_rank: NewRank) -> None:
    calls = [{"start": 0, "end": 1000 * k, "operation": Operation.BROADCAST} for k in range(1, 5)]
    ranks = [new_rank(0, calls), new_rank(1, calls, clock_ns=5_000)]
    found = align(ranks, match(ranks)).summary()
    assert (found.uncertainty_us, found.components) == (None, 2)


def test_ranks_that_share_no_collective_are_components_of_their_own(new_rank: NewRank) -> None:
    groups = [Group("0", "", (0, 1)), Group("1", "", (2, 3))]
    plans = [[{"start": 1000 * k, "end": 1000 * k + 900, "group": rank // 2} for k in range(5)] for rank in range(4)]
    ranks = [new_rank(rank, plan, groups=groups, world_size=4) for rank, plan in enumerate(plans)]
    found = align(ranks, match(ranks))
    assert found.component.tolist() == [0, 0, 2, 2]
    assert found.summary().offsets_us.keys() == {0, 1}


def test_ranks_of_one_host_have_one_clock(new_rank: NewRank) -> None:
    plan = [{"start": 10_000 * k, "end": 10_000 * k + 900} for k in range(5)]
    late = [call | {"end": call["end"] + 400} for call in plan]
    ranks = [new_rank(0, plan, host="a"), new_rank(1, late, host="a")]
    assert align(ranks, match(ranks)).offset_ns.tolist() == [0.0, 0.0]


def test_a_receive_that_ends_before_its_send_begins_widens_the_uncertainty(new_rank: NewRank) -> None:
    sums = [{"start": 10_000 * k, "end": 10_000 * k + 900} for k in range(5)]
    send = {"start": 90_000, "end": 95_000, "operation": Operation.SEND, "peer": 1}
    receive = {"start": 60_000, "end": 70_000, "operation": Operation.RECEIVE, "peer": 0}
    ranks = [new_rank(0, [*sums, send]), new_rank(1, [*sums, receive])]
    found = align(ranks, match(ranks))
    assert (found.impossible, found.uncertainty_ns) == (1, 20_000.0)
