"""Stated savings against what a second run realised: recorded pairs, and made-up ones for each outcome."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.finding import SavingItem
from tb_dlprof_plugin.advice.realised_savings import RealisedSaving, outcome_of, realised_savings
from tb_dlprof_plugin.comparison import compare
from tb_dlprof_plugin.model.run_facts import DataLoaderFacts, RunFacts
from tb_dlprof_plugin.profile_view import ProfileView

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"


def recorded(run: str) -> ProfileView:
    return recorded_view(RECORDED / run)


def with_facts(run: str, **facts: Any) -> ProfileView:
    profile = recorded(run).profile
    return ProfileView(replace(profile, facts=msgspec.structs.replace(profile.facts, **facts)))


def kept(a: ProfileView, b: ProfileView) -> list[RealisedSaving]:
    return realised_savings(compare(a, b), a, b, a.selection(), b.selection())


def test_nothing_was_promised_where_the_forecast_cannot_tell() -> None:
    # 60.68 ms became 55.67: between 0.89 and 1.40 times as fast was forecast.
    assert kept(recorded("resnet50/tf32"), recorded("resnet50/amp-bf16")) == []


@pytest.mark.parametrize(
    ("base", "candidate", "rule", "change", "realised_ms"),
    [
        # Realised: the difference of the unprofiled steps in recording.json.
        ("resnet50/fp32", "resnet50/amp-bf16", "amp_not_used", "AMP BF16 (autocast)", 145.98 - 55.67),
        ("resnet50/fp32", "resnet50/tf32", "tf32_off", "TF32 on", 145.98 - 60.68),
        ("custom/fp32", "custom/amp-fp16", "amp_not_used", "AMP FP16 (autocast)", 48.23 - 15.61),
    ],
)
def test_a_later_run_that_made_the_change_shows_what_was_saved(
    base: str, candidate: str, rule: str, change: str, realised_ms: float
) -> None:
    a, b = recorded(base), recorded(candidate)
    (found,) = kept(a, b)
    assert (found.finding.rule, found.change, found.outcome, found.also) == (rule, change, "kept", [])
    assert found.realised_ns / 1e6 == pytest.approx(realised_ms, abs=1)
    assert found.saving == next(f.saving for f in advise(a, a.selection()).findings if f.rule == rule)


def test_what_was_not_advised_or_not_done_is_no_promise() -> None:
    # LeNet gets no advice to use AMP; a run that repeats another made no change; another model proves nothing.
    assert kept(recorded("lenet/fp32"), recorded("lenet/amp-fp16")) == []
    base = recorded("vgg16/fp32")
    assert kept(base, recorded("vgg16/fp32")) == []
    assert kept(base, recorded("alexnet/tf32")) == []


@pytest.mark.parametrize(
    ("realised", "outcome"), [(5, "kept"), (10, "kept"), (21, "more"), (4, "less"), (0, "broken"), (-3, "broken")]
)
def test_outcomes(realised: float, outcome: str) -> None:
    assert outcome_of(SavingItem(5, 10, 20, 1.0, ""), realised) == outcome


def test_a_saving_that_may_be_negative_is_kept_where_the_step_got_longer() -> None:
    assert outcome_of(SavingItem(-5, 10, 20, 1.0, ""), -3) == "kept"


@pytest.fixture
def loading(new_trace) -> Any:
    """Makes steps that wait so many microseconds for the DataLoader and then compute for 500, on a GPU."""

    def make(wait: float, **facts: Any) -> ProfileView:
        trace = new_trace()
        trace.gpu()
        for step in range(4):
            at = step * (wait + 500)
            trace.step(step, at, wait + 500)
            trace.loader(at, wait)
            trace.op("aten::mm", at + wait, 12, dims=[[8, 8], [8, 8]], types=["float", "float"])
            trace.launch("ampere_sgemm_128x64_nn", at + wait + 2, at + wait + 10, 480)
            trace.op("aten::item", at + wait + 15, 480)
            trace.runtime(at + wait + 16, 476, name="cudaStreamSynchronize")
        timed = [1000 * round(wait + 500)] * 4
        view: ProfileView = trace.view(facts=RunFacts(unprofiled_before_ns=timed, unprofiled_after_ns=timed, **facts))
        return view

    return make


@pytest.mark.parametrize(("wait", "outcome"), [(10, "kept"), (150, "kept"), (250, "less"), (320, "broken")])
def test_more_workers_are_held_against_what_the_dataloader_rule_stated(loading, wait: float, outcome: str) -> None:
    base = loading(300, dataloader=DataLoaderFacts(num_workers=0, persistent_workers=False))
    later = loading(wait, dataloader=DataLoaderFacts(num_workers=4, persistent_workers=True))
    (found,) = kept(base, later)
    assert (found.finding.rule, found.outcome, found.estimated) == ("synchronous_dataloader", outcome, False)
    assert found.change == "num_workers 0 to 4, persistent_workers on"
    assert found.realised_ns == (300 - wait) * 1000


def test_fewer_workers_are_not_the_advised_change(loading) -> None:
    base = loading(300, dataloader=DataLoaderFacts(num_workers=4))
    assert kept(base, loading(10, dataloader=DataLoaderFacts(num_workers=2))) == []
    assert kept(base, loading(10)) == []


def test_changes_made_together_are_not_told_apart() -> None:
    a, b = recorded("resnet50/fp32"), with_facts("resnet50/amp-bf16", cudnn_benchmark=True)
    found = kept(a, b)
    assert [row.finding.rule for row in found] == ["amp_not_used", "cudnn_benchmark_off"]
    assert {row.outcome for row in found} == {"shared"}
    assert len({row.realised_ns for row in found}) == 1


def test_other_differences_are_named() -> None:
    a, b = recorded("resnet50/fp32"), with_facts("resnet50/tf32", optimizer="LBFGS", channels_last=True)
    (found,) = kept(a, b)
    assert found.also == ["channels last", "optimizer"]
