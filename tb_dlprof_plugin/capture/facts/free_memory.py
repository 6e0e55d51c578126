"""Reads how much of a GPU's memory a training leaves free."""

from __future__ import annotations

from tb_dlprof_plugin.model.run_facts import RunFacts


def fill_free_memory(facts: RunFacts) -> None:
    """Fill what tensors hold now, between two steps, and what the process could hold, of the GPU with the highest peak.

    Queries the driver once, after the profiler has synchronised with the GPU; does not initialise CUDA.
    """
    import torch

    device = most_used_device()
    if device is not None:
        free, _ = torch.cuda.mem_get_info(device)
        facts.available_memory_bytes = int(free) + int(torch.cuda.memory_reserved(device))
        facts.steady_memory_bytes = int(torch.cuda.memory_allocated(device))


def most_used_device() -> int | None:
    """The GPU with the highest peak; None if no tensor was on one. Does not initialise CUDA."""
    import torch

    if not torch.cuda.is_initialized():
        return None
    # A GPU that was not used is not queried: that would create a context on it.
    device = max(range(torch.cuda.device_count()), key=torch.cuda.max_memory_allocated, default=None)
    return device if device is not None and torch.cuda.max_memory_allocated(device) else None
