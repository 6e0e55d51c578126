"""Odd recordings: a forecast answers or says why it does not, and never fails otherwise."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.pages.forecast import forecast_page
from tb_dlprof_plugin.planning import PRECISIONS, Forecast, ForecastError, forecast
from tb_dlprof_plugin.planning import target as target_module
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.store.run_ref import RunRef

TRACES = Path(__file__).resolve().parents[1] / "traces"
PAIRS = TRACES.parents[1] / "tests" / "data" / "precision_pairs"
ODD = (
    "accumulation", "all_options", "checkpointing", "copies", "cpu_memory", "cpu_training", "cuda_graph",
    "cuda_graph_callables", "cuda_only", "data_parallel", "fp8", "hook_fp32", "inference", "legacy_cuda", "lstm",
    "nccl_rank0", "nccl_rank1", "no_external_ids", "no_shapes", "no_steps", "sdpa", "steps_many", "sync_events",
    "threads", "torch_1_9_cpu_legacy", "torch_compile", "torch_compile_reduce_overhead", "two_gpus", "two_streams",
    "user_ranges", "with_memory",
)  # fmt: skip
GEMM = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_ffma_execute_kernel__5x_cublas"


@functools.cache
def frame_of(name: str) -> ProfileView:
    return ProfileView(analyze_trace(TRACES / f"{name}.pt.trace.json.gz", facts=RunFacts(batch_size=16)))


def answers(view: ProfileView, precision: str, **asked: Any) -> bool:
    """Whether there is a forecast, which then makes sense; a `ForecastError` is a sentence."""
    try:
        found = forecast(view, precision, **asked)
    except ForecastError as error:
        text = str(error)
    else:
        return _makes_sense(found)
    assert text.endswith(".")
    return False


def _makes_sense(found: Forecast) -> bool:
    times = [found.measured_ns, found.base_ns, found.predicted_ns, found.low_ns, found.high_ns, found.gpu_ns]
    assert all(math.isfinite(time) and time >= 0 for time in times)
    assert found.low_ns <= found.predicted_ns <= found.high_ns
    assert all(op.predicted_ns >= 0 and op.casts_ns >= 0 for op in found.ops)
    return True


@pytest.mark.parametrize("name", ODD)
def test_a_recorded_trace_has_a_forecast_or_a_reason(name: str) -> None:
    view = frame_of(name)
    # FP32 stands for the run as it is: one in TF32 has no forecast of it.
    assert len({answers(view, precision) for precision in PRECISIONS if precision != "fp32"}) == 1


def test_fp32_runs_on_a_gpu_have_one() -> None:
    found = {name for name in ODD if answers(frame_of(name), "fp32")}
    assert {"accumulation", "checkpointing", "hook_fp32", "steps_many", "two_streams"} <= found
    assert not found & {"cpu_training", "fp8", "inference", "legacy_cuda", "no_shapes", "threads", "two_gpus"}


def test_cuda_graphs_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_module, "_check_precision", lambda view: None)
    with pytest.raises(ForecastError, match="CUDA graphs"):
        forecast(frame_of("cuda_graph"), "bf16")


@pytest.mark.parametrize("name", ODD)
def test_the_engine_stands_whatever_precision_the_run_had(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN small recordings of all sorts, most of them in TF32, as if they were FP32
    monkeypatch.setattr(target_module, "_check_precision", lambda view: None)
    view = frame_of(name)
    answers(view, "fp16")
    answers(view, "tf32", batch_size=5, gpu="NVIDIA A100-SXM4-80GB")


_SHAPES = st.one_of(
    st.lists(st.lists(st.integers(0, 64), max_size=4), max_size=5),
    st.sampled_from([[[8, 64], [64, 10]], [[8, 3, 32, 32], [16, 3, 3, 3]], [[8, 4, 16, 8]] * 3, [[2, [3]], None]]),
)
_OPS = st.sampled_from(
    ["mm", "addmm", "bmm", "linear", "conv2d", "cudnn_convolution", "convolution_backward", "batch_norm", "layer_norm",
     "add_", "relu", "view", "to", "copy_", "scaled_dot_product_attention", "_scaled_dot_product_flash_attention",
     "cross_entropy_loss", "embedding", "lstm", "_cudnn_rnn", "my_op"]
)  # fmt: skip
_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["op", "backward", "launch", "orphan", "synchronize", "loader", "optimizer", "parameter"]),
        _OPS,
        _SHAPES,
        st.integers(0, 2000),
        st.integers(0, 300),
        st.sampled_from([(0, 7), (0, 20), (1, 7)]),
    ),
    max_size=25,
)


def _add(trace: Any, event: tuple[str, str, Any, int, int, tuple[int, int]]) -> None:
    what, name, dims, at, duration, (device, stream) = event
    types = ["float"] * len(dims)
    if what in ("op", "backward"):
        thread = 1 if what == "op" else 2
        trace.op(f"aten::{name}", at, duration + 3, tid=thread, dims=dims, types=types)
        trace.launch(GEMM if "m" in name else "k", at, at + 5, duration, tid=thread, device=device, stream=stream)
    elif what == "parameter":
        trace.op("torch::autograd::AccumulateGrad", at, duration, tid=2, dims=dims, types=types)
    elif what == "launch":
        trace.launch("Memcpy HtoD (Pageable -> Device)", at, at + 9, duration, device=device, stream=stream)
    elif what == "orphan":
        trace.kernel("k", at, duration, device=device, stream=stream)
    elif what == "synchronize":
        trace.runtime(at, duration, name="cudaDeviceSynchronize")
    else:
        getattr(trace, what)(at, duration)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_EVENTS, st.integers(0, 4), st.sampled_from(PRECISIONS), st.sampled_from([None, 1, 8, 10**12]))
def test_a_trace_of_anything_has_a_forecast_or_a_reason(
    new_trace: Callable[..., Any], events: list[Any], steps: int, precision: str, batch_size: int | None
) -> None:
    trace = new_trace()
    trace.gpu(id=0)
    trace.gpu(id=1)
    for step in range(steps):
        trace.step(step, 600 * step, 600)
    # Enough FP32 work for the run to count as one.
    trace.op("aten::mm", 1, 20, dims=[[8, 64], [64, 10]], types=["float"] * 2)
    trace.launch(GEMM, 2, 5, 5000)
    for event in events:
        _add(trace, event)
    answers(trace.view(facts=RunFacts(batch_size=8)), precision, batch_size=batch_size)


def test_kernels_of_which_no_launch_was_recorded_leave_the_cpus_time(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 100)
    trace.op("aten::mm", 1, 20, dims=[[8, 64], [64, 10]], types=["float"] * 2)
    trace.kernel(GEMM, 10, 30)
    view = trace.view()
    if answers(view, "bf16"):
        assert forecast(view, "bf16").gpu_ns == 0


@pytest.mark.parametrize("after_ns", [60_000_000, 2**46])
def test_steps_that_were_timed_too_differently_have_an_interval_that_no_speedup_divides_by_zero_for(
    trained: Callable[..., ProfileView], ref: RunRef, after_ns: int
) -> None:
    """Half the drift between 5 and 60 ms is more than the mean: the interval of the step begins at 0."""
    view = trained(
        facts=RunFacts(batch_size=8, unprofiled_before_ns=[5_000_000] * 12, unprofiled_after_ns=[after_ns] * 12)
    )
    assert step_estimate(view, view.selection()).low_ns == 0
    page = forecast_page(view, ref, "bf16")
    assert 0 < page.low_ms <= page.predicted_step_ms <= page.high_ms
    assert math.isfinite(page.speedup_high)


@pytest.mark.parametrize("step_ns", [1, 999])
def test_a_step_of_next_to_nothing_has_no_forecast(trained: Callable[..., ProfileView], step_ns: int) -> None:
    with pytest.raises(ForecastError, match="its step took no time"):
        forecast(trained(facts=RunFacts(batch_size=8, unprofiled_step_ns=step_ns)), "bf16")
