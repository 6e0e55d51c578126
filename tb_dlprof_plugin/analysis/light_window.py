"""Adds a light window to a profile: matches each of its launches with one of the full window.

The light window is a few steps with GPU activities and CUDA calls alone. The full window holds steps of the same
training, with the ops and modules that launched the same kernels in the same order: the order identifies them.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.analysis.attribution import launch_calls
from tb_dlprof_plugin.model.lookup import rows_of_each, take_or
from tb_dlprof_plugin.model.profile import (
    Bools,
    CallKind,
    Ints,
    LightCalls,
    LightLaunches,
    LightWindow,
    Note,
    Profile,
    light_step,
)
from tb_dlprof_plugin.model.timeline import HostKind, Timeline
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.registry import read_timelines

_LEAST_MATCHED = 0.95
"""Share of a step's GPU time that must be found in one iteration: below, the step did other work."""
_MOST_ALIGNED = 3000
"""Launches of a step that differ: to align more of them takes minutes, and so many mean another kind of step."""
_MOST_TRIED = 4


def with_light_window(profile: Profile, trace_path: str | os.PathLike[str], boundary_unix_ns: Sequence[int]) -> Profile:
    """The profile with its light window. If that cannot be read, the profile only gets a note.

    Args:
        profile: of the full window.
        trace_path: trace of the light window.
        boundary_unix_ns: CPU times at which its steps begin and the last one ends.
    """
    try:
        timeline = read_timelines(trace_path)[0]
    except TraceError as error:
        return _without(profile, f"it cannot be read ({error})")
    boundary = np.array(boundary_unix_ns, dtype=np.int64) - profile.base_time_unix_ns
    if len(boundary) < 2 or not len(timeline.device):
        return _without(profile, "nothing ran on a GPU in it")
    strings = list(profile.strings)
    light = _Light(timeline, timeline.base_time_unix_ns - profile.base_time_unix_ns, boundary)
    if not len(light.call_rows) or not len(light.launch_rows):
        return _without(profile, "nothing ran on a GPU in it")
    window = _match(profile, light, strings)
    notes = list(profile.notes)
    unmatched = int((window.iteration < 0).sum())
    if unmatched:
        notes.append(
            Note("light_window", "Steps of the light window launch other kernels than the recorded ones.", unmatched)
        )
    return dataclasses.replace(profile, strings=strings, light_window=window, notes=notes)


def _without(profile: Profile, why: str) -> Profile:
    note = Note("light_window", f"There is no light window: {why}.")
    return dataclasses.replace(profile, notes=[*profile.notes, note])


class _Light:
    """The light window's calls and GPU activities, those of the window alone.

    Attributes:
        call_rows: rows of the timeline's host events, in order of start.
        launch_rows: rows of its device events, in order of start.
        call_step: per call its step.
        launch_call: per launch the position in ``call_rows``, -1 where the call came before the window.
    """

    def __init__(self, timeline: Timeline, shift_ns: int, boundary_ns: Ints) -> None:
        host, device = timeline.host, timeline.device
        self.timeline, self.boundary_ns = timeline, boundary_ns
        starts = host.start_ns + shift_ns
        inside = (host.kind == HostKind.RUNTIME) & (starts >= boundary_ns[0]) & (starts < boundary_ns[-1])
        rows = np.flatnonzero(inside)
        self.call_rows: Ints = rows[np.argsort(starts[rows], kind="stable")]
        self.call_start_ns: Ints = starts[self.call_rows]
        self.call_step: Ints = light_step(boundary_ns, self.call_start_ns)
        position = np.full(len(host) + 1, -1, dtype=np.int64)
        position[self.call_rows] = np.arange(len(self.call_rows))
        call = position[launch_calls(timeline)]
        device_start = device.start_ns + shift_ns
        # Work launched before the window still shows how long the GPU was busy with it.
        late = (call < 0) & (device_start + device.duration_ns > boundary_ns[0]) & (device_start < boundary_ns[-1])
        self.launch_rows: Ints = np.flatnonzero((call >= 0) | late)
        self.launch_call: Ints = call[self.launch_rows]
        self.launch_start_ns: Ints = device_start[self.launch_rows]
        self.launch_duration_ns: Ints = device.duration_ns[self.launch_rows]
        self._launches_of = dict(rows_of_each(take_or(self.call_step, self.launch_call, -1)))
        self._calls_of = dict(rows_of_each(self.call_step))

    def calls(self, step: int) -> Ints:
        """Rows of the calls of a step."""
        return self._calls_of.get(step, np.zeros(0, dtype=np.int64))

    def order(self, step: int) -> Ints:
        """Launches of a step in the order of their calls, those of one call by stream."""
        mine = self._launches_of.get(step, np.zeros(0, dtype=np.int64))
        stream = self.timeline.device.stream[self.launch_rows[mine]]
        return mine[np.lexsort((self.launch_start_ns[mine], stream, self.launch_call[mine]))]


class _Full:
    """The full window's launches and CUDA calls, by iteration."""

    def __init__(self, profile: Profile) -> None:
        launches, calls = profile.launches, profile.calls
        self.profile = profile
        self.is_runtime: Bools = profile.ops.kind[calls.op] == CallKind.RUNTIME
        start = calls.start_ns[np.maximum(launches.call, 0)]
        iterations = profile.iterations
        self.sequences: list[Ints] = []
        self.calls: list[Ints] = []
        rows, called = np.flatnonzero(launches.call >= 0), np.flatnonzero(self.is_runtime)
        rows = rows[np.lexsort((launches.start_ns[rows], launches.stream[rows], start[rows]))]
        called = called[np.argsort(calls.start_ns[called], kind="stable")]
        begun, started = start[rows], calls.start_ns[called]
        for window in zip(iterations.host_start_ns.tolist(), iterations.host_stop_ns.tolist(), strict=True):
            self.sequences.append(rows[slice(*np.searchsorted(begun, window).tolist())])
            self.calls.append(called[slice(*np.searchsorted(started, window).tolist())])


def _match(profile: Profile, light: _Light, strings: list[str]) -> LightWindow:
    full = _Full(profile)
    steps = len(light.boundary_ns) - 1
    names = _SharedNumbers()
    device, device_strings = light.timeline.device, light.timeline.strings
    full_ids = names.of(profile.strings, profile.kernels.name)[profile.launches.kernel]
    light_ids = names.of(device_strings, device.name)[light.launch_rows]
    launch = np.full(len(light.launch_rows), -1, dtype=np.int64)
    call = np.full(len(light.call_rows), -1, dtype=np.int64)
    iteration = np.full(steps, -1, dtype=np.int64)
    for step in range(steps):
        mine = light.order(step)
        best = _best_iteration(light_ids[mine], light.launch_duration_ns[mine], full, full_ids, set(iteration.tolist()))
        if best is None:
            continue
        iteration[step], ours, theirs = best
        launch[mine[ours]] = full.sequences[iteration[step]][theirs]
        _match_calls(light, full, step, int(iteration[step]), launch, call)
    host = light.timeline.host
    return LightWindow(
        boundary_ns=light.boundary_ns,
        iteration=iteration,
        calls=LightCalls(
            name=_appended(strings, light.timeline.strings, host.name[light.call_rows]),
            start_ns=light.call_start_ns,
            duration_ns=host.duration_ns[light.call_rows],
            thread=_threads(host.thread[light.call_rows], call, profile),
            call=call,
        ),
        launches=LightLaunches(
            call=light.launch_call,
            start_ns=light.launch_start_ns,
            duration_ns=light.launch_duration_ns,
            device=device.device[light.launch_rows],
            stream=device.stream[light.launch_rows],
            launch=launch,
        ),
    )


class _SharedNumbers:
    """Numbers names consistently across two files."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, strings: list[str], indices: Ints) -> Ints:
        """The numbers of the strings at these indices."""
        distinct, inverse = np.unique(indices, return_inverse=True)
        numbers = [self._known.setdefault(strings[index], len(self._known)) for index in distinct.tolist()]
        return np.array(numbers, dtype=np.int64)[inverse]


def _best_iteration(
    ids: Ints, duration_ns: Ints, full: _Full, full_ids: Ints, taken: set[int]
) -> tuple[int, Ints, Ints] | None:
    """An iteration with these launches, and the positions of those that both have; None where there is none.

    One that no other step was matched with comes first.
    """
    if not len(ids):
        return None
    by_distance = sorted(
        range(len(full.sequences)), key=lambda k: (abs(len(full.sequences[k]) - len(ids)), k in taken, k)
    )
    for k in by_distance:
        if np.array_equal(full_ids[full.sequences[k]], ids):
            every = np.arange(len(ids))
            return k, every, every
    best: tuple[float, int, Ints, Ints] | None = None
    for k in by_distance[:_MOST_TRIED]:
        ours, theirs = _aligned(ids, full_ids[full.sequences[k]])
        share = float(duration_ns[ours].sum()) / max(float(duration_ns.sum()), 1.0)
        if best is None or share > best[0]:
            best = share, k, ours, theirs
    if best is None or best[0] < _LEAST_MATCHED:
        return None
    return best[1:]


def _aligned(a: Ints, b: Ints) -> tuple[Ints, Ints]:
    """Positions of the common launches in both, in order."""
    shorter = min(len(a), len(b))
    differs = np.flatnonzero(a[:shorter] != b[:shorter])
    head = int(differs[0]) if len(differs) else shorter
    differs = np.flatnonzero(a[len(a) - shorter :][::-1] != b[len(b) - shorter :][::-1])
    tail = min(int(differs[0]) if len(differs) else shorter, shorter - head)
    ours, theirs = [np.arange(head)], [np.arange(head)]
    middle_a, middle_b = a[head : len(a) - tail].tolist(), b[head : len(b) - tail].tolist()
    if max(len(middle_a), len(middle_b)) <= _MOST_ALIGNED:
        for block in difflib.SequenceMatcher(None, middle_a, middle_b, autojunk=False).get_matching_blocks():
            ours.append(head + block.a + np.arange(block.size))
            theirs.append(head + block.b + np.arange(block.size))
    ours.append(len(a) - tail + np.arange(tail))
    theirs.append(len(b) - tail + np.arange(tail))
    return np.concatenate(ours), np.concatenate(theirs)


def _match_calls(light: _Light, full: _Full, step: int, iteration: int, launch: Ints, call: Ints) -> None:
    """Fill ``call`` of a step's calls: those that launched, by their launches; the others, such as those that wait, by
    name and order between two of them."""
    launches, calls = full.profile.launches, full.profile.calls
    pairs: dict[int, int] = {}
    for row in light.order(step).tolist():
        if launch[row] >= 0:
            theirs = int(launches.call[launch[row]])
            if full.is_runtime[theirs]:
                pairs.setdefault(int(light.launch_call[row]), theirs)
    if not pairs:
        return
    ours = np.array(sorted(pairs), dtype=np.int64)
    theirs_sorted = np.array([pairs[position] for position in ours.tolist()], dtype=np.int64)
    call[ours] = theirs_sorted
    our_marks, their_marks = light.call_start_ns[ours], np.sort(calls.start_ns[theirs_sorted])
    light_strings, host = light.timeline.strings, light.timeline.host
    mine = light.calls(step)
    between: dict[tuple[str, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    place = np.searchsorted(our_marks, light.call_start_ns[mine])
    for position, where in zip(mine.tolist(), place.tolist(), strict=True):
        if position not in pairs:
            between[light_strings[host.name[light.call_rows[position]]], where][0].append(position)
    paired = set(theirs_sorted.tolist())
    rows = full.calls[iteration]
    place = np.searchsorted(their_marks, calls.start_ns[rows])
    names, strings = full.profile.ops.name[calls.op[rows]], full.profile.strings
    for row, name, where in zip(rows.tolist(), names.tolist(), place.tolist(), strict=True):
        if row not in paired:
            between[strings[name], where][1].append(row)
    for one, other in between.values():
        if len(one) == len(other):
            call[one] = other


def _appended(strings: list[str], others: list[str], indices: Ints) -> Ints:
    """Indices into ``strings`` of the strings at ``indices`` of ``others``; those that are missing are appended."""
    known = {text: index for index, text in reversed(list(enumerate(strings)))}
    distinct, inverse = np.unique(indices, return_inverse=True)
    found = []
    for index in distinct.tolist():
        text = others[index]
        if text not in known:
            known[text] = len(strings)
            strings.append(text)
        found.append(known[text])
    return np.array(found, dtype=np.int64)[inverse]


def _threads(thread: Ints, call: Ints, profile: Profile) -> Ints:
    """The full window's numbers of the light window's threads, which come from the calls that both have; a thread
    without any gets a new number."""
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    matched = call >= 0
    for ours, theirs in zip(thread[matched].tolist(), profile.calls.thread[call[matched]].tolist(), strict=True):
        votes[ours][theirs] += 1
    following = int(profile.calls.thread.max(initial=-1)) + 1
    numbers: dict[int, int] = {}
    for one in np.unique(thread).tolist():
        if one in votes:
            numbers[one] = votes[one].most_common(1)[0][0]
        else:
            numbers[one], following = following, following + 1
    return np.array([numbers[one] for one in thread.tolist()], dtype=np.int64)
