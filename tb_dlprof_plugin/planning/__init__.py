"""Forecasts the step of a run in another precision, batch size or GPU, from its recording alone."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_dlprof_plugin.planning.predict import Forecast, OpForecast, forecast
    from tb_dlprof_plugin.planning.target import PRECISIONS, ForecastError, Precision

_HOME = {
    "Forecast": "tb_dlprof_plugin.planning.predict",
    "OpForecast": "tb_dlprof_plugin.planning.predict",
    "forecast": "tb_dlprof_plugin.planning.predict",
    "PRECISIONS": "tb_dlprof_plugin.planning.target",
    "ForecastError": "tb_dlprof_plugin.planning.target",
    "Precision": "tb_dlprof_plugin.planning.target",
}

__all__ = ["PRECISIONS", "Forecast", "ForecastError", "OpForecast", "Precision", "forecast"]


def __getattr__(name: str) -> Any:
    # Who needs one module of the package does not wait for the others.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
