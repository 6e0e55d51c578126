"""Advice for recordings of other frameworks than PyTorch: in their words, and nothing about what they have not."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tb_dlprof_plugin.advice import frameworks
from tb_dlprof_plugin.advice.engine import advise, all_rules
from tb_dlprof_plugin.advice.needs import Need
from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.planning import ForecastError, forecast
from tb_dlprof_plugin.profile_view import ProfileView

FIXTURES = Path(__file__).parents[1] / "readers" / "xplane"
OF_PYTORCH = re.compile(r"torch|prof\.step|DataLoader|autocast|GradScaler|the hook|nn\.Module")


@pytest.fixture(scope="module")
def jax() -> ProfileView:
    return ProfileView(analyze_ranks(FIXTURES / "jax_h200.xplane.pb.gz")[0])


def test_findings_of_a_jax_run_speak_of_nothing_that_is_pytorchs(jax: ProfileView) -> None:
    advice = advise(jax, jax.selection())
    assert [finding.rule for finding in advice.findings] == ["tf32_off"]
    for finding in advice.findings:
        said = " ".join((finding.title, finding.seen, finding.change, finding.code, finding.confirm))
        assert not OF_PYTORCH.search(said)
    assert "jax_default_matmul_precision" in advice.findings[0].code
    for status in advice.rules:
        if status.outcome in ("fired", "silent"):
            assert not OF_PYTORCH.search(status.why), status


def test_rules_about_pytorch_are_listed_with_the_reason(jax: ProfileView) -> None:
    statuses = {status.rule: status for status in advise(jax, jax.selection()).rules}
    assert set(statuses) == {one.rule.id for one in all_rules()}
    assert statuses["zero_grad_to_zero"].outcome == "not_applicable"
    assert (
        statuses["zero_grad_to_zero"].why == "Not applicable: the rule is about PyTorch, and this recording is of JAX."
    )
    assert statuses["dataloader_bound"].why == f"Not applicable: this recording has no {Need.INPUT_PIPELINE.value}."


def test_remedies_are_of_rules_that_exist_and_hold_no_pytorch() -> None:
    rules = {one.rule.id for one in all_rules()}
    assert set(frameworks._REMEDIES) <= rules
    assert rules >= frameworks.ANY_FRAMEWORK
    for remedies in frameworks._REMEDIES.values():
        for remedy in remedies.values():
            assert not OF_PYTORCH.search(f"{remedy.title} {remedy.change} {remedy.code}")
            assert remedy.change.endswith(".")


def test_keras_waits_for_its_input_pipeline_and_is_told_of_tf_data() -> None:
    profile = analyze_ranks(FIXTURES / "keras_cpu.xplane.pb.gz")[0]
    view = ProfileView(profile)
    status = {status.rule: status for status in advise(view, view.selection()).rules}["dataloader_bound"]
    assert (status.title, status.outcome) == ("The step waits for the input pipeline", "silent")
    assert "DataLoader" not in status.why


def test_forecasts_of_precision_are_refused_for_other_frameworks(jax: ProfileView) -> None:
    with pytest.raises(ForecastError, match="this recording is of JAX"):
        forecast(jax, "bf16")
    unknown = ProfileView(replace(jax.profile, source=replace(jax.profile.source, framework="")))
    with pytest.raises(ForecastError, match="does not say which framework"):
        forecast(unknown, "bf16")
