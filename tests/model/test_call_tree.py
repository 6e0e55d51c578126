"""Depths of events by columns are those of a stack, one event after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_dlprof_plugin.model.call_tree import depths
from tb_dlprof_plugin.model.profile import Ints

_TIMES = st.integers(0, 12)
_EVENTS = st.lists(st.tuples(st.integers(0, 1), _TIMES, _TIMES), max_size=12)


@dataclass(frozen=True)
class _Spans:
    thread: Ints
    start_ns: Ints
    duration_ns: Ints


def _by_stack(events: list[tuple[int, int, int]]) -> list[int]:
    found, stack, thread = [], [], -1
    for its_thread, start, duration in events:
        if its_thread != thread:
            stack, thread = [], its_thread
        while stack and (start >= stack[-1] or start + duration > stack[-1]):
            stack.pop()
        found.append(len(stack))
        stack.append(start + duration)
    return found


@given(_EVENTS)
def test_depths_are_those_of_a_stack_whether_events_nest_or_cross(drawn: list[tuple[int, int, int]]) -> None:
    events = sorted(drawn, key=lambda one: (one[0], one[1], -one[2]))
    columns = np.array(events, dtype=np.int64).reshape(-1, 3).T
    assert depths(_Spans(*columns)).tolist() == _by_stack(events)
