"""Which iterations ``tb-dlprof run`` records."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")

from tb_dlprof_plugin.capture.launcher.protocol import RunRequest
from tb_dlprof_plugin.capture.launcher.recording_window import RecordingWindow


def window(**options) -> RecordingWindow:
    return RecordingWindow(RunRequest("/runs/a", time.time(), **options))


@pytest.mark.parametrize(
    ("options", "warms_up_at", "first", "last"),
    [
        ({}, 10, 12, 21),
        ({"first": 0}, 0, 0, 9),
        ({"first": 2, "last": 2}, 0, 2, 2),
        ({"first": 100, "last": 103}, 98, 100, 103),
        ({"last": 4}, 2, 4, 4),
        ({"last": 30}, 10, 12, 30),
        ({"duration_s": 5.0}, 10, 12, 211),
    ],
)
def test_first_and_last_iteration(options, warms_up_at, first, last):
    found = window(**options)
    assert next(n for n in range(120) if found.due(n)) == warms_up_at
    found.open(warms_up_at)
    assert (found.first, found.last) == (first, last)


@pytest.mark.parametrize(
    ("options", "begins_at", "first"),
    [
        ({}, 6, 12),
        ({"first": 10}, 4, 10),
        # Too few iterations before it would be left to time: the light window comes after the recording.
        ({"first": 9}, 7, 9),
        ({"first": 2}, 0, 2),
        ({"last": 4}, 2, 4),
    ],
)
def test_a_light_window_comes_before_the_warm_up_where_there_is_room(options, begins_at, first):
    found = window(**options)
    found.light = True
    assert next(n for n in range(120) if found.due(n)) == begins_at
    found.open(begins_at)
    assert found.first == first


def test_a_delay_that_is_over_late_moves_the_window():
    found = window(delay_s=60.0)
    assert not found.due(50)
    found = RecordingWindow(RunRequest("/runs/a", time.time() - 61, delay_s=60.0))
    assert found.due(50)
    found.open(50)
    assert (found.first, found.last) == (52, 61)


def test_a_delay_beyond_the_last_iteration_misses_it():
    found = window(last=20)
    found.open(30)
    assert found.missed


def test_it_is_over_after_the_last_iteration():
    found = window(first=2, last=4)
    found.begin()
    assert [found.over(n) for n in (2, 4, 5)] == [False, False, True]


@pytest.mark.parametrize(
    ("options", "seconds", "over"),
    [
        ({"duration_s": 2.0}, 1.9, False),
        ({"duration_s": 2.0}, 2.0, True),
        ({}, 61.0, True),
        ({"last": 17}, 61.0, False),
    ],
)
def test_seconds_that_were_given_end_it_and_long_iterations_unless_their_number_was_given(options, seconds, over):
    times = iter((100.0, 100.0 + seconds))
    found = RecordingWindow(RunRequest("/runs/a", 0.0, **options), clock=lambda: next(times))
    found.begin()
    assert found.over(9) == over


def test_between_marks_iterations_are_timed_after_the_start_and_after_a_recording():
    found = window(between_marks=True)
    assert [n for n in range(1, 300) if found.near(n)] == list(range(1, 33))
    found.rest(100)
    assert [n for n in range(101, 300) if found.near(n)] == list(range(101, 133))


def test_between_marks_it_begins_at_once():
    found = window(between_marks=True)
    found.open_now(7)
    assert (found.first, found.last) == (7, 206)


@pytest.mark.parametrize("options", [{}, {"first": 500}, {"first": 3, "last": 4}, {"between_marks": True}])
def test_iterations_that_are_only_counted_are_those_in_which_nothing_happens(options):
    found = window(**options)
    heard, iteration = set(), 0
    while iteration < 3000:
        iteration += 1
        heard.add(iteration)
        if found.due(iteration) and not found.request.between_marks:
            break
        iteration += found.idle(iteration)
    eventful = {n for n in range(1, max(heard) + 1) if found.near(n)}
    assert eventful <= heard
    assert max(heard) > 1000 or max(heard) == max(1, found.first - found.warmup)
    assert options != {"first": 500} or len(heard) < 20


def test_a_delay_is_looked_at_again_before_it_is_over():
    found = window(delay_s=3600.0)
    assert found.idle(1) == 0, "how long an iteration takes is not known yet"
    assert 0 < found.idle(2) < 100
    nearly = window(delay_s=5.0)
    assert nearly.idle(30) == nearly.idle(31) == 0
