"""The tables of the Memory page: bytes of modules, op types and single allocations at the peak."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.memory import CATEGORIES, DeviceMemory, MemoryWindow, Peak
from tb_dlprof_plugin.model.direction import Direction, direction_of
from tb_dlprof_plugin.model.formatting import byte_size, duration, share, uncapitalized
from tb_dlprof_plugin.model.profile import Bools, Ints, Role
from tb_dlprof_plugin.pages.columns import Column
from tb_dlprof_plugin.pages.sentences import TextPart, plain
from tb_dlprof_plugin.planning.memory.holders import HOLDERS, Holder
from tb_dlprof_plugin.planning.memory.memory_bill import MemoryBill
from tb_dlprof_plugin.profile_view import op_name

MemoryCategoryKey = Holder
MemoryGroupKind = Literal["group", "before", "outside", "held"]

_BEFORE = CATEGORIES.index("before")


class MemoryGroup(msgspec.Struct, frozen=True):
    """Allocations with the same module, or type of op and direction: alive at the peak, and the most at any moment.

    Of a module, with its parameters, states and buffers. ``kind`` is "before" for memory from before the recording that
    has no name, "outside" for allocations outside ops, and "held" for what has a name and was made by no recorded op.
    """

    kind: MemoryGroupKind
    name: Annotated[str, Column("Module", "memoryModule", width=190)]
    direction: Annotated[Direction, Column("Pass", "pass", missing="–", terminal=False)]
    bytes: Annotated[int, Column("At the peak", "memoryAtPeak")]
    percent: Annotated[float | None, Column("%", "memoryPercent", missing="–")]
    allocations: Annotated[int | None, Column("Alive", "Allocations alive at the peak.", missing="–")]
    own_peak_bytes: Annotated[int, Column("Own peak", "memoryOwnPeak")]


class MemoryPart(msgspec.Struct, frozen=True):
    """What one category holds of one module at the peak; ``module`` is "" outside of all."""

    module: str
    category: MemoryCategoryKey
    bytes: int


class MemoryAllocation(msgspec.Struct, frozen=True):
    """One allocation alive at the peak. ``iteration`` is the step that made it, None outside all and for what was there
    when the recording began.

    ``lifetime_ns`` is None and ``freed`` empty where the recording does not free it; ``freed`` is the number of the
    step that does, or "outside" the steps.
    """

    id: int
    op: Annotated[str, Column("Allocated by", "The outermost op that allocated it.", width=280)]
    bytes: Annotated[int, Column("Size", "Allocated bytes: on a GPU rounded up to 512.")]
    percent: Annotated[float | None, Column("%", "memoryPercent", missing="–", terminal=False)]
    direction: Annotated[Direction, Column("Pass", "pass", missing="–")]
    category: Annotated[MemoryCategoryKey, Column("Category", "memoryCategory", width=150)]
    iteration: Annotated[int | None, Column("Iteration", "The iteration that allocated it.", missing="outside")]
    freed: Annotated[str, Column("Freed in", "The iteration that freed it.", missing="not in the recording", width=150)]
    lifetime_ns: Annotated[
        int | None, Column("Lived", "Time from the allocation to the free, on the CPU.", missing="–")
    ]
    module: Annotated[str, Column("Module", "memoryModule", missing="–", width=190, terminal=False)]
    op_id: str | None


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


def module_rows(made_by: Allocators, bill: MemoryBill, peak: Peak, window: MemoryWindow) -> list[MemoryGroup]:
    """One row per module, by falling bytes at the peak, to which they sum."""
    keys, group = _numbered(made_by.module + 1)
    names = ["" if key == 0 else made_by.strings[key - 1] for key in keys.tolist()]
    no_direction: list[Direction] = [""] * len(names)
    held: dict[str, list[int]] = {}
    for held_block in bill.held:
        held.setdefault(held_block.module, []).append(held_block.bytes)
    rows = _rows(made_by, peak, window, group, names, no_direction, keys == 0)
    found = [_with_held(row, held.pop(row.name, []), peak) if row.kind == "group" else row for row in rows]
    found += [
        MemoryGroup("group", name, "", sum(sizes), percent(sum(sizes), peak.allocated), len(sizes), sum(sizes))
        for name, sizes in held.items()
    ]
    return _ordered([*found, *_before(bill, peak, window, found)])


def op_type_rows(made_by: Allocators, bill: MemoryBill, peak: Peak, window: MemoryWindow) -> list[MemoryGroup]:
    """One row per type of op and direction, by falling bytes at the peak, to which they sum."""
    has_direction = np.array([bool(direction_of(role)) for role in Role])
    role = np.where(has_direction[made_by.role], made_by.role, int(Role.OTHER))
    keys, group = _numbered((made_by.op_type + 1) * len(Role) + role)
    op_types, roles = keys // len(Role), keys % len(Role)
    names = ["" if key == 0 else made_by.strings[key - 1] for key in op_types.tolist()]
    directions: list[Direction] = [direction_of(role) for role in roles.tolist()]
    rows = _rows(made_by, peak, window, group, names, directions, op_types == 0)
    held = sum(block.bytes for block in bill.held)
    if held:
        rows.append(MemoryGroup("held", "", "", held, percent(held, peak.allocated), len(bill.held), held))
    return _ordered([*rows, *_before(bill, peak, window, rows)])


def memory_parts(made_by: Allocators, bill: MemoryBill, peak: Peak, most: int) -> list[MemoryPart]:
    """What each category holds of each module at the peak, by falling bytes: sums to the peak. Of more than ``most``
    the smallest count to no module."""
    memory = made_by.memory
    alive = np.flatnonzero(memory.alive(peak.state))
    key = (made_by.module[alive] + 1) * len(HOLDERS) + bill.holder[alive]
    keys, group = np.unique(key, return_inverse=True)
    sizes = sums(group.reshape(-1), memory.bytes[alive], len(keys))
    found: dict[tuple[str, Holder], int] = {}

    def add(module: str, category: Holder, size: int) -> None:
        found[module, category] = found.get((module, category), 0) + size

    for at, size in zip(keys.tolist(), sizes.tolist(), strict=True):
        module = at // len(HOLDERS)
        add(made_by.strings[module - 1] if module else "", HOLDERS[at % len(HOLDERS)], size)
    for block in bill.held:
        add(block.module, block.holder, block.bytes)
    # What was made before the recording and is freed in it belongs to no module.
    for category, size in zip(HOLDERS, bill.at(peak.state), strict=True):
        rest = (size or 0) - sum(of for (_, name), of in found.items() if name == category)
        if rest > 0:
            add("", category, rest)
    ordered = sorted(found.items(), key=lambda item: -item[1])
    found = dict(ordered[:most])
    for (_, category), size in ordered[most:]:
        add("", category, size)
    parts = (MemoryPart(module, category, size) for (module, category), size in found.items() if size)
    return sorted(parts, key=lambda part: -part.bytes)


def held_rows(bill: MemoryBill, peak: Peak) -> list[MemoryAllocation]:
    """One row per storage that is there all the time; their ids are below 0."""
    return [
        MemoryAllocation(
            id=-index - 1, bytes=block.bytes, percent=percent(block.bytes, peak.allocated), op="", op_id=None,
            module=block.module, direction="", category=block.holder, iteration=None, freed="", lifetime_ns=None,
        )
        for index, block in enumerate(bill.held)
    ]  # fmt: skip


def allocation_rows(made_by: Allocators, bill: MemoryBill, peak: Peak, events: Ints) -> list[MemoryAllocation]:
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
                category=HOLDERS[bill.holder[event]],
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
    """The groups with memory in the window."""
    memory = made_by.memory
    peaks = memory.group_peaks(group, len(names), peak.state, window)
    return [
        MemoryGroup(
            kind="outside" if outside[index] else "group",
            name=names[index],
            direction=directions[index],
            bytes=int(peaks.bytes[index]),
            percent=percent(int(peaks.bytes[index]), peak.allocated),
            allocations=int(peaks.allocations[index]),
            own_peak_bytes=int(peaks.own_peak[index]),
        )
        for index in np.flatnonzero(peaks.own_peak).tolist()
    ]


def _before(bill: MemoryBill, peak: Peak, window: MemoryWindow, rows: list[MemoryGroup]) -> list[MemoryGroup]:
    """What the rows leave of the peak, and what of the memory from before the recording has no name."""
    highest = bill.memory.own_category_peaks(window)[_BEFORE]
    if highest is None or peak.category_bytes[_BEFORE] is None:
        return []
    before = peak.allocated - sum(row.bytes for row in rows)
    highest -= sum(block.bytes for block in bill.held)
    return [MemoryGroup("before", "", "", before, percent(before, peak.allocated), None, highest)]


def _with_held(row: MemoryGroup, held: list[int], peak: Peak) -> MemoryGroup:
    """A module's row with its parameters, states and buffers."""
    if not held:
        return row
    size = row.bytes + sum(held)
    return msgspec.structs.replace(
        row,
        bytes=size,
        percent=percent(size, peak.allocated),
        allocations=(row.allocations or 0) + len(held),
        own_peak_bytes=row.own_peak_bytes + sum(held),
    )


def _ordered(rows: list[MemoryGroup]) -> list[MemoryGroup]:
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


_NAMED = 3
"""Most categories in the sentence; each holds at least `_LEAST_PERCENT`."""
_LEAST_PERCENT = 1.0


class MemoryMoment(msgspec.Struct, frozen=True):
    """When most was allocated, and the op that led to it ("" for none).

    ``time_ns`` counts from where the first selected iteration began, ``step_time_ns`` from where its own did.
    """

    time_ns: int
    step_time_ns: int
    iteration_number: int
    op: str
    op_id: str | None
    direction: Direction
    allocated_bytes: int


class MemoryCategory(msgspec.Struct, frozen=True):
    """One category: bytes at the peak (they sum to it) and the most it held at any moment; None where unknown."""

    key: MemoryCategoryKey
    label: Annotated[str, Column("Category", "memoryCategory", width=150)]
    definition: str
    bytes: Annotated[int | None, Column("At the peak", "memoryAtPeak")]
    percent: Annotated[float | None, Column("%", "memoryPercent", missing="–")]
    own_peak_bytes: Annotated[int | None, Column("Own peak", "memoryOwnPeak")]


def peak_sentence(peak: MemoryMoment, categories: list[MemoryCategory], modules: list[MemoryGroup]) -> list[TextPart]:
    """Such as "Peak 3.21 GiB at 42.0 ms of step 3, in conv1/conv2d (forward): 62 % activations. Of the modules layer3
    holds most, 34 %."
    """
    size = byte_size(peak.allocated_bytes)
    if peak.op:
        at = f"Peak {size} at {duration(peak.step_time_ns)} of step {peak.iteration_number}, in "
        op = plain(peak.op) if peak.op_id is None else TextPart(peak.op, "op", peak.op_id)
        parts = [plain(at), op, plain(f" ({peak.direction})" if peak.direction else "")]
    else:
        when = f"at {duration(peak.step_time_ns)}" if peak.step_time_ns > 0 else "at the beginning"
        parts = [plain(f"Peak {size} {when} of step {peak.iteration_number}")]
    held = sorted(
        (category for category in categories if (category.percent or 0) >= _LEAST_PERCENT),
        key=lambda category: -(category.bytes or 0),
    )
    named = ", ".join(f"{share(category.percent)} {uncapitalized(category.label)}" for category in held[:_NAMED])
    parts.append(plain(f": {named}." if named else "."))
    module = next((row for row in modules if row.kind == "group" and row.name and row.bytes), None)
    if module is not None:
        name = TextPart(module.name, "module", module.name)
        parts += [plain(" Of the modules "), name, plain(f" holds most, {share(module.percent, 1)}.")]
    return [part for part in parts if part.text]
