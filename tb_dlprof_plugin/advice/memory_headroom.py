"""The GPU memory available to a training, from the facts that the hook recorded."""

from __future__ import annotations

from tb_dlprof_plugin.advice.rule_context import RuleContext

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def capacity_bytes(context: RuleContext) -> int | None:
    """GPU memory available to the process, else all memory of the smallest GPU it used; None where unknown."""
    if context.facts.available_memory_bytes:
        return context.facts.available_memory_bytes
    used = set(context.profile.iterations.gpu_ids)
    sizes = [gpu.memory_bytes for gpu in context.profile.system.gpus if gpu.id in used and gpu.memory_bytes]
    return min(sizes, default=None)


def gigabytes(size: int) -> str:
    """ "12.3 GiB", or in a smaller unit below 1."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"
