"""Reads the state of the machine during a recording: load, other processes on its GPU, clocks, temperature."""

from __future__ import annotations

import os

from tb_dlprof_plugin.capture.facts.free_memory import most_used_device
from tb_dlprof_plugin.capture.facts.nvml import NvmlDevice
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import RunFacts


def fill_surroundings(facts: RunFacts) -> None:
    """Fill the current values, right after the profiler has ended. Each fact is read separately."""
    facts.load_average = probe(lambda: os.getloadavg()[0])
    facts.machine_cpus = probe(os.cpu_count)
    device = probe(most_used_device)
    if device is not None:
        facts.other_gpu_memory_bytes = probe(lambda: _other_memory(device))
        probe(lambda: _fill_gpu(facts, device))


def _other_memory(device: int) -> int:
    import torch

    free, total = torch.cuda.mem_get_info(device)
    return max(int(total) - int(free) - int(torch.cuda.memory_reserved(device)), 0)


def _fill_gpu(facts: RunFacts, device: int) -> None:
    import torch

    # torch numbers the visible GPUs, the driver all of them: the UUID is the same in both.
    gpu = NvmlDevice(f"GPU-{torch.cuda.get_device_properties(device).uuid}")
    facts.clock_limits = gpu.clock_limits
    facts.sm_clock_mhz, facts.max_sm_clock_mhz = gpu.sm_clock_mhz, gpu.max_sm_clock_mhz
    facts.gpu_temperature_c = gpu.temperature_c
    processes = gpu.processes
    facts.other_gpu_processes = None if processes is None else processes - 1
