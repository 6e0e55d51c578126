"""Facts about the machine and its software, and about its state during a recording: load, other processes on its GPU,
clocks, temperature. `complete_system` needs no training process."""

from __future__ import annotations

import os
import platform
import re
import socket
from pathlib import Path

import msgspec

from tb_dlprof_plugin.capture.facts import nvml
from tb_dlprof_plugin.capture.facts.gpu_memory import most_used_device
from tb_dlprof_plugin.capture.facts.nvml import NvmlDevice
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import Gpu, RunFacts, System


def system_of_training() -> System:
    """GPUs and library versions, as torch in this process sees them.

    CUDA is queried only if the training has initialised it: doing so costs time and GPU memory.
    """
    import torch

    system = System(torch_version=str(torch.__version__), cuda_version=probe(lambda: torch.version.cuda))
    if probe(torch.cuda.is_initialized):
        system.gpus = [gpu for i in range(probe(torch.cuda.device_count) or 0) if (gpu := _gpu(i)) is not None]
        system.cudnn_version = probe(_cudnn_version)
        system.nccl_version = probe(_nccl_version)
    return system


def complete_system(system: System) -> System:
    """A copy with what any process of the same machine and the same Python can find out. Imports no torch."""
    return msgspec.structs.replace(
        system,
        cpu_model=system.cpu_model or probe(_cpu_model),
        cpu_count=system.cpu_count or probe(_cpu_count),
        os=system.os or probe(platform.platform),
        driver_version=system.driver_version or probe(_driver_version) or probe(nvml.driver_version),
        python_version=system.python_version or platform.python_version(),
        hostname=system.hostname or probe(socket.gethostname),
    )


def _gpu(index: int) -> Gpu | None:
    import torch

    properties = probe(lambda: torch.cuda.get_device_properties(index))
    if properties is None:
        return None
    return Gpu(
        id=index,
        name=str(properties.name),
        compute_major=probe(lambda: int(properties.major)),
        compute_minor=probe(lambda: int(properties.minor)),
        sm_count=probe(lambda: int(properties.multi_processor_count)),
        memory_bytes=probe(lambda: int(properties.total_memory)),
    )


def _cudnn_version() -> str | None:
    import torch

    number = torch.backends.cudnn.version()
    if not number:
        return None
    # cuDNN 9 writes 9.10.2 as 91002, cuDNN 8 wrote 8.9.7 as 8907.
    thousands = 10000 if number >= 90000 else 1000
    return f"{number // thousands}.{number % thousands // 100}.{number % 100}"


def _nccl_version() -> str | None:
    import torch

    return ".".join(str(part) for part in torch.cuda.nccl.version())


def multiplies_bf16() -> bool:
    """Whether the CPU has instructions for products of BF16; False where that cannot be read."""
    text = probe(_cpu_info) or ""
    return bool(re.search(r"^(?:flags|Features)\s*:.*\b(?:avx512_bf16|amx_bf16|bf16)\b", text, re.MULTILINE))


def _cpu_info() -> str:
    return Path("/proc/cpuinfo").read_text(errors="replace")


def _cpu_model() -> str | None:
    try:
        text = _cpu_info()
    except OSError:
        return platform.processor() or None
    found = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else platform.processor() or platform.machine() or None


def _cpu_count() -> int | None:
    """The CPUs that this process may use, which in a container are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def usable_cores() -> float | None:
    """Cores that this process may use: by affinity, and where a cgroup limits its CPU time fewer."""
    count: float | None = _cpu_count()
    for limit in (probe(_quota_2), probe(_quota_1)):
        if limit is not None and count is not None and 0 < limit < count:
            count = limit
    return count


def _quota_2() -> float | None:
    """Of cgroup v2: the least of this process' group and those above it that can be seen."""
    own = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    root = Path("/sys/fs/cgroup")
    group, found = root / own.strip("/"), []
    for folder in (group, *group.parents):
        file = folder / "cpu.max"
        if file.is_file():
            most, period = file.read_text().split()
            if most != "max":
                found.append(int(most) / int(period))
        if folder == root:
            break
    return min(found, default=None)


def _quota_1() -> float | None:
    folder = Path("/sys/fs/cgroup/cpu")
    most, period = (int((folder / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
    return most / period if most > 0 else None


def _driver_version() -> str | None:
    text = Path("/proc/driver/nvidia/version").read_text(errors="replace")
    found = re.search(r"Kernel Module\D*?\s(\d+\.\d+(?:\.\d+)?)", text)
    return found.group(1) if found else None


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
