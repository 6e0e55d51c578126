"""Ops against the roofs of their GPU: by hand on one product, and on the recorded runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.metrics.op_work import op_work
from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.metrics.roofline import Roofline, roofline
from tb_dlprof_plugin.metrics.run_figures import run_figures
from tb_dlprof_plugin.pages.roofline import roofline_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
RUNS = [str(path.parent.relative_to(RECORDED)) for path in sorted(RECORDED.glob("*/*/events.*"))]
SGEMM = "ampere_sgemm_128x64_nn"
TF32 = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_32x3_tn_align4>(Params)"
FP16 = "nvjet_sm90_hsh_128x64_64x8_2x1_v_bz_TNN"
SIZE = 4096
FLOPS = 2 * SIZE**3


def _product(new_trace, kernel: str, us: float, size: int = SIZE, dtype: str = "float", **gpu) -> Roofline:
    trace = new_trace()
    trace.gpu(**gpu)
    trace.step(0, 0, 10_000)
    trace.op("aten::mm", 10, 20, dims=[[size, size], [size, size]], types=[dtype, dtype])
    trace.launch(kernel, 12, 40, us)
    view = trace.view()
    return roofline(view, view.selection())


def test_a_large_product_is_held_against_the_peak_of_the_precision_it_ran_in(new_trace) -> None:
    (row,) = _product(new_trace, TF32, 500).rows
    assert (row.flops, row.bytes, row.time_ns) == (FLOPS, 3 * 4 * SIZE**2, 500_000)
    assert (row.precision, row.tensor_cores, row.memory_bound) == ("tf32", True, False)
    assert row.rate == pytest.approx(FLOPS / 500e-6)
    assert row.ceiling == pytest.approx(494.5e12)
    assert row.percent == pytest.approx(100 * FLOPS / 494.5e12 / 500e-6)
    # In mixed precision the same product has twice the roof.
    assert row.possible_precision == "fp16"
    assert row.possible_percent == pytest.approx(row.percent * 494.5 / 989.5)


def test_a_half_precision_product_could_run_no_faster_than_in_its_own(new_trace) -> None:
    (row,) = _product(new_trace, FP16, 500, dtype="c10::Half").rows
    assert (row.bytes, row.possible_precision) == (3 * 2 * SIZE**2, "fp16")
    assert row.percent == row.possible_percent == pytest.approx(100 * FLOPS / 989.5e12 / 500e-6)


def test_a_product_without_tensor_cores_is_held_against_the_cuda_cores(new_trace) -> None:
    (row,) = _product(new_trace, SGEMM, 4000).rows
    assert (row.precision, row.tensor_cores) == ("fp32", False)
    assert row.percent == pytest.approx(100 * FLOPS / 67e12 / 4000e-6)
    assert row.possible_percent == pytest.approx(100 * FLOPS / 989.5e12 / 4000e-6)


def test_a_small_product_is_held_against_the_memory(new_trace) -> None:
    (row,) = _product(new_trace, TF32, 5, size=64).rows
    least_s = 3 * 4 * 64**2 / 4800e9
    assert row.memory_bound is True
    assert row.intensity == pytest.approx(64 / 6)
    assert row.ceiling == pytest.approx(row.intensity * 4800e9)
    assert row.percent == pytest.approx(100 * least_s / 5e-6)
    # Mixed precision halves the bytes, too.
    assert row.possible_percent == pytest.approx(row.percent / 2)


def test_what_no_kernel_reaches_has_unknown_flops_and_bytes(new_trace) -> None:
    """A kernel of 1 us that multiplies matrices of 4096: 278 times the peak rate."""
    found = _product(new_trace, TF32, 1)
    (row,) = found.rows
    assert row.impossible
    assert (row.flops, row.bytes, row.rate, row.ceiling, row.percent, row.possible_percent) == (None,) * 6
    assert (found.flops, found.calls, found.unknown_calls) == (0, 1, 1)
    assert found.unknown_ns == found.time_ns == 1000


def test_what_no_kernel_reaches_is_in_no_figure_and_no_headline(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 10_000)
    trace.op("aten::mm", 10, 20, dims=[[SIZE, SIZE], [SIZE, SIZE]], types=["float", "float"])
    trace.launch(TF32, 12, 40, 1)
    view = trace.view()
    page = roofline_page(view, RunRef("run", "trace", 0, 0), view.selection())
    assert page.headline == "FLOPs are unknown: the recording's shapes and times cannot both be right."
    assert (page.flops, page.flops_per_second, page.percent_of_ceiling) == (None, None, None)
    assert run_figures(view, view.selection()).flops is None
    assert op_work(view, view.selection()).flops_of(0) is None


def test_a_rate_above_the_roof_that_caches_and_algorithms_explain_is_shown(new_trace) -> None:
    (row,) = _product(new_trace, TF32, 35).rows
    assert row.percent == pytest.approx(100 * FLOPS / 494.5e12 / 35e-6)
    assert 700 < row.percent < 1000
    assert not row.impossible


def test_an_unknown_gpu_has_rates_but_no_roof(new_trace) -> None:
    found = _product(new_trace, TF32, 500, name="NVIDIA Unheard")
    (row,) = found.rows
    assert (found.gpu, found.ceilings) == ("NVIDIA Unheard", None)
    assert row.rate == pytest.approx(FLOPS / 500e-6)
    assert (row.ceiling, row.percent, row.memory_bound, row.possible_percent) == (None, None, None, None)


def test_a_kernel_that_nobody_knows_has_no_roof_to_be_held_against(new_trace) -> None:
    (row,) = _product(new_trace, "unheard_of_kernel", 500).rows
    assert (row.precision, row.tensor_cores, row.ceiling, row.percent) == ("", None, None, None)
    assert row.possible_percent is not None


def test_time_of_unknown_flops_is_accounted_for(gpu_view: ProfileView) -> None:
    found = roofline(gpu_view, gpu_view.selection())
    # The backward convolution: no later node says which gradients it computed.
    assert (found.calls, found.unknown_calls) == (12, 3)
    assert (found.time_ns, found.unknown_ns) == (2_100_000, 900_000)
    assert [row.flops is None for row in found.rows] == [True, False, False, False]
    assert found.flops == 3 * (2 * 8 * 30 * 30 * 16 * 27 + 2 * 8 * 64 * 10 * 2)


@pytest.mark.parametrize("run", RUNS)
def test_the_times_are_those_of_the_eligible_kernels_and_no_flops_are_missing(run: str) -> None:
    view = recorded_view(RECORDED / run)
    selection = view.selection(2, 5)
    found = roofline(view, selection)
    eligible = op_totals(view, selection).eligible_ns
    assert {row.group: row.time_ns for row in found.rows} == {
        group: int(eligible[group]) for group in np.flatnonzero(eligible).tolist()
    }
    assert (found.unknown_calls, found.unknown_ns) == (0, 0)
    for row in found.rows:
        assert row.rate is not None
        assert row.possible_percent is not None
        if row.precision in ("fp16", "bf16") and not row.tensor_cores:
            # NVIDIA gives no such rate for every GPU.
            assert row.percent is None
            continue
        assert row.percent is not None
        assert row.ceiling is not None
        assert row.percent == pytest.approx(100 * row.rate / row.ceiling)


@pytest.mark.parametrize("run", [run for run in RUNS if not run.endswith("fp32")])
def test_no_kernel_on_tensor_cores_is_above_its_roof(run: str) -> None:
    view = recorded_view(RECORDED / run)
    rows = [row for row in roofline(view, view.selection()).rows if row.tensor_cores]
    assert max((row.percent for row in rows if row.percent is not None), default=0) <= 100
