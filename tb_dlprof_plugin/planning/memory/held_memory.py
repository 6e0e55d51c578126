"""What is held between two steps of a recorded training, storage by storage.

The hook lists the storages. In files without them parameters are taken to be as large as the gradients of a step,
states to be as many times that as the optimizer's bytes say, and the rest to be workspaces of cuBLAS and other memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tb_dlprof_plugin.planning.memory.allocator import OWN_SEGMENT, SEGMENT_ROUND, SMALL, rounded
from tb_dlprof_plugin.planning.memory.allocator_settings import MIB
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
            result.states.extend(Held(one.bytes, HeldKind.OPTIMIZER_STATE, one.module) for one in result.before)
    capability = view.compute_capability
    workspace = CUBLAS_HOPPER if capability is not None and capability[0] == 9 else CUBLAS
    while _rest(result, total) >= workspace and len(result.workspaces) < _THREADS:
        result.workspaces.append(workspace)
    return result


def _rest(result: HeldMemory, total: int) -> int:
    listed = sum(rounded(one.bytes) for one in (*result.before, *result.states))
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
