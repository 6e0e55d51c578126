"""The tables of the Memory page: bytes of modules, op types and single allocations at the peak."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.memory import CATEGORIES, DeviceMemory, MemoryWindow, Peak
from tb_dlprof_plugin.model.direction import Direction, direction_of
from tb_dlprof_plugin.model.profile import Bools, Ints, Role
from tb_dlprof_plugin.pages.field_definition import Definition
from tb_dlprof_plugin.profile_view import op_name

MemoryCategoryKey = Literal["before", "activations", "gradients", "optimizer_state", "temporary", "other"]
MemoryGroupKind = Literal["group", "before", "outside"]

_BEFORE = CATEGORIES.index("before")


class MemoryGroup(msgspec.Struct, frozen=True):
    """Allocations with the same module, or type of op and direction: alive at the peak, and the most at any moment.

    ``kind`` is "before" for memory allocated before the recording, and "outside" for allocations outside ops.
    """

    kind: MemoryGroupKind
    name: str
    direction: Direction
    bytes: int
    percent: float | None
    allocations: int | None
    own_peak_bytes: int


class MemoryAllocation(msgspec.Struct, frozen=True):
    """One allocation alive at the peak. ``iteration`` is the step that made it, None outside all.

    ``lifetime_ns`` is None and ``freed`` empty where the recording does not free it; ``freed`` is the number of the
    step that does, or "outside" the steps.
    """

    id: int
    bytes: int
    percent: float | None
    op: str
    op_id: str | None
    module: str
    direction: Direction
    category: MemoryCategoryKey
    iteration: int | None
    freed: Annotated[str, Definition("memoryFreed", "The iteration that freed it.")]
    lifetime_ns: Annotated[
        int | None,
        Definition("memoryLifetime", "Time from the allocation to the free, on the CPU."),
    ]


class Allocators:
    """What made each event: ``module`` and ``op_type`` index the strings, -1 outside every op; ``role`` is a `Role`."""

    def __init__(self, memory: DeviceMemory) -> None:
        view, call = memory.view, memory.call
        calls, ops = view.profile.calls, view.profile.ops
        self.memory, self.view, self.strings = memory, view, view.profile.strings
        self.module = np.full(len(call), -1, dtype=np.int64)
        self.op_type = self.module.copy()
        self.role = np.full(len(call), int(Role.OTHER), dtype=np.int64)
        rows = np.flatnonzero(call >= 0)
        rows = rows[view.call_top[call[rows]] >= 0] if len(rows) else rows
        self.module[rows] = ops.module[calls.op[call[rows]]]
        self.op_type[rows] = ops.op_type[calls.op[view.call_top[call[rows]]]]
        self.role[rows] = ops.role[calls.op[call[rows]]]

    @property
    def modules_recorded(self) -> bool:
        """Whether any op has a module."""
        return bool((self.module > 0).any())

    def op(self, event: int) -> str:
        """The outermost op around an event with its module, "" outside every op."""
        if self.op_type[event] < 0:
            return ""
        return op_name(self.strings[self.module[event]], self.strings[self.op_type[event]])

    def op_id(self, event: int) -> str | None:
        """Its id on the Ops page."""
        group = int(self.view.call_group[self.memory.call[event]]) if self.op_type[event] >= 0 else -1
        return self.view.groups.ids[group] if group >= 0 else None

    def direction(self, event: int) -> Direction:
        """Forward or backward, "" for other parts of the step."""
        return direction_of(int(self.role[event]))

    def most_bytes(self, events: Ints) -> int:
        """The event of the op that made most bytes of ``events``, which must not be empty."""
        keys = np.stack((self.module[events], self.op_type[events], self.role[events]))
        _, first, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        return int(events[first[np.bincount(group.reshape(-1), weights=self.memory.bytes[events]).argmax()]])


def module_rows(made_by: Allocators, peak: Peak, window: MemoryWindow) -> list[MemoryGroup]:
    """One row per module, by falling bytes at the peak, to which they sum."""
    keys, group = _numbered(made_by.module + 1)
    names = ["" if key == 0 else made_by.strings[key - 1] for key in keys.tolist()]
    no_direction: list[Direction] = [""] * len(names)
    return _rows(made_by, peak, window, group, names, no_direction, keys == 0)


def op_type_rows(made_by: Allocators, peak: Peak, window: MemoryWindow) -> list[MemoryGroup]:
    """One row per type of op and direction, by falling bytes at the peak, to which they sum."""
    has_direction = np.array([bool(direction_of(role)) for role in Role])
    role = np.where(has_direction[made_by.role], made_by.role, int(Role.OTHER))
    keys, group = _numbered((made_by.op_type + 1) * len(Role) + role)
    op_types, roles = keys // len(Role), keys % len(Role)
    names = ["" if key == 0 else made_by.strings[key - 1] for key in op_types.tolist()]
    directions: list[Direction] = [direction_of(role) for role in roles.tolist()]
    return _rows(made_by, peak, window, group, names, directions, op_types == 0)


def allocation_rows(made_by: Allocators, peak: Peak, events: Ints) -> list[MemoryAllocation]:
    """One row per allocation of ``events``."""
    memory = made_by.memory
    result = []
    for event in events.tolist():
        free = int(memory.partner[event])
        result.append(
            MemoryAllocation(
                id=event,
                bytes=int(memory.bytes[event]),
                percent=percent(int(memory.bytes[event]), peak.allocated),
                op=made_by.op(event),
                op_id=made_by.op_id(event),
                module="" if made_by.module[event] < 0 else made_by.strings[made_by.module[event]],
                direction=made_by.direction(event),
                category=CATEGORIES[memory.category[event]],
                iteration=_iteration(memory, event),
                freed=_freed(memory, free),
                lifetime_ns=None if free < 0 else int(memory.time_ns[free] - memory.time_ns[event]),
            )
        )
    return result


def _rows(
    made_by: Allocators,
    peak: Peak,
    window: MemoryWindow,
    group: Ints,
    names: list[str],
    directions: list[Direction],
    outside: Bools,
) -> list[MemoryGroup]:
    """The groups with memory in the window, and the memory allocated before the recording."""
    memory = made_by.memory
    found = memory.group_peaks(group, len(names), peak.state, window)
    rows = [
        MemoryGroup(
            kind="outside" if outside[index] else "group",
            name=names[index],
            direction=directions[index],
            bytes=int(found.bytes[index]),
            percent=percent(int(found.bytes[index]), peak.allocated),
            allocations=int(found.allocations[index]),
            own_peak_bytes=int(found.own_peak[index]),
        )
        for index in np.flatnonzero(found.own_peak).tolist()
    ]
    before, highest = peak.category_bytes[_BEFORE], memory.own_category_peaks(window)[_BEFORE]
    if before is not None and highest is not None:
        rows.append(MemoryGroup("before", "", "", before, percent(before, peak.allocated), None, highest))
    return sorted(rows, key=lambda row: (-row.bytes, -row.own_peak_bytes))


def _numbered(keys: Ints) -> tuple[Ints, Ints]:
    """The distinct keys, rising, and the index of each row's key; for keys from 0 that index a table."""
    present = np.bincount(keys) > 0
    return np.flatnonzero(present), (np.cumsum(present) - 1)[keys]


def _iteration(memory: DeviceMemory, event: int) -> int | None:
    index = int(memory.iteration[event])
    return None if index < 0 else int(memory.view.profile.iterations.number[index])


def _freed(memory: DeviceMemory, free: int) -> str:
    if free < 0:
        return ""
    number = _iteration(memory, free)
    return "outside" if number is None else str(number)
