"""What holds memory: storages between two steps, and each recorded allocation.

The hook lists the storages that are held between two steps. In files without them parameters are taken to be as large
as the gradients of a step, states to be as many times that as the optimizer's bytes say, and the rest to be workspaces
of cuBLAS and other memory.

The holder of an allocation follows from its category in `metrics.memory`, and is finer. What the forward pass keeps is
an activation, or the copy of one in another precision (a cast). What the backward pass keeps is a parameter's gradient
where it is still there when the optimizer's next step begins, else a gradient of an activation. What an op frees before
it ends is a workspace where no tensor of the op explains its size, else a temporary tensor. What a collective allocates
is a communication buffer, whenever it is freed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tb_dlprof_plugin.metrics.memory import CATEGORIES, DeviceMemory
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Ints, Role
from tb_dlprof_plugin.names.ops import PROCESS_GROUP_OPS
from tb_dlprof_plugin.planning.memory.allocator import MIB, OWN_SEGMENT, SEGMENT_ROUND, SMALL, rounded
from tb_dlprof_plugin.planning.memory.op_calls import ITEM_SIZES, OpCallShapes, elements
from tb_dlprof_plugin.planning.memory.step_program import Held, HeldKind, Slot
from tb_dlprof_plugin.profile_view import ProfileView

CUBLAS_HOPPER, CUBLAS = 32 * MIB, 8 * MIB + 128 * 1024
"""A handle's default workspace (`:4096:2:16:8`; 32 MiB on compute capability 9.0), `CublasHandlePool.cpp`."""
_THREADS = 2
"""The thread of the forward pass and that of the backward pass have a handle each."""
_KINDS = {
    "parameter": HeldKind.PARAMETER,
    "buffer": HeldKind.BUFFER,
    "gradient": HeldKind.GRADIENT,
    "optimizer_state": HeldKind.OPTIMIZER_STATE,
    "other": HeldKind.OTHER,
}


@dataclass(frozen=True)
class HeldMemory:
    """``before`` is there before the first step, ``states`` from the first step of the optimizer on, ``workspaces``
    (bytes) from the first product of each thread on."""

    before: list[Held] = field(default_factory=list)
    states: list[Held] = field(default_factory=list)
    workspaces: list[int] = field(default_factory=list)


def held_between_steps(view: ProfileView, total: int, gradients: Sequence[Slot], carried: Sequence[int]) -> HeldMemory:
    """What is held.

    Args:
        view: of the recording.
        total: bytes that are allocated before the step and that it does not free; what is not explained has no place
            here, see `unnamed`.
        gradients: the allocations of the step that are parameters' gradients.
        carried: bytes of all allocations that one step leaves to the next, which are not part of ``total``.
    """
    storages = view.profile.facts.storages
    return _listed(view, carried) if storages else _derived(view, total, gradients)


def _listed(view: ProfileView, carried: Sequence[int]) -> HeldMemory:
    left = Counter(rounded(size) for size in carried)
    result = HeldMemory()
    for row in view.profile.facts.storages:
        kind = _KINDS.get(row.kind, HeldKind.OTHER)
        for size in row.bytes:
            if kind in (HeldKind.GRADIENT, HeldKind.OTHER) and left[rounded(size)]:
                left[rounded(size)] -= 1
            elif kind == HeldKind.OTHER and size in (CUBLAS, CUBLAS_HOPPER) and len(result.workspaces) < _THREADS:
                result.workspaces.append(size)
            elif kind == HeldKind.OPTIMIZER_STATE:
                result.states.append(Held(size, kind, row.module))
            else:
                result.before.append(Held(size, kind, row.module))
    return result


def _derived(view: ProfileView, total: int, gradients: Sequence[Slot]) -> HeldMemory:
    facts = view.profile.facts
    sizes = [(slot.bytes, slot.module) for slot in gradients]
    known = sum(size for size, _ in sizes)
    item = 2 if facts.parameter_dtypes and set(facts.parameter_dtypes) <= {"float16", "bfloat16"} else 4
    count = (facts.parameter_count or 0) * item
    if not sizes or (count and not 0.5 * count <= known <= 1.5 * count):
        # Gradients are not made in each step, or not by all: the sizes of single parameters are not known.
        sizes = [(count, "")] if count else []
        known = count
    # Backwards, because the backward pass makes gradients from the last module to the first.
    result = HeldMemory(before=[Held(size, HeldKind.PARAMETER, module) for size, module in reversed(sizes)])
    state = facts.optimizer_state_bytes or 0
    if known and state:
        for _ in range(round(state / known)):
            result.states.extend(
                Held(storage.bytes, HeldKind.OPTIMIZER_STATE, storage.module) for storage in result.before
            )
    capability = view.compute_capability
    workspace = CUBLAS_HOPPER if capability is not None and capability[0] == 9 else CUBLAS
    while _rest(result, total) >= workspace and len(result.workspaces) < _THREADS:
        result.workspaces.append(workspace)
    return result


def _rest(result: HeldMemory, total: int) -> int:
    listed = sum(rounded(storage.bytes) for storage in (*result.before, *result.states))
    return total - listed - sum(map(rounded, result.workspaces))


def unnamed(rest: int) -> list[Held]:
    """Memory of ``rest`` bytes that is there and has no name, in pieces that fill segments: of one piece a block would
    keep up to 1 MiB more."""
    if rest <= 0:
        return []
    whole = rest // SEGMENT_ROUND * SEGMENT_ROUND if rest >= OWN_SEGMENT else 0
    pieces = range(whole, rest, SMALL)
    return [
        Held(size, HeldKind.OTHER) for size in ([whole] if whole else []) + [min(SMALL, rest - at) for at in pieces]
    ]


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
_COMMUNICATION = (*PROCESS_GROUP_OPS, "nccl:", "record_param_comms", "FSDP::")
"""How the names of ops and ranges begin that gather or reduce over ranks."""
_MOST_CALLERS = 6
_INDEX = {name: at for at, name in enumerate(HOLDERS)}


def holders_of(memory: DeviceMemory) -> Ints:
    """Index into `HOLDERS` of each event's allocation; "before" for a free of older memory, and for all where partners
    are unknown."""
    if not memory.partners_known:
        return np.full(len(memory), _INDEX["before"], dtype=np.int64)
    of_category = np.array([_INDEX.get(name, _INDEX["other"]) for name in CATEGORIES], dtype=np.int64)
    holder = of_category[memory.category]

    def change(from_: Holder, where: Bools, to: Holder) -> None:
        holder[(holder == _INDEX[from_]) & memory.is_allocation & where] = _INDEX[to]

    change("gradients", ~_reaches_optimizer(memory), "activation_gradients")
    change("activations", _within(memory, _named(memory.view, CASTS)), "casts")
    change("temporary", _unexplained(memory, holder == _INDEX["temporary"]), "workspaces")
    collective = _within(memory, _named(memory.view, _COMMUNICATION, beginning=True))
    holder[memory.is_allocation & collective] = _INDEX["communication"]
    return take_or(holder, memory.owner, _INDEX["before"])


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
    return view.profile.ops_named(lambda name: name.startswith(names) if beginning else name in names)


def _within(memory: DeviceMemory, ops: Bools) -> Bools:
    """Events whose call, or one of the nearest around it, is of some ops."""
    view = memory.view
    inside, call = np.zeros(len(memory), dtype=np.bool_), memory.call
    if not ops.any():
        return inside
    of_call = ops[view.profile.calls.op]
    for _ in range(_MOST_CALLERS):
        inside |= take_or(of_call, call, False)
        call = take_or(view.call_parent, call, -1)
    return inside


def _unexplained(memory: DeviceMemory, which: Bools) -> Bools:
    """Of some allocations, those whose size is that of no tensor that the op or one around it was given, or makes as a
    matrix product; none where shapes were not recorded."""
    view, unexplained = memory.view, np.zeros(len(memory), dtype=np.bool_)
    rows = np.flatnonzero(which & memory.is_allocation & (memory.call >= 0))
    if not len(rows):
        return unexplained
    shapes = OpCallShapes(view)
    op = view.profile.calls.op[memory.call[rows]]
    _, first, group = np.unique(np.stack((op, memory.bytes[rows])), axis=1, return_index=True, return_inverse=True)
    known = [_explains(shapes, int(memory.call[row]), int(memory.bytes[row])) for row in rows[first].tolist()]
    unexplained[rows] = ~np.array(known, dtype=np.bool_)[group.reshape(-1)]
    return unexplained


def _explains(shapes: OpCallShapes, call: int, size: int) -> bool:
    around = shapes.around(call)
    if not around:
        return True
    sizes = [elements(shape) * item for shape in around for item in ITEM_SIZES] + shapes.products(call)
    return any(0 <= size - rounded(one) <= (SMALL if size > SMALL else 0) for one in sizes)
