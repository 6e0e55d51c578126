"""Replays of graphs that were captured by hand, joined with the calls of their capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.trace_builder import TraceBuilder

from tb_dlprof_plugin.metrics.flops import matrix_calls
from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.profile_view import ProfileView

GEMM, RELU, BACKWARD, SET = "sm90_xmma_gemm_bf16", "relu_kernel", "sm90_xmma_gemm_backward", "Memset (Device)"
KERNELS = (GEMM, RELU, SET, BACKWARD)
_DIMS = [[8, 16], [16, 32]]
_TYPES = ["float", "float"]


def _ops(trace: TraceBuilder, at: float, correlation: int, block: str, kernels: Sequence[str] = ()) -> None:
    """A forward pass of a block and its backward pass; kernels where they run at once."""
    trace.module(block, at, 40)
    trace.op("aten::linear", at + 1, 20, seq=correlation, dims=_DIMS, types=_TYPES)
    trace.op("aten::mm", at + 2, 18, dims=_DIMS, types=_TYPES)
    trace.runtime(at + 3, 2, correlation)
    trace.op("aten::relu", at + 25, 10)
    trace.runtime(at + 26, 2, correlation + 1)
    trace.backward("AddmmBackward0", at + 50, 30, seq=correlation)
    trace.runtime(at + 52, 2, correlation + 2, name="cudaMemsetAsync", tid=2)
    trace.op("aten::mm", at + 55, 20, tid=2, dims=_DIMS, types=_TYPES, seq=correlation, fwd=1)
    trace.runtime(at + 57, 2, correlation + 3, tid=2)
    for number, name in enumerate(kernels):
        cat = "gpu_memset" if name == SET else "kernel"
        trace.kernel(name, at + 60 + 5 * number, 4, correlation + number, cat=cat)


def _replay(trace: TraceBuilder, at: float, correlation: int, kernels: Sequence[str]) -> None:
    trace.runtime(at, 10, correlation, name="cudaGraphLaunch")
    for number, name in enumerate(kernels):
        cat = "gpu_memset" if name == SET else "kernel"
        trace.kernel(name, at + 20 + 5 * number, 4 + number, correlation, cat=cat)


def _trace(folder: Path, replayed: Sequence[str] = KERNELS, blocks: int = 1, capture: bool = True) -> ProfileView:
    trace = TraceBuilder(folder)
    trace.gpu()
    trace.step(0, 0, 100)
    _ops(trace, 5, 10, "blocks.0", KERNELS)
    for block in range(blocks if capture else 0):
        at = 110 + 120 * block
        trace.runtime(at, 1, 50 + 40 * block, name="cudaStreamBeginCapture")
        _ops(trace, at + 5, 60 + 40 * block, f"blocks.{block}")
        trace.runtime(at + 100, 1, 90 + 40 * block, name="cudaStreamEndCapture")
    for step in range(2):
        at = 1000 + 500 * step
        trace.step(step + 1, at, 400)
        for block in range(blocks):
            _replay(trace, at + 10 + 100 * block, 500 + 10 * step + block, replayed)
    return ProfileView(trace.profile())


def _found(view: ProfileView) -> Counter[tuple[str, str, int]]:
    """Module, kernel and part of the step of each activity of a replay."""
    profile, launches = view.profile, view.profile.launches
    found: Counter[tuple[str, str, int]] = Counter()
    for row in range(len(launches)):
        op = int(profile.calls.op[view.call_top[launches.call[row]]])
        if launches.start_ns[row] >= launches.start_ns[0] + 900_000:
            name = profile.strings[profile.kernels.name[launches.kernel[row]]]
            found[profile.strings[profile.ops.module[op]], name, int(profile.ops.role[op])] += 1
    return found


def test_each_activity_of_a_replay_belongs_to_the_op_that_was_captured(tmp_path):
    view = _trace(tmp_path)
    forward, backward = int(Role.FORWARD), int(Role.BACKWARD)
    assert _found(view) == {
        ("blocks.0", GEMM, forward): 2,
        ("blocks.0", RELU, forward): 2,
        ("blocks.0", SET, backward): 2,
        ("blocks.0", BACKWARD, backward): 2,
    }
    # Products have their shapes in a replay, too: two steps, forward and backward.
    rows = matrix_calls(view, view.selection())
    replayed = view.profile.calls.duration_ns[rows.call] == 0
    assert rows.flops[replayed].tolist() == [2 * 8 * 16 * 32] * 4


def test_equal_blocks_are_replayed_in_the_order_of_their_captures(tmp_path):
    found = _found(_trace(tmp_path, blocks=2))
    assert {module for module, _, _ in found} == {"blocks.0", "blocks.1"}
    assert set(found.values()) == {2}


@pytest.mark.parametrize(
    "replayed",
    [(GEMM, RELU, BACKWARD, SET), (GEMM, RELU, SET), (RELU, GEMM, SET, BACKWARD)],
    ids=["another order of kinds", "another count", "kernels of other ops"],
)
def test_a_replay_that_does_not_agree_with_the_capture_stays_unknown(tmp_path, replayed):
    assert {module for module, _, _ in _found(_trace(tmp_path, replayed))} == {""}


def test_without_its_capture_a_replay_is_one_op(tmp_path):
    view = _trace(tmp_path, capture=False)
    assert {module for module, _, _ in _found(view)} == {""}
    assert "cudaGraphLaunch" in {view.profile.strings[index] for index in view.profile.ops.name.tolist()}
