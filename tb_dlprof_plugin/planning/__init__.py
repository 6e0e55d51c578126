"""Forecasts the step of a run in another precision, batch size or GPU, from its recording alone."""

from __future__ import annotations

from tb_dlprof_plugin.planning.predict import Forecast, OpForecast, forecast
from tb_dlprof_plugin.planning.target import PRECISIONS, ForecastError, Precision

__all__ = ["PRECISIONS", "Forecast", "ForecastError", "OpForecast", "Precision", "forecast"]
