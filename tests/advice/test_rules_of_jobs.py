"""Rules about all ranks of a job: on recorded jobs, and on simulated ones whose repaired step is known."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import pytest
from advice.recorded import opened
from advice.simulated import DIVIDED, LATE, Posed, on_hosts, posed

from tb_dlprof_plugin.advice import advise, thresholds
from tb_dlprof_plugin.advice.engine import Advice
from tb_dlprof_plugin.advice.finding import Silent
from tb_dlprof_plugin.advice.needs import Need, unmet
from tb_dlprof_plugin.advice.rule import Finding
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.rules.multi_gpu import (
    fsdp_prefetch,
    fsdp_reshard,
    hybrid_sharding,
    slow_link,
    static_graph,
    tensor_parallel_overlap,
)
from tb_dlprof_plugin.advice.topics import TOPICS, topic_of
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView
from tests.support.simulated_job import fsdp, simulate, tensor_and_data

REAL = {"experts_even": {"gradient_bucket_copies"}, "pipeline_even": {"microbatches"}}
"""Findings on jobs without a planted cause that are right: gradients are copied out of buckets in the one, and a job
like the other took half as long with two of its eight microbatches."""
EVEN = [
    *(f"recorded/{name}" for name in ("ddp_even", "experts_even", "fsdp_even", "pipeline_even", "tensor_even")),
    "held_out/images_even",
    "trial/residual_even",
    "trial/vision_even",
    *(f"settings_recorded/{name}" for name in ("gpipe_few", "sharded", "wide")),
]


@functools.cache
def advice(job: str) -> Advice:
    view = opened(f"ranks/{job}")
    return advise(view, view.selection())


def percents(found: Finding | Silent) -> tuple[float, float, float]:
    """The saving in percent of the step: at least, expected and at best."""
    assert isinstance(found, Finding), found
    assert found.item.saving is not None
    saving = found.item.saving
    scale = saving.percent / saving.expected_ns
    return saving.low_ns * scale, saving.percent, saving.high_ns * scale


def shorter(before: Sequence[RankFacts], after: Sequence[RankFacts]) -> float:
    steps = [job_of(ranks).step for ranks in (before, after)]
    assert steps[0] is not None
    assert steps[1] is not None
    return 100 * (1 - steps[1].ms / steps[0].ms)


@pytest.mark.parametrize("job", EVEN)
def test_no_rule_about_several_ranks_fires_without_a_reason(job: str) -> None:
    fired = {one.rule for one in advice(job).findings if topic_of(one.rule) == TOPICS["multi_gpu"]}
    assert fired == REAL.get(job.rpartition("/")[2], set())


def test_prefetching_saves_what_a_simulated_job_with_it_saves() -> None:
    late, early = (simulate(4, fsdp(4, prefetch=prefetch), seed=2) for prefetch in (False, True))
    low, _, high = percents(fsdp_prefetch.check(posed(late, fsdp=LATE)))
    assert low <= shorter(late, early) <= high


def test_keeping_parameters_saves_what_a_simulated_job_that_keeps_them_saves() -> None:
    again, kept = (simulate(4, fsdp(4, reshard=reshard, transfer_ms=3.0), seed=3) for reshard in (True, False))
    found = fsdp_reshard.check(posed(again, fsdp=LATE))
    low, _, high = percents(found)
    assert low <= shorter(again, kept) <= high
    assert isinstance(found, Finding)
    assert found.item.confidence == "low"


def test_hosts_that_could_hold_the_model_are_priced_by_what_their_links_carry() -> None:
    # 50 MB over four ranks in 3 ms: 12.5 GB/s.
    ranks = simulate(4, fsdp(4, transfer_ms=3.0), seed=4)
    low, expected, high = percents(hybrid_sharding.check(posed(on_hosts(ranks, 2), fsdp=DIVIDED)))
    # Gathers take 0.1 ms; each reduction as long as an all-reduce of 25 MB over two hosts, 2 ms.
    after = simulate(4, fsdp(4, transfer_ms=0.1), seed=4)
    assert 0 < low <= expected <= high
    assert expected < shorter(ranks, after)
    assert "12.5 GB/s" in _derivation(hybrid_sharding.check(posed(on_hosts(ranks, 2), fsdp=DIVIDED)))


def _derivation(found: Finding | Silent) -> str:
    assert isinstance(found, Finding)
    assert found.item.saving is not None
    return found.item.saving.derivation


def test_tensor_parallelism_that_waits_for_its_collectives(gpu_view: ProfileView) -> None:
    ranks = simulate(4, tensor_and_data(2, 2), seed=5)
    low, expected, high = percents(tensor_parallel_overlap.check(Posed(ranks, RunFacts(), gpu_view)))
    # Eight collectives of 0.3 ms in a step of about 21.4 ms, of which half can be hidden.
    assert low == 0
    assert 2.0 < expected < high < 100 * 8 * 0.3 / 21.4


def test_a_transport_that_is_off_is_a_slow_link_and_no_rank_s_delay() -> None:
    straggler = next(status for status in advice("recorded/ddp_slow_link").rules if status.rule == "straggler")
    assert "rule slow_link" in straggler.why
    view = opened("ranks/recorded/ddp_slow_link")
    context = RuleContext(view, view.selection(), view.ranks)
    context.facts.communication_settings[:] = ["NCCL_P2P_DISABLE=1", "NCCL_IB_DISABLE=1", "NCCL_ALGO=Ring"]
    try:
        named = slow_link.check(context)
    finally:
        context.facts.communication_settings.clear()
    assert isinstance(named, Finding)
    # Between hosts nothing moves here.
    assert named.item.change == "Leave NCCL_P2P_DISABLE=1 out."
    assert named.item.confidence == "high"


def test_a_search_for_parameters_that_are_unused_in_each_step_needs_a_static_graph(
    gpu_view: ProfileView, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = opened("planted/unused_parameters/fault")
    # The recorded search is below what is worth advice.
    monkeypatch.setattr(thresholds, "WORTHWHILE_SAVING_PERCENT", 0.0)
    found = static_graph.check(RuleContext(view, view.selection(), view.ranks))
    assert isinstance(found, Finding)
    assert found.item.code == "model = DistributedDataParallel(model, static_graph=True)\n"
    assert found.saving is not None
    searched = next(reading.value for reading in found.item.readings if reading.unit == "ns")
    assert 0 < found.saving.expected_ns <= searched
    fsdp = Posed([], RunFacts(parallel_wrapper="FSDPModule", find_unused_parameters=True), gpu_view)
    assert unmet(static_graph.RULE.needs, fsdp) == f"{Need.DISTRIBUTED_DATA_PARALLEL.value}."
