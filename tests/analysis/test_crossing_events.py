"""Events of a thread nest after the analysis, whatever the trace has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.model.tree import parents
from tb_dlprof_plugin.profile_view import ProfileView


def _spans(profile: Profile) -> dict[str, tuple[int, int]]:
    names = [profile.strings[index] for index in profile.ops.name[profile.calls.op].tolist()]
    spans = zip(profile.calls.start_ns.tolist(), profile.calls.duration_ns.tolist(), strict=True)
    return {name: (start // 1000, duration // 1000) for name, (start, duration) in zip(names, spans, strict=True)}


def _notes(profile: Profile) -> list[int | None]:
    return [note.count for note in profile.notes if note.code == "crossing_events"]


def test_of_two_ops_that_cross_the_first_ends_where_the_second_begins(new_trace: Any) -> None:
    trace = new_trace()
    trace.op("aten::outer", 0, 100)
    trace.op("aten::first", 10, 50)
    trace.op("aten::inside", 20, 39)
    trace.op("aten::second", 40, 50)
    profile = trace.profile()

    assert _spans(profile) == {
        "aten::outer": (0, 100), "aten::first": (10, 30), "aten::inside": (20, 20), "aten::second": (40, 50),
    }  # fmt: skip
    assert profile.calls.depth.tolist() == [0, 1, 2, 1]
    assert _notes(profile) == [2]


def test_an_op_that_lasts_beyond_its_step_ends_with_it_and_the_step_stays(new_trace: Any) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.op("aten::long", 10, 1e9)
    trace.step(1, 100, 100)
    trace.op("aten::mm", 110, 20)
    profile = trace.profile()

    assert _spans(profile)["aten::long"] == (10, 90)
    assert (profile.iterations.duration_ns // 1000).tolist() == [100, 100]
    assert _notes(profile) == [1]


def test_steps_that_overlap_end_where_the_next_one_begins(new_trace: Any) -> None:
    trace = new_trace()
    for number in range(3):
        trace.step(number, 100 * number, 130)
        trace.op("aten::mm", 100 * number + 50, 20)
    assert (trace.profile().iterations.duration_ns // 1000).tolist() == [100, 100, 130]


@pytest.mark.parametrize("start", [30, 60])
def test_events_that_nest_or_follow_each_other_are_left_alone(new_trace: Any, start: int) -> None:
    trace = new_trace()
    trace.op("aten::first", 10, 50)
    trace.op("aten::second", start, 30)
    trace.op("aten::other_thread", 20, 500, tid=9)
    profile = trace.profile()
    assert _spans(profile) == {
        "aten::first": (0, 50), "aten::second": (start - 10, 30), "aten::other_thread": (10, 500),
    }  # fmt: skip
    assert _notes(profile) == []


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(1, 2), st.booleans()), min_size=1))
def test_any_events_nest_and_self_times_add_up_to_the_outermost(new_trace: Any, events: list[Any]) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 1)
    for number, (start, duration, thread, is_step) in enumerate(events):
        if is_step:
            trace.step(number, start, duration)
        else:
            trace.op("aten::mm", start, duration, tid=thread)
    profile = trace.profile()
    calls = profile.calls
    parent, stop = parents(calls.depth), calls.start_ns + calls.duration_ns
    inner = parent >= 0
    assert (stop[inner] <= stop[parent[inner]]).all()
    own = ProfileView(profile).call_self_ns
    assert (own >= 0).all()
    assert own.sum() == calls.duration_ns[~inner].sum()
    for thread in np.unique(calls.thread):
        top = ~inner & (calls.thread == thread)
        assert (calls.start_ns[top][1:] >= stop[top][:-1]).all()
