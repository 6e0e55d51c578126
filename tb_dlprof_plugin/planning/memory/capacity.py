"""How much of a GPU's memory PyTorch's allocator can have: the total less what lies outside of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tb_dlprof_plugin.model.formatting import byte_size
from tb_dlprof_plugin.names.gpu_memory import gpu_memory
from tb_dlprof_plugin.planning.memory.allocator import MIB
from tb_dlprof_plugin.profile_view import ProfileView

_CONTEXT = (400 * MIB, 1200 * MIB)
"""Outside of the allocator where the run does not say: a CUDA context with its kernels, and libraries."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Bytes that the allocator can have of a GPU, at the least and at the most; ``source`` says from what."""

    gpu: str
    least: int
    most: int
    source: str


def capacity(view: ProfileView, gpu: str | None = None, total: int | None = None) -> Capacity | None:
    """What the allocator can have; None where the run does not say which GPU it used, or how large that is.

    Args:
        view: the recorded run.
        gpu: another GPU, in words of its name.
        total: bytes of a GPU that is not named.

    Raises:
        UnknownGpu: the GPU's memory is not known.
    """
    facts, own = view.profile.facts, view.gpu
    size = own.memory_bytes if own is not None else None
    outside = _CONTEXT
    if size and facts.available_memory_bytes:
        measured = max(size - facts.available_memory_bytes, 0)
        outside = (measured, measured)
    if total is not None:
        return Capacity(f"GPU with {byte_size(total)}", total - outside[1], total - outside[0], "given")
    if gpu is None:
        if facts.available_memory_bytes:
            free = facts.available_memory_bytes
            return Capacity(own.name if own else "", free, free, "measured in the run")
        if own is None or not size:
            return None
        return Capacity(own.name, size - outside[1], size - outside[0], "the GPU's total less a usual CUDA context")
    known = gpu_memory(gpu)
    if own is not None and (own.name or "").removeprefix("NVIDIA ") == known.name and (here := capacity(view)):
        # The run says more of its own GPU than a data sheet does.
        return replace(here, gpu=known.name)
    # Another type of GPU loads other kernels.
    spread = max(_CONTEXT[1], outside[1])
    return Capacity(known.name, known.least - spread, known.most - min(_CONTEXT[0], outside[0]), "data sheet")
