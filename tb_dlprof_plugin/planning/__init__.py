"""Forecasts the step of a run in another precision, batch size or GPU, from its recording alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_dlprof_plugin.model.lazy_imports import imported_on_use

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

__getattr__ = imported_on_use(__name__, _HOME)
