"""What slows a process down or disturbs it, how ranks exchange gradients, and how the profiler was set."""

from __future__ import annotations

import ctypes
import os
import sys
import types

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin.capture import profile  # noqa: E402
from tb_dlprof_plugin.capture.facts import machine, nvml  # noqa: E402
from tb_dlprof_plugin.capture.facts.collect import collect_facts  # noqa: E402
from tb_dlprof_plugin.capture.facts.switches import slow_switches  # noqa: E402
from tb_dlprof_plugin.model.run_facts import DdpFacts  # noqa: E402
from tb_dlprof_plugin.store.logdir import read_profiles  # noqa: E402


def test_only_switches_that_are_on_are_named(monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    monkeypatch.setenv("TORCH_NCCL_BLOCKING_WAIT", "0")
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "INFO")
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    monkeypatch.setenv("PYTHONTRACEMALLOC", "25")
    found = [switch for switch in slow_switches() if not switch.startswith("sys.")]
    assert found == ["CUDA_LAUNCH_BLOCKING=1", "NVIDIA_TF32_OVERRIDE=0", "PYTHONTRACEMALLOC=25"]


def test_a_tracer_of_the_thread_is_named():
    def tracer(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        found = slow_switches()
    finally:
        sys.settrace(before)
    assert f"sys.settrace({__name__})" in found


def test_options_of_the_profiler_are_kept(tmp_path, kit):
    model = kit.Net()
    with profile(tmp_path, model, schedule=(0, 1, 1, 1), wait=True, profile_memory=True) as prof:
        for _ in range(2):
            model(torch.randn(2, 3, 8, 8))
            prof.step()
    facts = read_profiles(tmp_path)[0].profile.facts
    assert (facts.with_stack, facts.profile_memory, facts.record_shapes) == (False, True, True)
    assert (facts.ddp, facts.distributed_backend) == (None, None)


def test_distributed_data_parallel_tells_its_settings(tmp_path, kit):
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

        model = torch.nn.parallel.DistributedDataParallel(kit.Net(), bucket_cap_mb=5, gradient_as_bucket_view=True)
        model.register_comm_hook(None, allreduce_hook)
        facts = collect_facts(model=torch.compile(model, backend="eager"))
    finally:
        torch.distributed.destroy_process_group()
    assert facts.ddp == DdpFacts(5 * 2**20, True, False, "allreduce_hook")
    assert facts.distributed_backend == "gloo"


def test_the_load_of_the_machine_is_read_without_a_gpu(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (7.5, 1.0, 1.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    facts = collect_facts()
    assert (facts.load_average, facts.machine_cpus) == (7.5, 4)
    if not torch.cuda.is_available():
        assert (facts.other_gpu_processes, facts.other_gpu_memory_bytes, facts.sm_clock_mhz) == (None, None, None)


class Driver:
    """An NVML that knows one GPU, on which three processes run and which is too hot."""

    def nvmlDeviceGetHandleByUUID(self, uuid, handle):
        return 0 if uuid == b"GPU-known" else 6

    def nvmlDeviceGetClockInfo(self, handle, kind, value):
        return _set(value, {1: 1200}[kind])

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle, value):
        return _set(value, 0x1 | 0x20)

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle, count, infos):
        assert infos is None
        _set(count, 3)
        return 7

    def nvmlDeviceGetTemperature(self, handle, kind, value):
        return 3  # NVML_ERROR_NOT_SUPPORTED


def _set(pointer, value):
    pointer._obj.value = value
    return 0


def test_the_driver_is_asked_for_clocks_and_processes_and_may_refuse(monkeypatch):
    monkeypatch.setattr(nvml, "_library", Driver)
    gpu = nvml.NvmlDevice("GPU-known")
    assert (gpu.sm_clock_mhz, gpu.clock_limits, gpu.processes) == (1200, ["thermal slowdown"], 3)
    # What the driver refuses, or a driver is too old to have, is unknown.
    assert (gpu.temperature_c, gpu.max_sm_clock_mhz) == (None, None)
    with pytest.raises(nvml.NvmlError, match="GPU-other"):
        nvml.NvmlDevice("GPU-other")


def test_no_driver_is_one_error(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    nvml._library.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(nvml.NvmlError, match="libnvidia-ml"):
        nvml.NvmlDevice("GPU-any")


def test_other_processes_on_the_gpu_and_their_memory_are_facts(monkeypatch):
    monkeypatch.setattr(nvml, "_library", Driver)
    cuda = torch.cuda
    for name, answer in {
        "is_initialized": True, "device_count": 2, "mem_get_info": (10 * 2**30, 80 * 2**30),
        "get_device_properties": types.SimpleNamespace(uuid="known"),
    }.items():  # fmt: skip
        monkeypatch.setattr(cuda, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(cuda, "max_memory_allocated", lambda device=0: [0, 2**30][device])
    monkeypatch.setattr(cuda, "memory_reserved", lambda device=0: 30 * 2**30)
    facts = collect_facts()
    assert facts.other_gpu_memory_bytes == 40 * 2**30
    assert (facts.other_gpu_processes, facts.sm_clock_mhz, facts.clock_limits) == (2, 1200, ["thermal slowdown"])


def test_cores_are_those_of_the_affinity_unless_a_cgroup_gives_less(monkeypatch):
    monkeypatch.setattr(machine, "_cpu_count", lambda: 8)
    for quotas, cores in (((None, None), 8), ((1.5, None), 1.5), ((None, 2.0), 2.0), ((16.0, None), 8)):
        for name, quota in zip(("_quota_2", "_quota_1"), quotas, strict=True):
            monkeypatch.setattr(machine, name, lambda quota=quota: quota)
        assert machine.usable_cores() == cores


@pytest.mark.parametrize(
    ("line", "multiplies"),
    [
        ("flags\t\t: fpu avx512f avx512_bf16 amx_tile", True),
        ("flags\t\t: fpu avx2 amx_bf16", True),
        ("Features\t: fp asimd i8mm bf16 dgh", True),
        ("flags\t\t: fpu avx512f avx512bw", False),
        ("model name\t: a CPU with bf16", False),
    ],
)
def test_a_cpu_says_whether_it_multiplies_bf16(line: str, multiplies: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_cpu_info", lambda: f"processor\t: 0\n{line}\nbogomips\t: 1\n")
    assert machine.multiplies_bf16() == multiplies
