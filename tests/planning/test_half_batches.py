"""Another batch size or GPU of a run that computed in half precision, in that precision."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tb_dlprof_plugin.planning import ForecastError, forecast
from tb_dlprof_plugin.profile_view import ProfileView

PAIRS = Path(__file__).resolve().parents[1] / "data" / "precision_pairs"
MODEL = "torchvision/resnet18"


def step_ms(batch: int, precision: str) -> float:
    """The timed step of the same model with another batch."""
    runs = json.loads((PAIRS / "recording.json").read_text())["runs"]
    (found,) = (
        float(run["unprofiled_step_ms"])
        for run in runs
        if (run["subject"], run["precision"]) == (f"{MODEL}-b{batch}", precision)
    )
    return found


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize(("batch", "limit"), [(8, "cpu"), (32, ""), (512, "gpu")])
def test_the_timed_step_of_another_batch_is_near(
    precision: str, batch: int, limit: str, recorded: Callable[[str], ProfileView]
) -> None:
    found = forecast(recorded(f"{MODEL}/amp-{precision}"), precision, batch_size=batch)
    assert found.predicted_ns / 1e6 == pytest.approx(step_ms(batch, f"amp-{precision}"), rel=0.13)
    assert found.limited_by == (limit or found.limited_by)
    # The run has its casts already.
    assert found.casts == found.scaler_ns == 0
    assert not any(op.precision for op in found.ops if op.measured_ns == op.predicted_ns)


def test_another_gpu_takes_its_rates(recorded: Callable[[str], ProfileView]) -> None:
    found = forecast(recorded(f"{MODEL}/amp-bf16"), "bf16", gpu="NVIDIA A100-SXM4-80GB")
    # 4.8 against 2.0 TB/s, 990 against 312 TFLOP/s.
    assert 2.2 < found.predicted_ns / found.base_ns < 3.3


def test_without_another_batch_or_gpu_or_in_another_precision_there_is_nothing_to_say(
    recorded: Callable[[str], ProfileView],
) -> None:
    view = recorded(f"{MODEL}/amp-bf16")
    for precision, batch in (("bf16", None), ("fp16", 8), ("tf32", 8)):
        with pytest.raises(ForecastError, match="In BF16 itself another batch size or GPU can be forecast"):
            forecast(view, precision, batch_size=batch)


def test_compiled_runs_in_bf16_have_other_batches(recorded: Callable[[str], ProfileView]) -> None:
    view = recorded(f"{MODEL}/compile-amp-bf16")
    large, small = (forecast(view, "bf16", batch_size=batch) for batch in (256, 64))
    assert 1.5 < large.predicted_ns / large.base_ns < 2.0
    assert small.predicted_ns < small.base_ns
    assert (large.limited_by, small.limited_by) == ("gpu", "cpu")
