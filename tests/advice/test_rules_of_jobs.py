"""Rules about all ranks of a job: on recorded jobs, and on simulated ones whose repaired step is known."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tb_dlprof_plugin.advice import advise, thresholds
from tb_dlprof_plugin.advice.engine import Advice
from tb_dlprof_plugin.advice.finding import FindingItem, Silent
from tb_dlprof_plugin.advice.needs import Need, unmet
from tb_dlprof_plugin.advice.rule import Finding
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.rules.multi_gpu import (
    fsdp_large_units,
    fsdp_prefetch,
    fsdp_reshard,
    garbage_in_turns,
    hybrid_sharding,
    slow_link,
    static_graph,
    tensor_parallel_overlap,
)
from tb_dlprof_plugin.advice.topics import TOPICS, topic_of
from tb_dlprof_plugin.cli.open_profile import open_profile
from tb_dlprof_plugin.fleet.answers.job_of import job_of, replayed_job
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.run_facts import DdpFacts, FsdpFacts, RunFacts
from tb_dlprof_plugin.profile_view import ProfileView
from tests.support.recorded_runs import ROOT
from tests.support.simulated_job import MS, Idle, ddp, fsdp, simulate, tensor_and_data

RANKS = ROOT / "tests" / "data" / "ranks"
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
def opened(job: str) -> ProfileView:
    return open_profile(RANKS / job)[0]


@functools.cache
def advice(job: str) -> Advice:
    return advise(opened(job), opened(job).selection())


def finding(job: str, rule: str) -> FindingItem:
    (found,) = [one for one in advice(job).findings if one.rule == rule]
    return found


def why(job: str, rule: str) -> str:
    (found,) = [one for one in advice(job).rules if one.rule == rule and one.outcome != "fired"]
    return found.why


class Posed(RuleContext):
    """A recorded profile with other facts, in a simulated job."""

    def __init__(self, ranks: Sequence[RankFacts], facts: RunFacts, view: ProfileView) -> None:
        super().__init__(view, view.selection())
        self._facts, self._ranks = facts, ranks

    @property
    def facts(self) -> RunFacts:
        return self._facts

    @functools.cached_property
    def replayed_job(self) -> Any:
        return replayed_job(self._ranks)


def posed(ranks: Sequence[RankFacts], **facts: Any) -> Posed:
    return Posed(ranks, RunFacts(**facts), opened("settings_recorded/gloo_units"))


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


LATE = FsdpFacts(2, 6, 6, True, False)


def test_prefetching_saves_what_a_simulated_job_with_it_saves() -> None:
    late, early = (simulate(4, fsdp(4, prefetch=prefetch), seed=2) for prefetch in (False, True))
    low, _, high = percents(fsdp_prefetch.check(posed(late, fsdp=LATE)))
    assert low <= shorter(late, early) <= high
    settings = msgspec.structs.replace(LATE, forward_prefetch=True)
    assert isinstance(fsdp_prefetch.check(posed(early, fsdp=settings)), Silent)
    # Gathers that are hidden without it have nothing to win.
    hidden = fsdp_prefetch.check(posed(early, fsdp=LATE))
    assert isinstance(hidden, Silent)
    assert hidden.applicable


def test_keeping_parameters_saves_what_a_simulated_job_that_keeps_them_saves() -> None:
    again, kept = (simulate(4, fsdp(4, reshard=reshard, transfer_ms=3.0), seed=3) for reshard in (True, False))
    found = fsdp_reshard.check(posed(again, fsdp=LATE))
    low, _, high = percents(found)
    assert low <= shorter(again, kept) <= high
    assert isinstance(found, Finding)
    # Six gathers of 50 MB.
    assert {one.label: one.value for one in found.item.readings}["Memory to keep the parameters"] == 300_000_000
    assert found.item.confidence == "low"


def test_parameters_are_not_kept_where_memory_is_known_to_be_short() -> None:
    again = simulate(4, fsdp(4, transfer_ms=3.0), seed=3)
    room = {"available_memory_bytes": 10**9, "peak_memory_allocated_bytes": 8 * 10**8}
    found = fsdp_reshard.check(posed(again, fsdp=LATE, **room))
    assert isinstance(found, Silent)
    assert "190.7 MiB are free at the peak" in found.why
    room["peak_memory_allocated_bytes"] = 10**8
    enough = fsdp_reshard.check(posed(again, fsdp=LATE, **room))
    assert isinstance(enough, Finding)
    assert enough.item.confidence == "medium"


def test_several_passes_in_a_step_do_not_show_which_gathers_are_repeated() -> None:
    ranks = simulate(4, fsdp(4, transfer_ms=3.0), seed=3)
    found = fsdp_reshard.check(posed(ranks, fsdp=msgspec.structs.replace(LATE, units=3)))
    assert isinstance(found, Silent)
    assert not found.applicable


def test_ranks_that_collect_garbage_in_turns() -> None:
    def job(collects: Callable[[int, int], bool]) -> Finding | Silent:
        idle = lambda rank, step: [Idle(6 * MS, "garbage")] if collects(rank, step) else []  # noqa: E731
        return garbage_in_turns.check(posed(simulate(4, ddp(4, idle=idle))))

    found = job(lambda rank, step: step % 4 == rank)
    assert isinstance(found, Finding)
    assert found.item.saving is not None
    # Each step has one of 6 ms; a quarter of that is left if all collect in every fourth step.
    assert found.item.saving.expected_ns == pytest.approx(4.5 * MS, rel=0.01)
    assert (found.item.saving.low_ns, found.item.saving.high_ns) == (0, pytest.approx(6 * MS, rel=0.01))
    for collects in (lambda rank, step: step % 4 == 0, lambda rank, step: rank == 1, lambda rank, step: False):
        assert isinstance(job(collects), Silent)
    assert "straggler" in {one.rule for one in advice("recorded/ddp_garbage").findings}
    assert why("recorded/ddp_garbage", "garbage_in_turns")


def on_hosts(ranks: Sequence[RankFacts], per_host: int, gpu: str = "NVIDIA H200") -> list[RankFacts]:
    return [replace(one, host=f"host{one.rank // per_host}", gpu=gpu) for one in ranks]


def test_hosts_that_could_hold_the_model_are_priced_by_what_their_links_carry() -> None:
    # 50 MB over four ranks in 3 ms: 12.5 GB/s.
    ranks = simulate(4, fsdp(4, transfer_ms=3.0), seed=4)
    divided = msgspec.structs.replace(LATE, shard_ranks=4, replicas=1)
    low, expected, high = percents(hybrid_sharding.check(posed(on_hosts(ranks, 2), fsdp=divided)))
    # Gathers take 0.1 ms; each reduction as long as an all-reduce of 25 MB over two hosts, 2 ms.
    after = simulate(4, fsdp(4, transfer_ms=0.1), seed=4)
    assert 0 < low <= expected <= high
    assert expected < shorter(ranks, after)
    assert "12.5 GB/s" in _derivation(hybrid_sharding.check(posed(on_hosts(ranks, 2), fsdp=divided)))


def _derivation(found: Finding | Silent) -> str:
    assert isinstance(found, Finding)
    assert found.item.saving is not None
    return found.item.saving.derivation


def test_hybrid_sharding_is_not_advised_where_it_would_not_help_or_not_fit() -> None:
    ranks = simulate(4, fsdp(4, transfer_ms=3.0), seed=4)
    divided = msgspec.structs.replace(LATE, shard_ranks=4, replicas=1)

    def why_not(hosts: list[RankFacts], settings: FsdpFacts = divided, **facts: Any) -> str:
        found = hybrid_sharding.check(posed(hosts, fsdp=settings, **facts))
        assert isinstance(found, Silent)
        return found.why

    assert "on one host" in why_not(on_hosts(ranks, 4))
    assert "one rank each" in why_not(on_hosts(ranks, 1))
    assert "no profiles of some ranks" in why_not(on_hosts(ranks, 2)[:3])
    assert "HSDP is used" in why_not(on_hosts(ranks, 2), msgspec.structs.replace(divided, shard_ranks=2, replicas=2))
    memory = {
        "steady_memory_bytes": 10**10,
        "available_memory_bytes": 2 * 10**10,
        "peak_memory_allocated_bytes": 10**10,
    }
    assert "more on each GPU" in why_not(on_hosts(ranks, 2), **{**memory, "steady_memory_bytes": 2 * 10**10})
    assert isinstance(hybrid_sharding.check(posed(on_hosts(ranks, 2), fsdp=divided, **memory)), Finding)
    unknown = hybrid_sharding.check(posed(on_hosts(ranks, 2, gpu="another GPU"), fsdp=divided))
    assert isinstance(unknown, Finding)
    assert unknown.item.saving is None


def test_a_job_over_two_hosts_is_found_in_a_recording() -> None:
    found = finding("settings_recorded/gloo_flat", "hybrid_sharding")
    assert found.title == "FSDP gathers parameters over 2 hosts"
    assert found.saving is None
    assert 'init_device_mesh("cpu", (2, 2)' in found.code
    views = [opened(f"settings_recorded/{name}") for name in ("gloo_flat", "gloo_hybrid")]
    assert hybrid_sharding.was_applied(views[0], views[1]) == "HSDP: 2 copies, each over 2 ranks"
    assert fsdp_prefetch.was_applied(views[0], views[1]) == "forward prefetch on"
    assert fsdp_reshard.was_applied(views[0], views[1]) == "0 instead of 2 units gathered twice"


def test_one_unit_is_found_where_the_exchange_waits_and_not_where_the_cpu_does() -> None:
    found = finding("settings_recorded/gloo_one_unit", "fsdp_large_units")
    assert found.title == "One unit of FSDP has 100 % of the parameters: nothing hides its exchange"
    assert "50 % of the parameters" in why("settings_recorded/gloo_units", "fsdp_large_units")
    views = [opened(f"settings_recorded/{name}") for name in ("gloo_one_unit", "gloo_units")]
    assert fsdp_large_units.was_applied(views[0], views[1]) == "2 instead of 1 units of FSDP"


def test_tensor_parallelism_that_waits_for_its_collectives(gpu_view: ProfileView) -> None:
    ranks = simulate(4, tensor_and_data(2, 2), seed=5)
    found = tensor_parallel_overlap.check(Posed(ranks, RunFacts(), gpu_view))
    low, expected, high = percents(found)
    # Eight collectives of 0.3 ms in a step of about 21.4 ms, of which half can be hidden.
    assert low == 0
    assert 2.0 < expected < high < 100 * 8 * 0.3 / 21.4
    assert isinstance(found, Finding)
    assert "SequenceParallel" in found.item.code
    hosts = tensor_parallel_overlap.check(
        Posed(simulate(2, fsdp(2)), RunFacts(parallel_wrapper="FSDPModule"), gpu_view)
    )
    assert isinstance(hosts, Silent)
    assert not hosts.applicable
    # In the recorded job hosts set the pace.
    assert "hiding them saves 0.00 ms" in why("recorded/tensor_even", "tensor_parallel_overlap")


def test_a_transport_that_is_off_is_a_slow_link_and_no_rank_s_delay() -> None:
    found = finding("recorded/ddp_slow_link", "slow_link")
    assert found.title == "Data between ranks 0, 1 moves slower than the links allow"
    # As timed without the profiler, 37.8 ms and 35.4 ms with peer access.
    assert found.saving is not None
    assert found.saving.low_ns < 2_400_000 < found.saving.high_ns
    assert "rule slow_link" in why("recorded/ddp_slow_link", "straggler")
    assert "GB/s" in why("recorded/ddp_even", "slow_link")
    view = opened("recorded/ddp_slow_link")
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
    def check(**facts: Any) -> Finding | Silent:
        given = {"parallel_wrapper": "DistributedDataParallel", "find_unused_parameters": True, **facts}
        return static_graph.check(Posed([], RunFacts(**given), gpu_view))

    view = opened("../planted/unused_parameters/fault")
    silent = static_graph.check(RuleContext(view, view.selection(), view.ranks))
    assert isinstance(silent, Silent)
    assert silent.why.startswith("2 of 12 parameters got no gradient, and DDP searches for them in each step")
    # The recorded search is below what is worth advice.
    monkeypatch.setattr(thresholds, "WORTHWHILE_SAVING_PERCENT", 0.0)
    found = static_graph.check(RuleContext(view, view.selection(), view.ranks))
    assert isinstance(found, Finding)
    assert found.item.code == "model = DistributedDataParallel(model, static_graph=True)\n"
    assert found.saving is not None
    searched = next(reading.value for reading in found.item.readings if reading.unit == "ns")
    assert 0 < found.saving.expected_ns <= searched
    for facts in ({"ddp": DdpFacts(static_graph=True)}, {"find_unused_parameters": False}):
        assert isinstance(check(**facts), Silent)
    fsdp = Posed([], RunFacts(parallel_wrapper="FSDPModule", find_unused_parameters=True), gpu_view)
    assert unmet(static_graph.RULE.needs, fsdp) == f"{Need.DISTRIBUTED_DATA_PARALLEL.value}."
