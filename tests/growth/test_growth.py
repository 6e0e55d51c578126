"""What is asked takes as many times as long as a recording has of anything, not more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from growth.generator import DIMENSIONS
from growth.measure import MOST_SLOPE, Growth, grow, table
from growth.questions import questions, recording
from support.all_answers import ask
from support.operations import elements

from tb_dlprof_plugin.advice.rules.idle_gpu.sm_occupancy import filling
from tb_dlprof_plugin.metrics.averages import operator_averages
from tb_dlprof_plugin.metrics.roofline import roofline
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.sequence import sequence

_NOISE = 0.1
"""Of a slope that is measured in seconds."""


@pytest.mark.parametrize(
    ("dimension", "n", "function"),
    [
        ("threads", 60, sequence),
        ("streams", 60, sequence),
        ("streams", 60, filling),
        ("depth", 100, operator_averages),
        ("recursion", 100, operator_averages),
        ("modules", 60, roofline),
    ],
)
def test_four_times_as_much_is_four_times_the_work(
    dimension: str, n: int, function: Callable[..., Any], tmp_path: Path
) -> None:
    def work(count: int) -> int:
        view = ProfileView(recording(dimension, count, tmp_path).profiles[0])
        # What it needs is there then, and its own answer is not taken from there.
        function(view, view.selection())
        return elements(lambda: getattr(function, "__wrapped__", function)(view, view.selection()))

    assert work(4 * n) <= 4**MOST_SLOPE * work(n)


def test_waits_that_stay_open_cost_no_more_with_more_streams(new_trace: Callable[[], Any]) -> None:
    def work(streams: int) -> int:
        # GIVEN kernels of many streams at the same time: none has ended that a wait could be for
        trace, length = new_trace(), 20 * streams
        trace.gpu()
        trace.step(0, 0, 2 * length)
        for stream in range(streams):
            at = 20 * stream
            trace.runtime(at + 1, 1, name="cudaStreamWaitEvent")
            trace.launch("k", at + 5, at + 10, 2 * length - at - 20, stream=7 + stream)
        view = trace.view()
        sequence(view, view.selection())
        return elements(lambda: sequence.__wrapped__(view, view.selection()))  # type: ignore[attr-defined]

    assert work(800) <= 4**MOST_SLOPE * work(200)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_no_answer_does_more_work_than_a_recording_has(dimension: str, tmp_path: Path) -> None:
    n = {"steps": 25, "ranks": 3}.get(dimension, 60)
    less, more = (dict(questions(recording(dimension, count, tmp_path))) for count in (n, 4 * n))
    for name in more.keys() & less.keys():
        few, many = (elements(lambda of=of, name=name: ask((name, of[name]))) for of in (less, more))
        assert many <= 4**MOST_SLOPE * few, name


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_time_and_memory_grow_no_faster_than_a_recording(dimension: str) -> None:
    def steep(asked: list[str]) -> list[Growth]:
        return [one for one in grow(dimension, asked, repeat=2) if one.worst > MOST_SLOPE + _NOISE]

    # Another process may have been in the way: what is steep is measured again.
    first = steep([])
    again = steep([one.question for one in first]) if first else []
    assert not again, table(again)
