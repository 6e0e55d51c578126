"""Where a tenth of the kernel time has no Tensor Core verdict, pages name the range of a share, or none."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tb_dlprof_plugin.metrics.run_figures import run_figures
from tb_dlprof_plugin.model.profile import Verdict
from tb_dlprof_plugin.pages.kernels import kernels_page
from tb_dlprof_plugin.pages.overview import overview
from tb_dlprof_plugin.pages.tensor_cores import tensor_cores_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.reports.summary import summary_report
from tb_dlprof_plugin.store.run_ref import RunRef


@pytest.fixture(params=["fp32", "fp16"])
def unknown(training, request: pytest.FixtureRequest) -> ProfileView:
    """A recording of kernels none of which has a verdict, as on a GPU of another maker."""
    profile = training(request.param).profile()
    verdicts = np.full_like(profile.kernels.tensor_core, Verdict.UNKNOWN)
    return ProfileView(dataclasses.replace(profile, kernels=dataclasses.replace(profile.kernels, tensor_core=verdicts)))


def test_the_overview_names_no_share(unknown: ProfileView, ref: RunRef) -> None:
    page = overview(unknown, ref, unknown.selection())
    assert "Tensor Core kernels take an unknown share of the GPU time" in page.headline
    assert page.summary.tensor_core_time_percent is None
    usage = {part.key: part for part in page.resource_usage}
    assert (usage["tensor_core"].value_ns, usage["tensor_core"].percent) == (None, None)
    assert usage["other_kernels"].label == "Kernels, on Tensor Cores or not"
    assert sum(part.value_ns or 0 for part in page.resource_usage) == page.summary.wall_clock_ns
    assert "unknown_kernels" in [reason.code for reason in page.trust.reasons]


def test_other_pages_and_reports_name_none(unknown: ProfileView, ref: RunRef) -> None:
    everything = unknown.selection()
    assert "Tensor Core kernels an unknown share" in kernels_page(unknown, ref, everything).headline
    assert "what their kernels do is unknown" in tensor_cores_page(unknown, ref, everything).headline
    assert run_figures(unknown, everything).tensor_core_share is None
    report = summary_report(unknown, ref, everything)
    figures = report.tables["Summary Report"]
    assert figures.rows["Tensor Core Kernel Duration %"] == (None,)
    assert figures.rows["Non-Tensor Core Kernel Duration %"] == (None,)
    assert any("their use is unknown" in note for note in report.notes)


def test_with_verdicts_the_shares_are_there(training, ref: RunRef) -> None:
    view = training("fp16").view()
    page = overview(view, ref, view.selection())
    # Kernels of 40, 20, 20 and 60 µs on Tensor Cores, of 220 with the casts, the loss, the optimizer and a copy.
    assert page.summary.tensor_core_time_percent == pytest.approx(100 * 140 / 220, abs=1)
    assert "unknown" not in page.headline


def test_what_is_known_bounds_the_share(new_trace, ref: RunRef) -> None:
    # GIVEN matrix products of 67 µs on Tensor Cores, 9 off them and 24 that may be either
    trace = new_trace()
    trace.gpu()
    trace.step(1, 0, 400)
    trace.op("aten::mm", 0, 20)
    trace.launch("nvjet_sm90_hsh_64x64_TNN", 2, 20, 67)
    trace.launch("ampere_sgemm_128x64_nn", 4, 100, 9)
    trace.launch("made_up", 6, 200, 24)
    view = trace.view()
    selection = view.selection()
    # THEN everything says where the utilization lies
    page, summary = tensor_cores_page(view, ref, selection), overview(view, ref, selection)
    assert page.headline.startswith("Tensor Cores run for 67 to 91 % of the kernel time that could use them;")
    figures = summary.summary
    assert (page.utilization_percent, figures.tensor_core_kernel_utilization_percent) == (None, None)
    assert page.utilization_possible == figures.tensor_core_kernel_utilization_possible
    assert page.utilization_possible is not None
    assert page.utilization_possible.text == "67 to 91 %"
    assert "Tensor Core kernels 67 to 91 %" in kernels_page(view, ref, selection).headline
    assert " to " in summary.headline
    assert "unknown share" not in summary.headline


@pytest.fixture
def amd(new_trace) -> ProfileView:
    """Products and pointwise kernels on a GPU of AMD's, by torch.profiler."""
    trace = new_trace()
    trace.gpu(name="AMD Instinct MI250X")
    trace.step(1, 0, 400)
    trace.op("aten::mm", 0, 20)
    trace.launch("Cijk_Ailk_Bljk_SB_MT64x64x8_SE_K1_TT4_4_WG16_16_1", 2, 20, 60)
    trace.launch("void at::native::elementwise_kernel<512>", 4, 100, 40)
    return trace.view()


def test_of_amd_nothing_is_said_about_tensor_cores(amd: ProfileView, ref: RunRef) -> None:
    selection = amd.selection()
    page, summary = tensor_cores_page(amd, ref, selection), overview(amd, ref, selection)
    assert "Matrix Cores are not recognised" in page.headline
    assert (page.eligible_ns, page.utilization_percent, page.ops, page.by_reason) == (None, None, [], [])
    assert "Tensor" not in summary.headline
    assert "Tensor" not in kernels_page(amd, ref, selection).headline
    assert summary.summary.tensor_core_kernel_utilization_percent is None
    assert summary.summary.tensor_core_time_percent is None
