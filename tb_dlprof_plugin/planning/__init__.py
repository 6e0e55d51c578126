"""What a run would take in another precision, from its FP32 recording alone."""

from __future__ import annotations

from tb_dlprof_plugin.planning.predict import Forecast, OpForecast, forecast
from tb_dlprof_plugin.planning.target import PRECISIONS, ForecastError, Precision

__all__ = ["PRECISIONS", "Forecast", "ForecastError", "OpForecast", "Precision", "forecast"]
