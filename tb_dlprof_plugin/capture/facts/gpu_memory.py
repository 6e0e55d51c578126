"""Reads the GPU memory of a training: the peaks of the recorded steps, what is held and free between two steps, and
what the allocator does."""

from __future__ import annotations

import os

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import RunFacts


class PeakMemory:
    """The peaks of one recording, and the highest that the process reached before it.

    torch keeps one peak per device, which nothing but a reset lowers: the beginning of a recording resets it
    (`torch.cuda.reset_peak_memory_stats`), so that from then on a training that reads the peak itself gets that since
    the recording began. A reset takes microseconds and does not wait for the GPU.
    """

    def __init__(self) -> None:
        self._before: int | None = None

    def begin(self) -> None:
        """The recorded part begins; later calls within the same recording do nothing. Never raises."""
        if self._before is None:
            probe(self._reset)

    def forget(self) -> None:
        """A new recording may begin."""
        self._before = None

    def fill(self, facts: RunFacts) -> None:
        """Fill the highest peaks of all GPUs.

        Where the beginning was not seen they are those since the process began, and that of the process stays None.
        """
        import torch

        used = used_devices()
        if not used:
            return
        facts.peak_memory_allocated_bytes = max(torch.cuda.max_memory_allocated(i) for i in used)
        facts.peak_memory_reserved_bytes = max(torch.cuda.max_memory_reserved(i) for i in used)
        if self._before is not None:
            facts.process_peak_memory_bytes = max(self._before, facts.peak_memory_allocated_bytes)

    def _reset(self) -> None:
        import torch

        used = used_devices()
        if used:
            self._before = max(torch.cuda.max_memory_allocated(i) for i in used)
            for device in used:
                torch.cuda.reset_peak_memory_stats(device)


def used_devices() -> list[int]:
    """GPUs on which this process allocated; initialises neither CUDA nor a context."""
    import torch

    if not torch.cuda.is_initialized():
        return []
    return [i for i in range(torch.cuda.device_count()) if torch.cuda.max_memory_allocated(i)]


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


def fill_allocator(facts: RunFacts) -> None:
    """Fill the allocator's settings and how often it had to free its cache; leaves them None without CUDA."""
    import torch

    if not torch.cuda.is_initialized():
        return
    devices = range(torch.cuda.device_count())
    facts.allocator_retries = probe(
        lambda: sum(torch.cuda.memory_stats(i).get("num_alloc_retries", 0) for i in devices)
    )
    facts.allocator_settings = probe(allocator_settings)


def allocator_settings() -> str:
    """As set in the process, else in its environment; torch before 2.9 exposes only the latter."""
    import torch

    getter = getattr(torch._C, "_accelerator_getAllocatorSettings", None)
    known = probe(getter) if getter is not None else None
    return str(known or os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or "")
