"""Says of each recorded allocation what holds it: more finely than the categories of `metrics.memory`, from which it
follows.

What the forward pass keeps is an activation, or the copy of one in another precision (a cast). What the backward pass
keeps is a parameter's gradient where it is still there when the optimizer's next step begins, else a gradient of an
activation. What an op frees before it ends is a workspace where no tensor of the op explains its size, else a temporary
tensor. What a collective allocates is a communication buffer, whenever it is freed.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tb_dlprof_plugin.metrics.memory import CATEGORIES, DeviceMemory
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Ints, Role
from tb_dlprof_plugin.planning.memory.allocator import SMALL, rounded
from tb_dlprof_plugin.planning.memory.op_shapes import ITEM_SIZES, OpShapes, elements
from tb_dlprof_plugin.profile_view import ProfileView

Holder = Literal[
    "before", "parameters", "buffers", "optimizer_state", "gradients", "activations", "casts", "activation_gradients",
    "temporary", "workspaces", "communication", "other",
]  # fmt: skip
HOLDERS: tuple[Holder, ...] = (
    "before", "parameters", "buffers", "optimizer_state", "gradients", "activations", "casts", "activation_gradients",
    "temporary", "workspaces", "communication", "other",
)  # fmt: skip
"""What holds memory: the columns of `memory_bill`. "before" was there when the recording began and has no name."""

CASTS = ("aten::to", "aten::_to_copy")
"""Ops that copy a tensor in another data type."""
_COMMUNICATION = ("c10d::", "_c10d_functional::", "nccl:", "record_param_comms", "FSDP::")
"""How the names of ops and ranges begin that gather or reduce over ranks."""
_MOST_CALLERS = 6
_INDEX = {name: at for at, name in enumerate(HOLDERS)}


def holders_of(memory: DeviceMemory) -> Ints:
    """Index into `HOLDERS` of each event's allocation; "before" for a free of older memory, and for all where partners
    are unknown."""
    if not memory.partners_known:
        return np.full(len(memory), _INDEX["before"], dtype=np.int64)
    of_category = np.array([_INDEX.get(name, _INDEX["other"]) for name in CATEGORIES], dtype=np.int64)
    found = of_category[memory.category]

    def change(from_: Holder, where: Bools, to: Holder) -> None:
        found[(found == _INDEX[from_]) & memory.is_allocation & where] = _INDEX[to]

    change("gradients", ~_reaches_optimizer(memory), "activation_gradients")
    change("activations", _within(memory, _named(memory.view, CASTS)), "casts")
    change("temporary", _unexplained(memory, found == _INDEX["temporary"]), "workspaces")
    collective = _within(memory, _named(memory.view, _COMMUNICATION, beginning=True))
    found[memory.is_allocation & collective] = _INDEX["communication"]
    return take_or(found, memory.owner, _INDEX["before"])


def _reaches_optimizer(memory: DeviceMemory) -> Bools:
    """Allocations that are there when the optimizer's next step begins; where the recording has no optimizer, when
    their own iteration ends."""
    profile = memory.view.profile
    freed = memory.partner
    freed_ns = np.where(freed >= 0, take_or(memory.time_ns, freed, 0), np.iinfo(np.int64).max)
    starts = np.sort(profile.calls.start_ns[profile.ops.role[profile.calls.op] == Role.OPTIMIZER])
    if len(starts):
        after = np.searchsorted(starts, memory.time_ns)
        return freed_ns > take_or(starts, np.where(after < len(starts), after, -1), np.iinfo(np.int64).max - 1)
    stops = profile.iterations.host_stop_ns
    return freed_ns >= take_or(stops, memory.iteration, np.iinfo(np.int64).max)


def _named(view: ProfileView, names: tuple[str, ...], beginning: bool = False) -> Bools:
    """Which rows of `Ops` have one of the names, or a name that begins so."""
    strings = view.profile.strings
    fits = np.array([text.startswith(names) if beginning else text in names for text in strings], dtype=np.bool_)
    return fits[view.profile.ops.name] if len(fits) else np.zeros(len(view.profile.ops), dtype=np.bool_)


def _within(memory: DeviceMemory, ops: Bools) -> Bools:
    """Events whose call, or one of the nearest around it, is of some ops."""
    view = memory.view
    found, call = np.zeros(len(memory), dtype=np.bool_), memory.call
    if not ops.any():
        return found
    of_call = ops[view.profile.calls.op]
    for _ in range(_MOST_CALLERS):
        found |= take_or(of_call, call, False)
        call = take_or(view.call_parent, call, -1)
    return found


def _unexplained(memory: DeviceMemory, which: Bools) -> Bools:
    """Of some allocations, those whose size is that of no tensor that the op or one around it was given, or makes as a
    matrix product; none where shapes were not recorded."""
    view, found = memory.view, np.zeros(len(memory), dtype=np.bool_)
    rows = np.flatnonzero(which & memory.is_allocation & (memory.call >= 0))
    if not len(rows):
        return found
    shapes = OpShapes(view)
    op = view.profile.calls.op[memory.call[rows]]
    _, first, group = np.unique(np.stack((op, memory.bytes[rows])), axis=1, return_index=True, return_inverse=True)
    known = [_explains(shapes, int(memory.call[row]), int(memory.bytes[row])) for row in rows[first].tolist()]
    found[rows] = ~np.array(known, dtype=np.bool_)[group.reshape(-1)]
    return found


def _explains(shapes: OpShapes, call: int, size: int) -> bool:
    around = shapes.around(call)
    if not around:
        return True
    sizes = [elements(shape) * item for shape in around for item in ITEM_SIZES] + shapes.products(call)
    return any(0 <= size - rounded(one) <= (SMALL if size > SMALL else 0) for one in sizes)
