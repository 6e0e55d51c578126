"""Recorded runs and small literal ones for the tests in this directory."""

from support.recorded_runs import recorded, trained

__all__ = ["recorded", "trained"]
