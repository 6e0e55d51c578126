"""The recorded runs: complete, small, and their predictions confirmed by the second run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.model.precision import observed_precision

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "demo" / "recorded"
MODELS = ("mlp", "lenet", "alexnet", "vgg16", "resnet50", "custom")
PRECISIONS = {"fp32": "fp32", "tf32": "tf32", "amp-fp16": "fp16", "amp-bf16": "bf16"}
MEGABYTE = 1_000_000
RUNS = {
    f"{run['model']}/{run['precision']}": run["result"]
    for run in json.loads((RECORDED / "recording.json").read_text())["runs"]
}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("model", MODELS)
def test_each_run_holds_ten_iterations_on_the_gpu_in_the_precision_of_its_name(model: str, precision: str) -> None:
    profile = recorded_view(RECORDED / model / precision).profile
    assert len(profile.iterations) == 10
    assert profile.system.gpus[0].compute_capability == (9, 0)
    assert profile.facts.module_ranges is True
    assert (profile.iterations.category_ns.sum(axis=(1, 2)) == profile.iterations.duration_ns).all()
    if model not in ("mlp", "lenet"):
        assert observed_precision(profile) == PRECISIONS[precision]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_ten_resnet50_iterations_take_less_than_a_megabyte(precision: str) -> None:
    (file,) = (RECORDED / "resnet50" / precision).glob("events.out.tfevents.*")
    assert file.stat().st_size < MEGABYTE


@pytest.mark.parametrize("run", ["alexnet/fp32", "vgg16/fp32", "vgg16/amp-fp16", "resnet50/fp32", "resnet50/tf32"])
def test_the_step_time_of_a_gpu_bound_run_is_the_unprofiled_one(run: str) -> None:
    view = recorded_view(RECORDED / run)
    shown = step_totals(view, view.selection()).average_ns / 1e6
    assert shown == pytest.approx(RUNS[run]["unprofiled_step_ms"], rel=0.04)


@pytest.mark.long
def test_the_second_run_confirms_the_predicted_savings() -> None:
    script = ROOT / "lab" / "advice_against_second_run.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    confirmed, total = (int(word) for word in done.stdout.splitlines()[-1].split() if word.isdigit())
    assert total == 105
    assert confirmed >= 0.8 * total, done.stdout
