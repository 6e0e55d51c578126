"""Reads the peaks of GPU memory of the recorded steps alone, and of the whole process."""

from __future__ import annotations

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
