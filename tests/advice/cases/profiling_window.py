"""Cases of `profiling_window`: too few steps, the first ones, and too many."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from advice.case import Case
from advice.cases.bad_iteration_range import _calls_made_once
from advice.cases.no_iterations import _batches
from advice.recordings import steps

from tb_dlprof_plugin.profile_view import ProfileView


def _many_events(trace: Any) -> ProfileView:
    steps(*(100,) * 40)(trace)
    profile = trace.profile()
    return ProfileView(replace(profile, source=replace(profile.source, trace_events=6_000_000)))


CASES = (
    Case("one", steps(100), "fired"),
    Case("two", steps(100, 110), "fired"),
    Case("three", steps(100, 100, 100), "silent"),
    Case("the first ones, in which nothing is done once", steps(100, 100, 100, first=0), "silent"),
    Case(
        "the first ones, in which something is",
        _calls_made_once,
        "fired",
        "1 call to the driver for memory (0.15 ms) and 1 call to load code (0.08 ms)",
        # The first step takes 300 us more than the later ones.
        {"Done only once": pytest.approx(100 * 300 / 700)},
    ),
    Case(
        "6 million events",
        _many_events,
        "fired",
        "40 iterations of 150,000 events each were recorded; 6 are enough",
        says=["active=6"],
    ),
    Case("no iterations", _batches(6), "not_applicable"),
)
