"""Advice for recordings of other frameworks than PyTorch: in their words, and nothing about what they have not."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tb_dlprof_plugin.advice.engine import advise, all_rules
from tb_dlprof_plugin.advice.finding import FindingItem
from tb_dlprof_plugin.advice.frameworks import UNDER_NSYS
from tb_dlprof_plugin.advice.needs import Need
from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.metrics.step_buckets import bucket_labels
from tb_dlprof_plugin.model.profile import Verdict
from tb_dlprof_plugin.planning import ForecastError, forecast
from tb_dlprof_plugin.profile_view import ProfileView

FIXTURES = Path(__file__).parents[1] / "readers" / "xplane"
OF_PYTORCH = re.compile(r"torch|prof\.step|DataLoader|autocast|GradScaler|the hook|nn\.Module")


@pytest.fixture(scope="module")
def jax() -> ProfileView:
    """A training in JAX whose FP32 products are taken for such that run off the Tensor Cores."""
    profile = analyze_ranks(FIXTURES / "jax_h200.xplane.pb.gz")[0]
    kernels = profile.kernels
    known = np.where(kernels.tensor_core == Verdict.UNKNOWN, int(Verdict.NO), kernels.tensor_core)
    return ProfileView(replace(profile, kernels=replace(kernels, tensor_core=known)))


def test_a_product_whose_kernel_is_unknown_is_no_reason_to_allow_tf32() -> None:
    view = ProfileView(analyze_ranks(FIXTURES / "jax_h200.xplane.pb.gz")[0])
    assert advise(view, view.selection()).findings == []


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
    assert statuses["dataloader_bound"].why == f"{Need.INPUT_PIPELINE.value}."


def test_remedies_for_other_frameworks_hold_no_pytorch() -> None:
    for one in all_rules():
        for framework, remedy in one.rule.remedies.items():
            said = f"{remedy.title} {remedy.change} {remedy.code}"
            assert framework == UNDER_NSYS or not OF_PYTORCH.search(said)
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


CALLS_CUDA = Path(__file__).parents[1] / "traces" / "nsys"


def test_a_program_of_no_known_framework_is_told_what_any_cuda_program_can_do() -> None:
    profile = analyze_ranks(CALLS_CUDA / "two_kernels.sqlite.gz")[0]
    source = replace(profile.source, framework="")
    view = ProfileView(replace(profile, source=source))
    found = {finding.rule: finding for finding in advise(view, view.selection()).findings}
    assert "nvtxRangePush" in found["no_iterations"].code
    for finding in found.values():
        said = " ".join((finding.title, finding.seen, finding.change, finding.code, finding.confirm))
        assert not OF_PYTORCH.search(said), said
        assert "Python" not in said


def test_pytorch_under_nsight_systems_is_told_of_ranges_and_not_of_options_of_its_own_profiler() -> None:
    item = next(one for one in _found("two_kernels.sqlite.gz") if one.rule == "no_iterations")
    assert "nvtx.range_push" in item.code
    assert not re.search(r"prof\.step|tb_dlprof_plugin\.profile|the hook", f"{item.change} {item.code}")


def _found(name: str) -> list[FindingItem]:
    profile = analyze_ranks(CALLS_CUDA / name)[0]
    view = ProfileView(replace(profile, source=replace(profile.source, framework="pytorch")))
    return advise(view, view.selection()).findings


def test_rules_on_facts_of_the_process_say_that_nsight_systems_has_none() -> None:
    profile = analyze_ranks(CALLS_CUDA / "emit_nvtx_fp32.sqlite.gz")[0]
    view = ProfileView(profile)
    statuses = {status.rule: status for status in advise(view, view.selection()).rules}
    for rule in ("profiler_overhead", "cudnn_benchmark_off", "optimizer_state", "unused_parameters"):
        assert statuses[rule].outcome == "not_applicable"
        assert statuses[rule].why == f"{Need.PROCESS.value}."


@pytest.mark.parametrize("framework", ["jax", "tensorrt", ""])
def test_idle_time_is_called_by_what_the_program_is_written_in(framework: str) -> None:
    labels = bucket_labels(framework, "gpu")
    assert labels["python"] == ("Python between ops" if framework == "jax" else "CPU between calls")
    assert labels["dataloader"] == "Input pipeline"


def test_waiting_for_data_is_unknown_where_a_recording_cannot_show_it() -> None:
    view = ProfileView(analyze_ranks(FIXTURES / "jax_h200.xplane.pb.gz")[0])
    assert step_totals(view, view.selection()).category_ns["dataloader"] is None
    keras = ProfileView(analyze_ranks(FIXTURES / "keras_cpu.xplane.pb.gz")[0])
    assert step_totals(keras, keras.selection()).category_ns["dataloader"] is not None
