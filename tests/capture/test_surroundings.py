"""What slows a process down, how ranks exchange gradients, and how the profiler was set: as set, so recorded."""

from __future__ import annotations

import sys

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin.capture import profile  # noqa: E402
from tb_dlprof_plugin.capture.facts import collect_facts  # noqa: E402
from tb_dlprof_plugin.capture.slow_switches import slow_switches  # noqa: E402
from tb_dlprof_plugin.storage.eventfile import read_profiles  # noqa: E402
from tb_dlprof_plugin.storage.facts import DdpFacts  # noqa: E402


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
