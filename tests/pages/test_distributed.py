"""The Distributed page of two ranks or ten thousand, of which some may be missing."""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from support.simulated_job import ddp, simulate

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.job import (
    Clocks,
    CollectiveRow,
    Delay,
    Efficiency,
    Heat,
    Job,
    JobStep,
    MatchedShare,
    RankAccount,
    WhatIf,
)
from tb_dlprof_plugin.pages.distributed import distributed_page
from tb_dlprof_plugin.pages.rank_lines import rank_lines_page
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.respond import MAX_RESPONSE_BYTES

REF = RunRef("job", "s", 0, 0)


def _job(world: int, ranks: list[int]) -> Job:
    """A job whose every table is as long as it gets, with a step of two seconds."""
    draw = random.Random(0)
    mesh = [("pp", 16), ("dp", -(-world // 128)), ("tp", 8)]
    steps = max(1, 100_000 // len(ranks))
    account = []
    for rank in ranks:
        parts = [2000 * share for share in (0.5 + draw.random() / 10, 0.1, 0.1 + draw.random() / 10, 0.02)]
        account.append(RankAccount(rank, 2000.0, *parts, 2000.0 - sum(parts)))
    why = "The same kernels take 43.0 % longer: its GPU works 995.52 ms a step longer than the others'. " * 2
    return Job(
        world_size=world,
        ranks=ranks,
        missing_ranks=sorted(set(range(world)) - set(ranks)),
        sentence="A sentence.",
        step=JobStep(2000.0, 1990.0, 2010.0, "measured"),
        account=account,
        delays=[Delay(rank, 123.456789, 12.3456, 10.1, 14.2, "slow_gpu", why, True) for rank in ranks[:100]],
        what_if=[WhatIf(f"change {number}", 1900.0, 1890.0, 1910.0) for number in range(10)],
        simulated_error_percent=0.5,
        collectives=MatchedShare(10_000, 10_000, 100.0, 0, "sequence"),
        collective_rows=[
            CollectiveRow("reduce_scatter", "dp", "up to 16 MiB", f"model.layers.{layer}.attention.projection",
                          12.5, 123_456_789, 1.23456789, 2.3456789, 3.456789, 123.456789, 450.0, "transfer-bound")
            for layer in range(600)
        ],
        clock=Clocks(1.5, {}, 1),
        efficiency=Efficiency(0.7, 0.8, 0.9, 0.95, 0.95, 0.1),
        heat=Heat(ranks, list(range(steps)), [[round(draw.gauss(0, 5), 2) for _ in range(steps)] for _ in ranks]),
        mesh=mesh,
        mesh_places=[(rank // (8 * mesh[1][1]) % 16, rank // 8 % mesh[1][1], rank % 8) for rank in ranks],
        notes=["A note of some words."] * 20,
    )  # fmt: skip


@pytest.mark.parametrize("world", [2, 64, 4096, 10_000])
def test_an_answer_has_at_most_1_mb(world: int) -> None:
    page = distributed_page(_job(world, list(range(world))), REF)
    assert len(msgspec.json.encode(page)) <= MAX_RESPONSE_BYTES
    account = page.account
    assert len(account.rank) == world
    parts = np.array([account.compute_ns, account.transfer_ns, account.waiting_ns, account.bubble_ns, account.host_ns])
    assert (parts.sum(axis=0) == account.step_ns).all()
    assert page.heat is not None
    assert len(page.heat.first) <= 512
    assert (page.heat.last[-1], len(page.heat.of_rank)) == (world - 1, world)
    assert [dimension.name for dimension in page.mesh] == ["pp", "dp", "tp"]


def test_every_second_rank_of_ten_thousand_is_named_missing() -> None:
    page = distributed_page(_job(10_000, list(range(0, 10_000, 2))), REF)
    assert len(msgspec.json.encode(page)) <= MAX_RESPONSE_BYTES
    assert page.missing.startswith("1, 3, 5")
    assert (page.ranks, page.world_size) == (5000, 10_000)


def test_of_one_rank_of_several_waiting_is_unknown_and_the_page_says_why() -> None:
    page = distributed_page(job_of(simulate(4, ddp(4))[2:3]), REF)
    assert (page.account.rank, page.account.waiting_ns) == ([2], [None])
    assert (page.missing, page.delays, page.what_if) == ("0 to 1, 3", [], [])
    assert page.figures.parallel_percent is None
    assert any(note.startswith("One rank alone does not show") for note in page.notes)


def test_lines_are_drawn_of_steps_whose_calls_were_read() -> None:
    facts = simulate(4, ddp(4), steps=3)
    number = facts[0].steps.number
    lines = rank_lines_page(facts, [0, 2], None, number[:1])
    assert lines.step == number[0]
    with pytest.raises(KeyError, match=f"step {number[2]}"):
        rank_lines_page(facts, [0, 2], int(number[2]), number[:1])


def test_lines_wait_for_ranks_that_are_not_drawn() -> None:
    facts = simulate(4, ddp(4, slower={3: 1.5}), steps=2)
    drawn = rank_lines_page(facts, [0, 1], None)
    assert min(drawn.lines[0].waiting_ns) > 0
    late = [replace(one) for one in facts if one.rank != 3]
    assert sum(rank_lines_page(late, [0, 1], None).lines[0].waiting_ns) < sum(drawn.lines[0].waiting_ns)
