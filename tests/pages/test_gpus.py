"""Each GPU of a process has its own utilization; the Overview's figure is their mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.pages.overview import overview
from tb_dlprof_plugin.profile_view import ProfileView

TRACES = Path(__file__).resolve().parents[1] / "traces"


def test_two_gpus_share_the_mean(ref) -> None:  # type: ignore[no-untyped-def]
    view = ProfileView(analyze_trace(TRACES / "data_parallel.pt.trace.json.gz"))
    page = overview(view, ref, view.selection())
    assert [(gpu.id, gpu.name, gpu.compute_capability, gpu.sm_count) for gpu in page.gpus] == [
        (0, "NVIDIA H200", "9.0", 132),
        (1, "NVIDIA H200", "9.0", 132),
    ]
    used = [gpu.utilization_percent for gpu in page.gpus]
    assert sum(used) / 2 == pytest.approx(page.summary.gpu_utilization_percent, rel=1e-5)


def test_without_a_gpu_there_is_none(cpu_view: ProfileView, ref) -> None:  # type: ignore[no-untyped-def]
    assert overview(cpu_view, ref, cpu_view.selection()).gpus == []
