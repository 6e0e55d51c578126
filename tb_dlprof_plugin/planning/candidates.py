"""The forecasts of one run, each computed once for rules, pages and realised savings."""

from __future__ import annotations

from tb_dlprof_plugin.planning import Forecast, ForecastError, Precision, forecast
from tb_dlprof_plugin.profile_view import ProfileView, per_view

MIXED: tuple[Precision, ...] = ("tf32", "fp16", "bf16")
"""The precisions that an FP32 run could use, in the order of the pages."""


class Forecasts:
    """The run's forecasts with its own batch size and GPU, over all recorded iterations."""

    def __init__(self, view: ProfileView) -> None:
        self._view = view
        self._found: dict[Precision, Forecast | ForecastError] = {}

    def of(self, precision: Precision) -> Forecast:
        """The forecast in a precision.

        Raises:
            ForecastError: there is none; the message gives the reason.
        """
        outcome = self._found.get(precision)
        if outcome is None:
            try:
                outcome = forecast(self._view, precision)
            except ForecastError as error:
                outcome = error
            self._found[precision] = outcome
        if isinstance(outcome, ForecastError):
            # A new exception: raising the same one again would accumulate tracebacks.
            raise ForecastError(str(outcome))
        return outcome

    def get(self, precision: Precision) -> Forecast | None:
        """The forecast in a precision; None where there is none."""
        try:
            return self.of(precision)
        except ForecastError:
            return None


@per_view
def forecasts(view: ProfileView) -> Forecasts:
    """The forecasts of a run, kept with it."""
    return Forecasts(view)
