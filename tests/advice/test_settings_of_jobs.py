"""Rules about settings of all ranks of a job, on two H200s (`tests/data/ranks/settings_recorded`): with the fault and
without; savings next to the steps that the same processes took without the profiler."""

from __future__ import annotations

import functools
import json
import statistics
from dataclasses import replace

import msgspec
import pytest

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.engine import Advice
from tb_dlprof_plugin.advice.finding import Silent
from tb_dlprof_plugin.advice.rule import Finding
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.rules.multi_gpu import microbatches
from tb_dlprof_plugin.advice.topics import TOPICS, topic_of
from tb_dlprof_plugin.cli.open_profile import open_profile
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView
from tests.support.recorded_runs import ROOT

SETTINGS = ROOT / "tests" / "data" / "ranks" / "settings_recorded"
JOBS = [
    ("gradient_buckets", "wide_one", "wide"),
    ("gradient_bucket_copies", "wide_copied", "wide"),
]
"""Of which the realised saving lies in the stated interval."""


@functools.cache
def opened(job: str) -> ProfileView:
    return open_profile(SETTINGS / job)[0]


@functools.cache
def advice(job: str) -> Advice:
    view = opened(job)
    return advise(view, view.selection())


def step_ns(job: str) -> float:
    """Timed in the same processes, without the profiler."""
    files = sorted((SETTINGS / job).glob("truth.*.json"))
    return 1e6 * statistics.mean(json.loads(file.read_text())["step_ms"] for file in files)


@pytest.mark.parametrize(("rule", "fault", "fixed"), JOBS)
def test_what_a_setting_costs_is_in_the_stated_interval(rule: str, fault: str, fixed: str) -> None:
    (finding,) = [found for found in advice(fault).findings if found.rule == rule]
    assert finding.saving is not None
    assert finding.saving.low_ns <= step_ns(fault) - step_ns(fixed) <= finding.saving.high_ns


def test_half_as_many_microbatches_are_advised_where_the_cpu_launches_too_many() -> None:
    (finding,) = [found for found in advice("gpipe").findings if found.rule == "microbatches"]
    assert finding.title.startswith("4 microbatches instead of 8")
    assert "The CPU sets the pace" in finding.seen
    assert finding.saving is not None
    # Two of them, which have the larger bubble, were timed: four save as much or more.
    assert finding.saving.high_ns > 0.9 * (step_ns("gpipe") - step_ns("gpipe_few"))


def test_the_claim_is_that_of_the_slowest_stage_whichever_rank_is_opened() -> None:
    first = opened("gpipe")
    titles = set()
    for view in first.ranks:
        others = [one for one in first.ranks if one is not view]
        at = ProfileView(view.profile, functools.partial(tuple, others))
        found = microbatches.check(RuleContext(at, at.selection(), at.ranks))
        assert isinstance(found, Finding)
        assert found.saving is not None
        # Four of eight microbatches need half of that CPU's time.
        assert found.saving.percent <= 50.5
        titles.add(found.item.title)
    assert len(titles) == 1


def test_no_claim_where_the_slowest_stage_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    view = opened("gpipe")
    context = RuleContext(view, view.selection(), view.ranks)
    assert context.job is not None
    monkeypatch.setattr(RuleContext, "job", replace(context.job, missing_ranks=[2]))
    found = microbatches.check(context)
    assert isinstance(found, Silent)
    assert "slowest stage may be missing" in found.why


PLAIN = ("gloo_flat", "gloo_one_unit", "sharded_tiny_units", "wide", "wide_copied", "wide_one")


@pytest.mark.parametrize("job", PLAIN)
def test_without_the_hook_the_same_rules_fire(job: str) -> None:
    with_hook = [found.rule for found in advice(job).findings if topic_of(found.rule) == TOPICS["multi_gpu"]]
    plain = _plain(job)
    found = advise(plain, plain.selection()).findings
    assert {one.rule for one in found if topic_of(one.rule) == TOPICS["multi_gpu"]} == set(with_hook)


def test_without_the_hook_the_same_buckets_are_asked_about() -> None:
    with_hook, plain = opened("wide"), _plain("wide")
    changes = []
    for view in (with_hook, plain):
        job = RuleContext(view, view.selection(), view.ranks).job
        assert job is not None
        changes.append([row.change for row in job.what_if if "bucket" in row.change])
    assert changes[0] == changes[1] != []


def _plain(job: str) -> ProfileView:
    """The job with what a trace of torch.profiler says of its process."""
    ranks = []
    for view in opened(job).ranks:
        facts = view.profile.facts
        plain = RunFacts(world_size=facts.world_size, distributed_backend=facts.distributed_backend)
        ranks.append(ProfileView(replace(view.profile, facts=plain)))
    return ProfileView(ranks[0].profile, functools.partial(tuple, ranks[1:]))


def test_how_many_ranks_share_a_model_is_read_from_the_training_process() -> None:
    facts = [opened(job).profile.facts.fsdp for job in ("gloo_flat", "gloo_hybrid")]
    assert [(one.shard_ranks, one.replicas) for one in facts if one is not None] == [(4, 1), (2, 2)]


def test_settings_are_read_from_the_training_process() -> None:
    facts = opened("sharded_tiny_units").profile.facts
    assert facts.fsdp is not None
    assert msgspec.structs.asdict(facts.fsdp) == {
        "version": 2, "units": 42, "resharded_units": 42, "backward_prefetch": True, "forward_prefetch": False,
        "parameter_dtypes": ["bfloat16"], "reduce_dtypes": ["float32"],
        "limit_all_gathers": None, "shard_ranks": None, "replicas": None,
    }  # fmt: skip
