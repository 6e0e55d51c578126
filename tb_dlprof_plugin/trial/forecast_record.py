"""What remedies were forecast to gain and what trials then measured, of all trials on this machine.

One JSON line for each remedy in ``$XDG_DATA_HOME/tb_dlprof/forecasts.jsonl`` (by default below ``~/.local/share``).
"""

from __future__ import annotations

import contextlib
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tb_dlprof_plugin.model.trial_result import TrialResult
from tb_dlprof_plugin.model.user_folders import data_folder

_MOST_BYTES = 4_000_000
"""Of the file; what is older is left out when it is read."""


@dataclass(frozen=True, slots=True)
class ForecastAccuracy:
    """Forecasts against gains, both in percent of the step.

    Attributes:
        count: remedies with a forecast.
        median_error: median of |gain - forecast|, in points.
        bias: mean of gain - forecast, in points.
    """

    count: int
    median_error: float
    bias: float


def record_path() -> Path:
    """Of the file."""
    return data_folder() / "forecasts.jsonl"


def add(result: TrialResult, torch_version: str, day: str) -> None:
    """Add the remedies that had a forecast. Never raises: a trial does not fail for want of a home."""
    rows = [
        {
            "day": day, "remedy": row.remedy, "forecast": row.forecast_percent, "gain": row.gain_percent,
            "low": row.low_percent, "high": row.high_percent, "device": result.device, "torch": torch_version,
        }
        for row in result.rows
        if row.forecast_percent is not None and row.gain_percent is not None
    ]  # fmt: skip
    with contextlib.suppress(OSError):
        path = record_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


def kept() -> ForecastAccuracy | None:
    """All trials so far; None without any."""
    errors: list[float] = []
    with contextlib.suppress(OSError):
        data = record_path().read_bytes()[-_MOST_BYTES:]
        for line in data.splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                row = json.loads(line)
                errors.append(float(row["gain"]) - float(row["forecast"]))
    return _summary(errors)


def _summary(errors: Sequence[float]) -> ForecastAccuracy | None:
    if not errors:
        return None
    return ForecastAccuracy(len(errors), statistics.median(abs(one) for one in errors), statistics.fmean(errors))
