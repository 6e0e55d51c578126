"""The Precision card and the Numeric health panel: sentences with counts, and nothing where nothing is known."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from support.recorded_runs import recorded_view
from typer.testing import CliRunner

import tb_dlprof_plugin
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.model.run_facts import LossScale, RunFacts
from tb_dlprof_plugin.pages.common import run_title
from tb_dlprof_plugin.pages.overview import overview
from tb_dlprof_plugin.pages.precision import numeric_health_panel, precision_summary
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "demo" / "recorded"
OVERFLOWING = ROOT / "tests" / "data" / "planted" / "loss_scale_overflow" / "fault"


def recorded(model: str, precision: str, **facts: Any) -> ProfileView:
    (stored,) = tb_dlprof_plugin.read_profiles(RECORDED / model / precision)
    for name, value in facts.items():
        setattr(stored.profile.facts, name, value)
    return ProfileView(stored.profile)


def test_a_run_is_called_by_what_it_did() -> None:
    assert (
        run_title(recorded("resnet50", "amp-fp16")) == "resnet50/amp-fp16, ResNet50, AMP FP16 (autocast), NVIDIA H200"
    )


def test_the_evidence_has_counts() -> None:
    summary = precision_summary(recorded("resnet50", "amp-fp16"))
    assert summary.evidence == [
        "Matrix time: 100 % in FP16.",
        "autocast wrapped 540 of 540 forward matrix ops.",
        "Casts of FP32 tensors: 570 to FP16.",
        "The parameters are float32.",
        "20 calls of GradScaler's ops.",
    ]
    assert (summary.label, summary.loss_scaling, summary.disagreements) == ("AMP FP16 (autocast)", "yes", [])


def test_regions_are_ops_in_another_precision() -> None:
    summary = precision_summary(recorded("custom", "tf32"))
    assert summary.label == "TF32"
    assert summary.regions[0].precision == "3xTF32"
    assert summary.regions[0].name.endswith(".attention/scaled_dot_product_attention")
    assert sum(share.percent or 0 for share in summary.shares) == pytest.approx(100)


def test_a_name_in_tensorboard_may_say_otherwise() -> None:
    view = recorded("resnet50", "fp32", run_name=None)
    assert precision_summary(view, "resnet50/fp32").disagreements == []
    assert precision_summary(view, "resnet50/amp").disagreements == [
        'The run is called "resnet50/amp", yet it ran in FP32.'
    ]
    # Told once, though both the hook's name and TensorBoard's say so.
    view = recorded("resnet50", "fp32", run_name="amp")
    assert len(precision_summary(view, "resnet50/amp").disagreements) == 1


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"autocast": True, "autocast_dtype": "float16"},
         "autocast (float16) was on, yet no matrix op ran in FP16 or BF16."),
        ({"parameter_dtypes": ["bfloat16"]}, "The parameters are bfloat16, yet no matrix op ran in FP16 or BF16."),
        ({"apex_opt_level": "O1"}, "Apex was initialized with opt_level O1, yet no matrix op ran in FP16."),
        ({"matmul_allow_tf32": True, "cudnn_allow_tf32": True}, "TF32 is allowed, yet no matrix op ran in it."),
        ({"grad_scaler": True},
         "A GradScaler scales the loss, yet nothing ran in FP16: other precisions do not need it."),
    ],
)  # fmt: skip
def test_what_was_declared_and_not_done(facts: dict[str, Any], sentence: str) -> None:
    assert sentence in precision_summary(recorded("resnet50", "fp32", **facts)).disagreements


def test_numeric_health_only_where_there_is_something_to_say() -> None:
    view = recorded("alexnet", "fp32")
    assert numeric_health_panel(view, view.selection()) is None
    view = recorded_view(OVERFLOWING)
    panel = numeric_health_panel(view, view.selection())
    assert panel is not None
    assert panel.headline == "2 of 5 optimizer steps were skipped: a gradient was inf or NaN."
    assert (panel.skipped_iterations, panel.loss_scale, len(panel.loss_scales)) == ([24, 26], 2.0**24, 1)
    later = numeric_health_panel(view, view.selection(4, 4))
    assert later is not None
    assert later.headline == "None of 1 optimizer step was skipped: all gradients were finite."


def test_an_unknown_number_of_skipped_steps_is_not_0(cpu_view: ProfileView) -> None:
    facts = RunFacts(grad_scaler=True, loss_scales=[LossScale(0, 8.0)])
    view = ProfileView(dataclasses.replace(cpu_view.profile, facts=facts))
    panel = numeric_health_panel(view, view.selection())
    assert panel is not None
    assert (panel.skipped_steps, panel.checked_steps) == (None, None)
    assert panel.headline == "The loss is scaled; whether steps were skipped was not recorded."


def test_the_command_prints_both() -> None:
    result = CliRunner().invoke(app, ["summary", str(OVERFLOWING)])
    assert "AMP FP16 (autocast)" in result.output
    assert "Numeric health: 2 of 5 optimizer steps were skipped" in result.output
    assert "Skipped in iterations 24, 26." in result.output
    answer = json.loads(CliRunner().invoke(app, ["summary", str(OVERFLOWING), "--json"]).output)
    assert answer["numeric_health"]["skipped_steps"] == 2
    assert answer["precision"]["label"] == "AMP FP16 (autocast)"


def test_a_recording_that_tells_nothing(new_trace: Any) -> None:
    trace = new_trace()
    trace.op("aten::add", 0, 10)
    view = trace.view()
    page = overview(view, RunRef("fp16", "s", 0, 0), view.selection())
    assert (page.precision.label, page.precision.shares, page.numeric_health) == (None, [], None)
    assert page.precision.evidence == ["No matrix product, convolution or attention was recorded."]
    assert page.precision.disagreements == []
