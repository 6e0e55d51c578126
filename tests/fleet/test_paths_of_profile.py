"""Paths of host and GPU between calls, from recordings whose times are given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.rank_facts import NO_PATH, PATHS, UNPROFILED, Collectives
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import decode, encode

GLOO = Path(__file__).resolve().parents[1] / "traces" / "cpu_gloo_rank0.pt.trace.json.gz"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


@pytest.fixture
def trace(new_trace: Callable[..., Any]) -> Any:
    """A step of 1000 us of rank 0 of 2."""
    found = new_trace(distributedInfo={"backend": "nccl", "rank": 0, "world_size": 2})
    found.gpu()
    found.step(0, 0, 1000)
    found.op("aten::mm", 5, 10)
    return found


def calls_of(trace: Any) -> Collectives:
    return facts_of_profile(ProfileView(decode(encode(trace.profile())))).collectives


def us(calls: Collectives, row: int, prefix: str = "") -> dict[str, float]:
    return {name: int(getattr(calls, prefix + name)[row]) / 1000 for name in PATHS}


def test_paths_lead_through_launches_and_waits(trace: Any) -> None:
    trace.launch("gemm", 20, 30, 100)
    trace.launch(NCCL, 60, 140, 50)
    trace.launch("gemm", 80, 200, 300)
    trace.runtime(90, 420, name="cudaStreamSynchronize")
    trace.launch("gemm", 560, 570, 40)
    trace.launch(NCCL, 600, 620, 30)
    calls = calls_of(trace)
    # 300 us of the second kernel, which began 10 us after the call before it ended, 60 us of the host, 3 us from a
    # launch to the start, 40 us of the third kernel.
    from_gpu = 310 + 60 + 3 + 40
    # The second kernel was launched 20 us after the call.
    from_host = 20 + 3 + from_gpu
    assert us(calls, 1) == {
        "gpu_ns": from_gpu,
        "gpu_after_host_ns": from_host,
        "host_ns": 20 + 3 + 310 + 100,
        "host_after_gpu_ns": 310 + 100,
    }
    unprofiled = us(calls, 1, UNPROFILED)
    assert 310 + 3 + 40 < unprofiled["gpu_ns"] < from_gpu
    assert 20 + 3 + 310 < unprofiled["host_ns"] + 20 < 20 + 3 + 310 + 100


def test_a_host_that_does_not_wait_has_no_path_from_the_gpu(trace: Any) -> None:
    trace.launch(NCCL, 20, 30, 50)
    trace.launch("gemm", 40, 80, 200)
    trace.launch(NCCL, 60, 280, 50)
    calls = calls_of(trace)
    assert us(calls, 1)["host_ns"] == 40
    assert calls.host_after_gpu_ns[1] == NO_PATH


def test_a_call_behind_another_one_was_ready_earlier(trace: Any) -> None:
    trace.launch("gemm", 20, 30, 100)
    trace.launch(NCCL, 30, 130, 300, stream=20)
    trace.launch("gemm", 40, 130, 100)
    trace.launch(NCCL, 50, 430, 100, stream=20)
    calls = calls_of(trace)
    # Ready at 230 us. From then on nothing but the call before it ran.
    assert calls.behind_ns.tolist() == [0, 0]
    trace.launch("gemm", 60, 230, 200)
    assert calls_of(trace).behind_ns.tolist() == [0, 200_000]


def test_what_kernels_lose_to_communication_is_found_by_the_same_kernels_alone(trace: Any) -> None:
    trace.launch("gemm", 20, 30, 100)
    trace.launch(NCCL, 30, 130, 400, stream=20)
    trace.launch("gemm", 40, 130, 125)
    trace.launch("other", 45, 255, 50)
    trace.launch(NCCL, 50, 530, 100, stream=20)
    # A fifth of the time, for the kernel that never runs alone too.
    assert calls_of(trace).contended_ns.tolist()[1] == pytest.approx(25_000 + 10_000, abs=1_000)


def test_of_many_calls_the_last_steps_are_kept(new_trace: Callable[..., Any]) -> None:
    trace = new_trace(distributedInfo={"backend": "nccl", "rank": 0, "world_size": 2})
    trace.gpu()
    each, steps = 1100, 3
    for step in range(steps):
        trace.step(step, 20_000 * step, 20_000)
        trace.op("aten::mm", 20_000 * step + 1, 2)
        for number in range(each):
            at = 20_000 * step + 10 + 10 * number
            trace.launch(NCCL, at, at + 4, 5)
    calls = calls_of(trace)
    kept = calls.host_ns != NO_PATH
    assert np.array_equal(kept, calls.iteration >= 1)
    assert calls.host_ns[kept][1:each].tolist() == [10_000] * (each - 1)


def test_of_a_process_without_a_gpu_nothing_is_known() -> None:
    calls = facts_of_profile(ProfileView(analyze_trace(GLOO))).collectives
    assert len(calls) > 0
    assert (calls.host_ns == NO_PATH).all()
