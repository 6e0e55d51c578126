"""What remedies were forecast to gain and what trials then measured, of all trials on this machine.

One JSON line for each remedy in ``$XDG_DATA_HOME/tb_dlprof/forecasts.jsonl`` (by default below ``~/.local/share``).
"""

from __future__ import annotations

import contextlib
import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.model.trial_result import TrialResult
from tb_dlprof_plugin.model.user_folders import data_folder

_MOST_BYTES = 4_000_000
"""Of the file; what is older is left out when it is read."""
_FEWEST = 3
"""Trials from which on their median says what a remedy usually gains."""


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
    """Add the remedies that were measured alone. Never raises: a trial does not fail for want of a home."""
    rows = [
        {
            "day": day, "remedy": row.remedy, "forecast": row.forecast_percent, "gain": row.gain_percent,
            "low": row.low_percent, "high": row.high_percent, "device": result.device, "torch": torch_version,
        }
        for row in result.rows
        if row.gain_percent is not None
    ]  # fmt: skip
    with contextlib.suppress(OSError):
        path = record_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


def kept() -> ForecastAccuracy | None:
    """All trials so far; None without any."""
    errors: list[float] = []
    for row in _rows():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            errors.append(float(row["gain"]) - float(row["forecast"]))
    return _summary(errors)


def usual_gains(device: str) -> dict[str, float]:
    """By the name of a remedy, the median of what it gained on this device so far, in percent of the step."""
    gains: dict[str, list[float]] = {}
    for row in _rows():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            if row["device"] == device:
                gains.setdefault(str(row["remedy"]), []).append(float(row["gain"]))
    return {name: statistics.median(found) for name, found in gains.items() if len(found) >= _FEWEST}


def _rows() -> Iterator[dict[str, Any]]:
    data = b""
    with contextlib.suppress(OSError):
        data = record_path().read_bytes()[-_MOST_BYTES:]
    for line in data.splitlines():
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict):
                yield row


def _summary(errors: Sequence[float]) -> ForecastAccuracy | None:
    if not errors:
        return None
    return ForecastAccuracy(len(errors), statistics.median(abs(one) for one in errors), statistics.fmean(errors))
