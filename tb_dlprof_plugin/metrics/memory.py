"""Memory of one device: what was allocated at each moment, by category and by the call that allocated it.

The allocator's events come in order of time. *State* k is the memory after the first k of them, so state 0 is what was
there before the recording; n events have n + 1 states. Categories are decided once per allocation, from the part of
the step that made it and from how long it lived; a free takes off what its allocation put on. At each state the
categories sum to the device's own total, to the byte, where the profiler recorded that total.

Times are those at which the CPU asked the allocator. The allocator hands out memory then, and not when the GPU executes
the work: the windows are therefore the CPU's own (`Iterations.host_start_ns`).

torch 1.8 and 1.9 recorded neither addresses nor totals. Without addresses frees cannot be matched with allocations:
what is alive, and so every category, is unknown. Without both only the changes are known: allocated is their running
sum, counted from its lowest moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from tb_dlprof_plugin.metrics.amp_calls import op_or_region
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import PARTNER_UNKNOWN, Bools, Ints, Profile, Role
from tb_dlprof_plugin.model.tree import outermost
from tb_dlprof_plugin.profile_view import ProfileView, Selection

CPU = -1
"""The device number of the CPU in `Profile.memory`."""

Category = Literal["before", "activations", "gradients", "optimizer_state", "temporary", "other"]

CATEGORIES: tuple[Category, ...] = ("before", "activations", "gradients", "optimizer_state", "temporary", "other")
"""Where allocated memory belongs; the columns of `DeviceMemory.category_bytes`."""

_BEFORE, _TEMPORARY, _OTHER = (CATEGORIES.index(name) for name in ("before", "temporary", "other"))
_OF_ROLE = {
    Role.FORWARD: CATEGORIES.index("activations"),
    Role.BACKWARD: CATEGORIES.index("gradients"),
    Role.OPTIMIZER: CATEGORIES.index("optimizer_state"),
}


@dataclass(frozen=True, slots=True)
class MemoryWindow:
    """States ``first`` to ``last``, both inclusive, of ``start_ns`` to ``stop_ns``; ``first`` was carried in."""

    first: int
    last: int
    start_ns: int
    stop_ns: int


@dataclass(frozen=True, slots=True)
class Peak:
    """The moment with most memory allocated, the first of several.

    ``category_bytes`` sum to ``allocated``; None for a category that is not known. ``call`` is the row in `Calls`
    around the event that led to it, -1 for none or where the memory was there already when the window began.
    """

    state: int
    time_ns: int
    allocated: int
    reserved: int | None
    category_bytes: list[int | None]
    call: int


@dataclass(frozen=True, slots=True)
class GroupPeaks:
    """Per group: bytes and number of its allocations alive at a state, and the most that it held in a window."""

    bytes: Ints
    allocations: Ints
    own_peak: Ints


def recorded_devices(profile: Profile) -> list[int]:
    """Devices with memory events: GPUs by number, then the CPU."""
    devices = np.unique(profile.memory.device).tolist()
    return [device for device in devices if device != CPU] + ([CPU] if CPU in devices else [])


class DeviceMemory:
    """The events of one device and what follows from them. Columns have one row per event, in order of time.

    Attributes:
        time_ns: when it was asked for.
        bytes: positive for an allocation, negative for a free.
        partners_known: whether frees can be matched with allocations; if not, what is alive is unknown.
        partner: row of an allocation's free and of a free's allocation, -1 where it is not in the recording or unknown.
        call: row in `Calls` of the innermost call around the event, -1 for none.
        owner: row of the event's allocation (its own for an allocation), -1 for a free of older memory.
        delta: the bytes that recorded allocations grow (or shrink) by; 0 for a free of older memory. Where partners are
            unknown, the event's own: older memory is unknown.
    """

    def __init__(self, view: ProfileView, device: int) -> None:
        memory = view.profile.memory
        rows = np.flatnonzero(memory.device == device)
        self.view, self.device = view, device
        self.time_ns, self.bytes, self.call = memory.time_ns[rows], memory.bytes[rows], memory.call[rows]
        own_row = np.full(len(memory) + 1, -1, dtype=np.int64)
        own_row[rows] = np.arange(len(rows))
        partner = memory.partner[rows]
        # torch writes the address of every event or of none; single ones are missing where the file is damaged.
        self.partners_known = not len(rows) or bool((partner != PARTNER_UNKNOWN).any())
        # The last entry is used for no partner.
        self.partner = own_row[np.maximum(partner, -1)]
        self.is_allocation = self.bytes > 0
        self.owner = np.where(self.is_allocation, np.arange(len(rows)), self.partner)
        self.delta = np.where(self.is_allocation, self.bytes, -self.bytes[self.owner])
        self.delta[self.owner < 0] = 0
        if not self.partners_known:
            self.delta = self.bytes
        self._allocated, self._reserved = memory.allocated[rows], memory.reserved[rows]

    def __len__(self) -> int:
        return len(self.time_ns)

    @cached_property
    def has_totals(self) -> bool:
        """Whether the device's own totals were recorded."""
        return bool((self._allocated >= 0).all())

    @cached_property
    def before_known(self) -> bool:
        """Whether memory from before the recording is known.

        torch counts the memory of the CPU only while it records, so a total that begins at 0 has no meaning there.
        """
        return self.has_totals and (self.device != CPU or bool(self.allocated[0]))

    @property
    def relative(self) -> bool:
        """Whether ``allocated`` counts from the lowest moment of the recording, at which it is unknown."""
        return not self.has_totals and not self.partners_known

    @cached_property
    def known_before(self) -> int:
        """Least bytes that were there before the recording where that is ``relative``: as many more were freed."""
        return int(self.allocated[0]) if self.relative else 0

    @cached_property
    def allocated(self) -> Ints:
        """Bytes allocated per state: the device's own total, else what recorded allocations hold, else `relative`."""
        if not self.has_totals:
            held = _with_start(0, np.cumsum(self.delta))
            return held - held.min() if self.relative else held
        return _with_start(int(self._allocated[0] - self.bytes[0]), self._allocated)

    @cached_property
    def reserved(self) -> Ints | None:
        """Bytes that the allocator has taken from the device per state; None where not recorded.

        The CPU's allocator reserves nothing, for which torch writes 0. State 0 is taken to be that after the first
        event.
        """
        if self._reserved.min(initial=0) < 0 or not self._reserved.any():
            return None
        return _with_start(int(self._reserved[0]), self._reserved)

    @cached_property
    def contradictions(self) -> int:
        """Events by whose bytes the device's total did not change: others were lost, or are in another order."""
        return int((np.diff(self.allocated) != self.bytes).sum()) if self.has_totals else 0

    @cached_property
    def category(self) -> Ints:
        """Index into `CATEGORIES` of the event's allocation; "before" for a free of older memory.

        All are "before" where partners are unknown: how long an allocation lived is part of what decides.
        """
        if not self.partners_known:
            return np.full(len(self), _BEFORE, dtype=np.int64)
        profile = self.view.profile
        scope = _scopes(self.view)
        of_role = np.array([_OF_ROLE.get(role, _OTHER) for role in Role], dtype=np.int64)
        of_event = of_role[_at(profile.ops.role, _at(profile.calls.op, self.call), Role.OTHER)]
        own, end = _at(scope, self.call), _at(scope, _at(self.call, self.partner))
        of_event[(own >= 0) & (own == end)] = _TEMPORARY
        return _at(of_event, self.owner, _BEFORE)

    @cached_property
    def category_bytes(self) -> Ints:
        """Bytes by category, shape (6, n + 1); "before" is what the device's total holds beyond recorded allocations.

        Where the total was not recorded "before" is 0, and so the sum is what recorded allocations hold. Where partners
        are unknown all is in "before", and `known_categories` says so.
        """
        result = np.zeros((len(CATEGORIES), len(self) + 1), dtype=np.int64)
        for index in range(len(CATEGORIES)):
            if index != _BEFORE:
                np.cumsum(np.where(self.category == index, self.delta, 0), out=result[index, 1:])
        result[_BEFORE] = self.allocated - result.sum(axis=0)
        return result

    @cached_property
    def iteration(self) -> Ints:
        """Index of the iteration of the event, -1 outside all."""
        return self.view.iteration_at(self.time_ns)

    def window(self, first: int, last: int) -> MemoryWindow:
        """The states of iterations ``first`` to ``last``, both inclusive."""
        iterations = self.view.profile.iterations
        start, stop = int(iterations.host_start_ns[first]), int(iterations.host_stop_ns[last])
        low, high = np.searchsorted(self.time_ns, (start, stop), side="left").tolist()
        return MemoryWindow(low, high, start, stop)

    def peak(self, window: MemoryWindow) -> Peak:
        """The first moment of the window with most memory allocated."""
        state = window.first + int(self.allocated[window.first : window.last + 1].argmax())
        carried_in = state == window.first
        return Peak(
            state=state,
            time_ns=window.start_ns if carried_in else int(self.time_ns[state - 1]),
            allocated=int(self.allocated[state]),
            reserved=None if self.reserved is None else int(self.reserved[state]),
            category_bytes=self.known_categories(self.category_bytes[:, state]),
            call=-1 if carried_in else int(self.call[state - 1]),
        )

    def peak_reserved(self, window: MemoryWindow) -> int | None:
        """Most bytes reserved in the window; None where not recorded."""
        return None if self.reserved is None else int(self.reserved[window.first : window.last + 1].max())

    def own_category_peaks(self, window: MemoryWindow) -> list[int | None]:
        """The most that each category held in the window, each at a moment of its own."""
        return self.known_categories(self.category_bytes[:, window.first : window.last + 1].max(axis=1))

    def known_categories(self, values: Ints) -> list[int | None]:
        """One value per category; None for what was there before where not known, for all where partners are not."""
        if not self.partners_known:
            return [None] * len(CATEGORIES)
        return [None if i == _BEFORE and not self.before_known else int(v) for i, v in enumerate(values.tolist())]

    def alive(self, state: int) -> Bools:
        """Which events are allocations alive in a state.

        Raises:
            ValueError: partners are unknown.
        """
        self.need_partners()
        done = np.arange(len(self)) < state
        return self.is_allocation & done & ((self.partner < 0) | (self.partner >= state))

    def group_peaks(self, group: Ints, count: int, state: int, window: MemoryWindow) -> GroupPeaks:
        """What groups of allocations held.

        Args:
            group: per event the group of its allocation; read at allocations only.
            count: number of groups.
            state: at which ``bytes`` and ``allocations`` are taken.
            window: in which ``own_peak`` is taken.

        Raises:
            ValueError: partners are unknown.
        """
        alive = self.alive(state)
        sums = np.zeros(count, dtype=np.int64)
        np.add.at(sums, group[alive], self.bytes[alive])
        owned = np.flatnonzero(self.owner >= 0)
        of_event = group[self.owner[owned]]
        # numpy sorts 16 bits by radix, ten times as fast.
        order = np.argsort(of_event.astype(np.uint16) if count < 1 << 16 else of_event, kind="stable")
        rows, of_event = owned[order], of_event[order]
        running = np.cumsum(self.delta[rows])
        starts = np.flatnonzero(np.diff(of_event, prepend=-1))
        running -= np.repeat(running[starts] - self.delta[rows[starts]], np.diff(np.append(starts, len(rows))))
        peaks = np.zeros(count, dtype=np.int64)
        carried_in = rows < window.first
        # Of several values for one group the last one stays: the state that the window began with.
        peaks[of_event[carried_in]] = running[carried_in]
        inside = ~carried_in & (rows < window.last)
        np.maximum.at(peaks, of_event[inside], running[inside])
        return GroupPeaks(sums, np.bincount(group[alive], minlength=count).astype(np.int64), peaks)

    def curve_states(self, window: MemoryWindow, points: int) -> Ints:
        """At most ``points`` states that draw the window: all, or the highest and the lowest of each stretch of time.

        Every state is a real moment; the window's ends, its peak and that of the reserved memory are among them.
        """
        states = np.arange(window.first, window.last + 1)
        if len(states) <= points:
            return states
        stretches = (points - 4) // 2
        inner = states[1:]
        stretch = (self.time_ns[inner - 1] - window.start_ns) * stretches // (window.stop_ns - window.start_ns)
        kept = [states[:1], states[-1:], np.array([self.peak(window).state])]
        if self.reserved is not None:
            kept.append(states[self.reserved[states].argmax()][None])
        kept += [_first_highest(value, stretch) + inner[0] for value in (self.allocated[inner], -self.allocated[inner])]
        return np.unique(np.concatenate(kept))

    def need_partners(self) -> None:
        """Raises ValueError where partners are unknown."""
        if not self.partners_known:
            raise ValueError("addresses were not recorded: which allocation a free ends is unknown")


def peak_allocated(view: ProfileView, selection: Selection) -> tuple[int | None, Literal["iterations", "process", ""]]:
    """Most bytes allocated on the first recorded GPU, and of what: of the selected iterations where its memory was
    recorded, else of the whole process until the recording ended."""
    if (memory := _of_first_gpu(view)) is not None:
        return memory.peak(memory.window(selection.first, selection.last)).allocated, "iterations"
    read = view.profile.facts.peak_memory_allocated_bytes
    return read, "process" if read is not None else ""


def peak_reserved(view: ProfileView, selection: Selection) -> int | None:
    """Most bytes that the allocator reserved there, of the same."""
    if (memory := _of_first_gpu(view)) is not None and memory.reserved is not None:
        return memory.peak_reserved(memory.window(selection.first, selection.last))
    return view.profile.facts.peak_memory_reserved_bytes


def _of_first_gpu(view: ProfileView) -> DeviceMemory | None:
    gpu = next((device for device in recorded_devices(view.profile) if device != CPU), None)
    memory = None if gpu is None else DeviceMemory(view, gpu)
    return memory if memory is not None and memory.has_totals else None


def growth(memory: DeviceMemory, selection: Selection) -> list[int]:
    """Per selected iteration, the allocated bytes at its end less those at its start."""
    windows = [memory.window(i, i) for i in range(selection.first, selection.last + 1)]
    return [int(memory.allocated[w.last] - memory.allocated[w.first]) for w in windows]


def growth_per_iteration(by_iteration: Sequence[int]) -> int | None:
    """Bytes by which the end of an iteration usually lies above that of the one before: the median, from `growth`.

    The first iteration begins where none has ended and does not count. 0 where the last one ends with no more than the
    first did; None for a single iteration.
    """
    later = by_iteration[1:]
    if not later:
        return None
    usual = round(float(np.median(later)))
    return usual if sum(later) > 0 else min(usual, 0)


def kept_allocations(memory: DeviceMemory, selection: Selection) -> Bools:
    """Allocations of the selected iterations but the last that the recording does not free.

    What the last one leaves may be freed by the next, which was not selected.

    Raises:
        ValueError: partners are unknown.
    """
    memory.need_partners()
    inside = (memory.iteration >= selection.first) & (memory.iteration < selection.last)
    return memory.is_allocation & (memory.partner < 0) & inside


def _scopes(view: ProfileView) -> Ints:
    """Per call, the row of what its workspace ends with: the outermost op around it, -1 for none.

    In the optimizer it is the whole step: what one multi-tensor op leaves to the next is workspace of the step.
    """
    calls = view.profile.calls
    in_optimizer = view.profile.ops.role[calls.op] == Role.OPTIMIZER
    return np.where(in_optimizer, outermost(in_optimizer, view.call_parent), op_or_region(view))


def _with_start(start: int, values: Ints) -> Ints:
    return np.concatenate((np.array([start], dtype=np.int64), values))


def _at(column: Ints, rows: Ints, missing: int = -1) -> Ints:
    """``column[rows]``, ``missing`` for rows of -1."""
    if not len(column):
        return np.full(len(rows), missing, dtype=np.int64)
    return take_or(column, rows, missing)


def _first_highest(values: Ints, stretch: Ints) -> Ints:
    """Index of the first highest value of each stretch; ``stretch`` rises."""
    starts = np.flatnonzero(np.diff(stretch, prepend=-1))
    lengths = np.diff(np.append(starts, len(values)))
    at_top = np.flatnonzero(values == np.repeat(np.maximum.reduceat(values, starts), lengths))
    return at_top[np.unique(stretch[at_top], return_index=True)[1]]
