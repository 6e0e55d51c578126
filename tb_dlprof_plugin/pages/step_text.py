"""The source of the step without the profiler as a phrase: once on a page, next to its length."""

from __future__ import annotations

from tb_dlprof_plugin.model.formatting import duration
from tb_dlprof_plugin.simulation.estimate import StepEstimate


def step_words(estimate: StepEstimate) -> str:
    """Such as "timed without the profiler; 67.4 ms while recorded"."""
    if estimate.source == "recorded":
        return estimate.words
    return f"{estimate.words}; {duration(estimate.recorded_ns)} while recorded"
