"""What is asked of a forecast: what a run allows, and each refusal in a sentence that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin import predict
from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.planning import PRECISIONS, ForecastError
from tb_dlprof_plugin.planning.target import target_of
from tb_dlprof_plugin.profile_view import ProfileView

TRACES = Path(__file__).resolve().parents[1] / "traces"
A100 = "NVIDIA A100-SXM4-80GB"


@pytest.fixture(scope="module")
def view(trained: Callable[..., ProfileView]) -> ProfileView:
    return trained(facts=RunFacts(batch_size=8))


def refused(view: ProfileView, precision: str = "bf16", **asked: Any) -> str:
    with pytest.raises(ForecastError) as raised:
        target_of(view, precision, **asked)
    with pytest.raises(ForecastError) as public:
        predict(view, precision, **asked)
    text = str(raised.value)
    assert str(public.value) == text
    assert text.endswith(".")
    return text


def test_the_run_itself_is_the_default(view: ProfileView) -> None:
    for precision in PRECISIONS:
        found = target_of(view, precision)
        assert (found.precision, found.batch_ratio) == (precision, 1)
        assert found.gpu == found.new_gpu == "NVIDIA H200"
        assert found.ceilings is found.new_ceilings


def test_another_batch_size_and_gpu_are_held_against_the_runs(view: ProfileView) -> None:
    found = target_of(view, "fp16", batch_size=12, gpu=A100)
    assert (found.batch_ratio, found.gpu, found.new_gpu) == (1.5, "NVIDIA H200", A100)
    assert (found.ceilings.bandwidth, found.new_ceilings.bandwidth) == (4800, 2039)


def test_a_precision_that_there_is_not(view: ProfileView) -> None:
    assert refused(view, "fp8") == "there is no precision 'fp8'; there is fp32, tf32, fp16, bf16."


def test_a_run_without_a_gpu(cpu_view: ProfileView) -> None:
    assert "recorded no GPU work" in refused(cpu_view)
    assert "Record it on a GPU" in refused(cpu_view, "fp32")


def test_a_gpu_whose_rates_are_not_known(trained: Callable[..., ProfileView]) -> None:
    assert "the peak rates of 'NVIDIA Imaginary 9' are not known" in refused(trained(gpu="NVIDIA Imaginary 9"))


def test_several_kinds_of_gpus(training: Callable[..., Any]) -> None:
    trace = training()
    trace.gpu(id=1, name=A100)
    trace.launch("k", 450, 940, 5, device=1)
    assert "does not say which one GPU it used" in refused(trace.view())


def test_a_run_that_is_neither_fp32_nor_tf32(training: Callable[..., Any]) -> None:
    text = refused(training("fp16").view())
    assert text.startswith("the run computed in FP16 model, and")
    assert "record one without autocast" in text


def test_a_run_in_tf32_goes_to_half_precision_and_stands_for_itself(training: Callable[..., Any]) -> None:
    view = training("tf32").view()
    assert [target_of(view, precision).precision for precision in ("tf32", "fp16", "bf16")] == ["tf32", "fp16", "bf16"]
    assert refused(view, "fp32") == (
        "the run computed in TF32, and what it would take in FP32 is not forecast: tf32 stands for the run as it is."
    )


def test_the_recorded_amp_runs_are_named(recorded: Callable[[str], ProfileView]) -> None:
    assert "the run computed in AMP BF16 (autocast), and" in refused(recorded("lenet/amp-bf16"), "fp32")


def test_a_run_of_which_the_precision_cannot_be_told() -> None:
    view = ProfileView(analyze_trace(TRACES / "threads.pt.trace.json.gz"))
    assert refused(view).startswith("the precision of the run is unknown, and")


def test_a_run_without_shapes(trained: Callable[..., ProfileView]) -> None:
    view = trained()
    ops = view.profile.ops
    bare = ProfileView(replace(view.profile, ops=replace(ops, shapes=np.zeros_like(ops.shapes))))
    text = refused(bare)
    assert "shapes of the ops' inputs were not recorded" in text
    assert "record_shapes=True" in text


def test_a_gpu_without_tensor_cores_for_the_precision(view: ProfileView, trained: Callable[..., ProfileView]) -> None:
    volta, pascal = "Tesla V100-SXM2-16GB", "Tesla P100-PCIE-16GB"
    assert refused(view, "bf16", gpu=volta) == f"the {volta} has no Tensor Cores for BF16."
    assert refused(view, "tf32", gpu=volta) == f"the {volta} has no Tensor Cores for TF32."
    assert refused(view, "fp16", gpu=pascal) == f"the {pascal} has no Tensor Cores for FP16."
    assert target_of(view, "fp16", gpu=volta).new_gpu == volta
    assert target_of(view, "fp32", gpu=pascal).new_gpu == pascal
    assert "the Tesla V100-SXM2-16GB has no Tensor Cores for BF16" in refused(trained(gpu=volta), "bf16")


def test_another_gpu_whose_rates_are_not_known(view: ProfileView) -> None:
    text = refused(view, gpu="A100")
    assert text.startswith("the peak rates of 'A100' are not known; name a GPU as CUDA does")


@pytest.mark.parametrize("size", [0, -3])
def test_an_empty_batch(view: ProfileView, size: int) -> None:
    assert refused(view, batch_size=size) == "a batch has at least one sample."


def test_another_batch_size_than_an_unknown_one(trained: Callable[..., ProfileView]) -> None:
    text = refused(trained(), batch_size=16)
    assert text == "the run's own batch size was not recorded; pass batch_size= to tb_dlprof_plugin.profile."
