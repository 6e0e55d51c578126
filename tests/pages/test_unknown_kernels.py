"""Where a tenth of the kernel time has no Tensor Core verdict, no page and no report names a share of it."""

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
    assert "too many of their kernels are unknown" in tensor_cores_page(unknown, ref, everything).headline
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
