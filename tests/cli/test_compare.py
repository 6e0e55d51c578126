"""What ``tb-dlprof compare`` prints of predictions that were compared with the candidate."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.cli.compare import _print_predictions
from tb_dlprof_plugin.pages.realised_savings import (
    ForecastCheckOp,
    ForecastCheckPanel,
    ForecastCheckPart,
    PredictionCheck,
    RealisedSavingRow,
)

FORECAST = ForecastCheckPanel(
    precision="fp16", headline="Predicted was 1.20 ms.", outcome="longer", outcome_text="", base_ms=2.0,
    predicted_ms=1.2, low_ms=1.0, high_ms=1.4, step_ms=1.5, step_low_ms=1.4, step_high_ms=1.6, recorded_ms=1.7,
    estimated=True, error_percent=-20.0, limited_by="", limit_text="", note="",
    parts=[ForecastCheckPart("kernels", "kernels", 0.5, 0.4, 25.0)],
    ops=[
        ForecastCheckOp("1", "fc/linear", "fc", "linear", "forward", 0.25, 0.125, 0.1, 0.025, 25.0, ""),
        ForecastCheckOp("2", "relu", "", "relu", "backward", 0.02, 0.02, None, None, None, ""),
    ],
    total_rows=2,
)  # fmt: skip


def test_times_of_the_forecast(capsys: pytest.CaptureFixture[str]) -> None:
    _print_predictions(PredictionCheck(forecast=FORECAST, refusal="", savings=[]), limit=10)
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        "",
        "Predicted was 1.20 ms.",
        "per step forecast measured error",
        "step without the profiler 1.20 ms ~1.50 ms -20 %",
        "kernels 500 µs 400 µs +25 %",
        "",
        "Kernels with the largest error Pass Base Forecast Measured Error, %",
        "fc/linear forward 250 µs 125 µs 100 µs +25 %",
        "relu backward 20.0 µs 20.0 µs not in run -",
    ]


def test_a_refused_forecast_and_a_saving(capsys: pytest.CaptureFixture[str]) -> None:
    row = RealisedSavingRow(
        "tf32_off", "TF32 is not used", "TF32 switched on", 100_000, 250_000, 400_000, 300_000, None, None, False,
        "kept", "The step became 300 µs shorter.",
    )  # fmt: skip
    _print_predictions(PredictionCheck(forecast=None, refusal="the base is not FP32", savings=[row]), limit=10)
    assert capsys.readouterr().out == (
        "\nNo forecast to compare with the candidate: the base is not FP32\n"
        "\nAdvised for the base: TF32 is not used\n"
        "  Changed: TF32 switched on. Predicted saving: 250 µs a step, 100 µs to 400 µs.\n"
        "  The step became 300 µs shorter.\n"
    )
