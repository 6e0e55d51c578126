"""Builds the StepProgram of a recorded training: one step's events with the steps around them, and what was there
before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.metrics.memory import CATEGORIES, CPU, DeviceMemory, recorded_devices
from tb_dlprof_plugin.model.plan_request import PlanError
from tb_dlprof_plugin.model.profile import Ints, Role
from tb_dlprof_plugin.planning.memory.allocator import ROUND, SMALL, rounded, settings_of
from tb_dlprof_plugin.planning.memory.batch_classes import BatchClasses
from tb_dlprof_plugin.planning.memory.holders import HOLDERS, held_between_steps, holders_of, unnamed
from tb_dlprof_plugin.planning.memory.op_calls import CONVOLUTIONS, ITEM_SIZES, PRODUCTS, OpCallShapes, elements
from tb_dlprof_plugin.planning.memory.replay import replay
from tb_dlprof_plugin.planning.memory.step_program import Slot, SlotKind, StepProgram, inside
from tb_dlprof_plugin.profile_view import ProfileView, per_view


class RequestedSizes:
    """Requested bytes by allocation."""

    def __init__(self, view: ProfileView) -> None:
        self._profile, self._shapes = view.profile, OpCallShapes(view)
        self._all = self._shapes.all_sizes()

    def of(self, memory: DeviceMemory, rows: Ints, gradients: Collection[int]) -> list[int]:
        """Bytes that allocations asked for, those of the block where no tensor explains them.

        Args:
            memory: of the device.
            rows: of the allocations, in it.
            gradients: those of the rows that are a parameter's gradient.
        """
        allocations = zip(rows.tolist(), memory.bytes[rows].tolist(), memory.call[rows].tolist(), strict=True)
        return [self._one(block, call, row in gradients) for row, block, call in allocations]

    def _one(self, block: int, call: int, gradient: bool) -> int:
        """A small block is split to 512 bytes, so that only a large one can be more than a tensor took."""
        if block <= SMALL:
            return block
        for sizes in (self._of_parameters(call) if gradient else (), self._shapes.products(call)):
            near = [size for size in sizes if _explains(size, block)]
            if near:
                return max(near)
        sizes = [elements(shape) * item for shape in self._shapes.around(call) for item in ITEM_SIZES]
        near = [size for size in sizes if _explains(size, block)]
        if near:
            return max(near)
        # A tensor that only a later op is given, such as a gradient, is known from there.
        index = bisect_right(self._all, block)
        return self._all[index - 1] if index and _explains(self._all[index - 1], block) else block

    def _of_parameters(self, call: int) -> list[int]:
        """Bytes of the parameters of a call's module and those in it."""
        if call < 0:
            return []
        module = self._profile.call_module(call)
        return [
            size
            for row in self._profile.facts.storages
            if row.kind == "parameter" and inside(row.module, module)
            for size in row.bytes
        ]


def _explains(size: int, block: int) -> bool:
    """Whether a request of ``size`` can have got a block."""
    return size > SMALL - ROUND and 0 <= block - rounded(size) <= SMALL


_OF_CATEGORY = {
    "activations": SlotKind.ACTIVATION,
    "gradients": SlotKind.BACKWARD,
    "optimizer_state": SlotKind.OPTIMIZER,
    "temporary": SlotKind.TEMPORARY,
}


@per_view
def recorded_program(view: ProfileView) -> StepProgram:
    """The memory of a recorded training, on the GPU with most of it.

    Raises:
        PlanError: it was not recorded, or not enough of it.
    """
    memory = planned_memory(view)
    first, last = _step_rows(memory)
    slots_of, events, event_at = _events(memory, first, last)
    rows = np.fromiter(slots_of, dtype=np.int64)
    role = _roles(memory, first, last)
    carried = _carried(events)
    holders = [HOLDERS[one] for one in holders_of(memory)[rows].tolist()]
    kinds = [_kind(memory, row, holder == "gradients") for row, holder in zip(rows.tolist(), holders, strict=True)]
    made = {row for row, kind in zip(rows.tolist(), kinds, strict=True) if kind == SlotKind.GRADIENT}
    sizes = RequestedSizes(view).of(memory, rows, made)
    calls = memory.call[rows].tolist()
    modules = [view.profile.call_module(call) for call in calls]
    gradients = [one[1:] for one in zip(kinds, modules, sizes, strict=True) if one[0] == SlotKind.GRADIENT]
    slots = _slots(view, kinds, calls, modules, sizes, BatchClasses(view, gradients))
    backward = np.flatnonzero(role == Role.BACKWARD)
    backward_row = int(backward[0]) if len(backward) else last - first
    after = np.flatnonzero((role == Role.OPTIMIZER) & (np.arange(len(role)) > (backward[-1] if len(backward) else -1)))
    optimizer_row = int(after[0]) if len(backward) and len(after) else last - first
    freed = np.flatnonzero(~memory.is_allocation[first:last]) + first
    outside = freed[(memory.owner[freed] < first)]
    before = int(memory.allocated[first] + memory.bytes[outside].sum())
    carried_sizes = [slots[slot].bytes for slot in sorted(carried)]
    held = held_between_steps(view, before, [slot for slot in slots if slot.kind == SlotKind.GRADIENT], carried_sizes)
    places = [event_at[row] for row in _workspaces_at(view, memory.call[first:last].tolist(), backward_row)]
    program = StepProgram(
        slots=slots,
        events=events,
        held=held.before,
        states=held.states,
        workspaces=dict(zip(places, held.workspaces, strict=False)),
        optimizer_at=event_at[optimizer_row],
        backward_at=event_at[min(backward_row, optimizer_row)],
    )
    # Blocks may be larger than what is listed, so the rest is what a replay does not have.
    missing = int(memory.allocated[first]) - replay(program, settings_of(view.profile.facts.allocator_settings)).steady
    return replace(program, held=[*program.held, *unnamed(missing)])


def _workspaces_at(view: ProfileView, calls: Sequence[int], backward_at: int) -> list[int]:
    """Rows of the step before which cuBLAS makes its workspaces: behind the result of the first matrix product of
    the forward and of the backward pass, the beginning of a pass without one."""
    indices = []
    for start, end in ((0, backward_at), (backward_at, len(calls))):
        products = (index + 1 for index in range(start, end) if view.profile.call_name(calls[index]) in PRODUCTS)
        indices.append(next(products, start))
    return indices


def _slots(
    view: ProfileView,
    kinds: Sequence[SlotKind],
    calls: Sequence[int],
    modules: Sequence[str],
    sizes: Sequence[int],
    classes: BatchClasses,
) -> list[Slot]:
    shapes, slots = OpCallShapes(view), []
    for kind, call, module, size in zip(kinds, calls, modules, sizes, strict=True):
        grows = classes.of(kind, call, module, size)
        slots.append(
            Slot(
                size if grows.reduction is None else grows.reduction.bytes(), kind, call, module, grows.share,
                grows.known, grows.reduction, reads=frozenset(map(elements, shapes.around(call))),
                behind_node=_is_behind_node(view, call),
                refusable=kind == SlotKind.TEMPORARY and view.profile.call_name(call) in CONVOLUTIONS,
            )
        )  # fmt: skip
    return slots


def _is_behind_node(view: ProfileView, call: int) -> bool:
    """Whether the op around an allocation runs in autograd's engine and in no node's function."""
    name, around = view.profile.call_name, int(view.call_parent[call]) if call >= 0 else -1
    return name(call) == "aten::sum" and name(around).startswith("autograd::engine::evaluate_function")


def planned_memory(view: ProfileView) -> DeviceMemory:
    """The recorded memory of the GPU with the highest peak.

    Raises:
        PlanError: there is none from which a step can be replayed.
    """
    gpus = [device for device in recorded_devices(view.profile) if device != CPU]
    if not gpus:
        if not view.profile.has_gpu:
            raise PlanError("the run used no GPU.")
        raise PlanError(
            "the allocator's events were not recorded: record with profile_memory=True, or `tb-dlprof run --memory`."
        )
    if not len(view.profile.iterations):
        raise PlanError("no iteration was found.")
    largest = max((DeviceMemory(view, gpu) for gpu in gpus), key=lambda memory: int(memory.allocated.max()))
    if not largest.partners_known or not largest.has_totals:
        raise PlanError("the recording has no addresses or no totals of memory, as of torch before 1.10.")
    return largest


def _step_rows(memory: DeviceMemory) -> tuple[int, int]:
    """Rows of the step to replay: of those with a step on both sides the one with the highest peak, the last of equals.

    A step reaches to the beginning of the next, so that what is freed between both is in it.
    """
    count = len(memory.view.profile.iterations)
    starts = [memory.window(i, i).first for i in range(count)] + [memory.window(count - 1, count - 1).last]
    inner = range(1, count - 1) if count > 2 else range(count - 1, count)
    best = max(inner, key=lambda i: (int(memory.allocated[starts[i] : starts[i + 1] + 1].max()), i))
    if starts[best] == starts[best + 1]:
        raise PlanError("no allocation was recorded in a step.")
    return starts[best], starts[best + 1]


def _events(memory: DeviceMemory, first: int, last: int) -> tuple[dict[int, int], list[int], list[int]]:
    """Slot by row of its allocation, the events, and how many of them precede each row of the step and its end.

    A free of the step before is matched with the allocation at the same place of this step, else with one of the same
    size that this step leaves; without either it is no event."""
    slots: dict[int, int] = {}
    for row in (np.flatnonzero(memory.is_allocation[first:last]) + first).tolist():
        slots[row] = len(slots)
    length = last - first
    freed = {int(memory.owner[row]) for row in range(first, last) if not memory.is_allocation[row]}
    left = [row for row in slots if row not in freed]
    by_size: dict[int, list[int]] = defaultdict(list)
    for row in left:
        by_size[int(memory.bytes[row])].append(row)
    taken: set[int] = set()
    events: list[int] = []
    event_at: list[int] = []
    for row in range(first, last):
        event_at.append(len(events))
        if memory.is_allocation[row]:
            events.append(slots[row] + 1)
            continue
        owner = int(memory.owner[row])
        if owner in slots:
            events.append(-slots[owner] - 1)
            continue
        same = owner + length
        if owner < 0 or same not in slots or same in freed or same in taken:
            waiting = [one for one in by_size[int(-memory.bytes[row])] if one not in taken]
            if not waiting:
                continue
            same = waiting[0]
        taken.add(same)
        events.append(-slots[same] - 1)
    event_at.append(len(events))
    return slots, events, event_at


def _carried(events: list[int]) -> set[int]:
    """Slots that the next step frees, or nothing."""
    allocated: set[int] = set()
    here: set[int] = set()
    for event in events:
        if event > 0:
            allocated.add(event - 1)
        elif -event - 1 in allocated:
            here.add(-event - 1)
    return allocated - here


def _roles(memory: DeviceMemory, first: int, last: int) -> Ints:
    profile = memory.view.profile
    call = memory.call[first:last]
    roles = np.full(last - first, int(Role.OTHER), dtype=np.int64)
    known = call >= 0
    roles[known] = profile.ops.role[profile.calls.op[call[known]]]
    return roles


def _kind(memory: DeviceMemory, row: int, gradient: bool) -> SlotKind:
    category = CATEGORIES[int(memory.category[row])]
    if gradient:
        return SlotKind.GRADIENT
    return _OF_CATEGORY.get(category, SlotKind.INPUT)
