"""The table of pages in docs/inputs.md says of each format what its recordings show."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from readers.test_tensorrt import LAYERS, PROFILE

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.metrics.iterations import shows_data_loading
from tb_dlprof_plugin.model.frameworks import PYTORCH
from tb_dlprof_plugin.model.plan_request import PlanError, PlanRequest
from tb_dlprof_plugin.pages.roofline import roofline_page
from tb_dlprof_plugin.planning import ForecastError, forecast
from tb_dlprof_plugin.planning.memory.rewrites import check
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

ROOT = Path(__file__).resolve().parents[2]
TRACES, XPLANE = ROOT / "tests" / "traces", ROOT / "tests" / "readers" / "xplane"
NSYS, JAX, TENSORRT, ONNX = "Nsight Systems, nvprof", "XPlane", "TensorRT", "ONNX Runtime"


def _tensorrt(folder: Path) -> Path:
    (folder / "net.profile.json").write_text(json.dumps(PROFILE))
    (folder / "net.layers.json").write_text(json.dumps(LAYERS))
    return folder / "net.profile.json"


def _onnx(folder: Path) -> Path:
    node = {"op_name": "MatMul", "provider": "CPUExecutionProvider", "input_type_shape": [{"float": [8, 64]}]}
    span = {"pid": 1, "tid": 7, "ph": "X"}
    events = [
        span | {"cat": "Node", "ts": 1, "dur": 20, "name": "/fc/MatMul_kernel_time", "args": node},
        span | {"cat": "Session", "ts": 0, "dur": 30, "name": "model_run", "args": {}},
    ]
    (folder / "profile.json").write_text(json.dumps(events))
    return folder / "profile.json"


FILES: dict[str, Callable[[Path], Path]] = {
    NSYS: lambda _: TRACES / "nsys" / "emit_nvtx_fp32.sqlite.gz",
    JAX: lambda _: XPLANE / "jax_h200.xplane.pb.gz",
    TENSORRT: _tensorrt,
    ONNX: _onnx,
}


@pytest.fixture(scope="module")
def table() -> dict[str, dict[str, str]]:
    """The cells by page and format."""
    text = (ROOT / "docs" / "inputs.md").read_text().partition("## What each page shows")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    head, _, *body = rows
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in body}


@pytest.fixture(scope="module", params=list(FILES))
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ProfileView]:
    """A recording of each column."""
    path = FILES[request.param](tmp_path_factory.mktemp("recording"))
    return request.param, ProfileView(analyze_ranks(path)[0])


def test_the_table_has_a_column_for_each_kind_of_format(table: dict[str, dict[str, str]]) -> None:
    assert all(list(row) == list(FILES) for row in table.values())


def test_memory_is_not_recorded_where_the_table_says_so(
    table: dict[str, dict[str, str]], recorded: tuple[str, ProfileView]
) -> None:
    column, view = recorded
    assert (table["Memory"][column] == "not recorded") == (len(view.profile.memory) == 0)


def test_modules_are_there_where_the_table_says_so(
    table: dict[str, dict[str, str]], recorded: tuple[str, ProfileView]
) -> None:
    column, view = recorded
    if column != NSYS:
        assert (table["Modules"][column] == "not recorded") == (not (view.profile.ops.module > 0).any())


def test_forecasts_and_plans_are_refused_where_the_table_says_so(
    table: dict[str, dict[str, str]], recorded: tuple[str, ProfileView]
) -> None:
    column, view = recorded
    of_pytorch = view.profile.source.framework == PYTORCH
    assert of_pytorch == (not table["Forecast"][column].startswith("refused"))
    if not of_pytorch:
        with pytest.raises(ForecastError, match="PyTorch"):
            forecast(view, "bf16")
        with pytest.raises(PlanError, match="PyTorch"):
            check(view, PlanRequest())
    assert table["Memory plan"][column].startswith("refused")


def test_flops_are_known_where_the_table_says_so(
    table: dict[str, dict[str, str]], recorded: tuple[str, ProfileView]
) -> None:
    column, view = recorded
    page = roofline_page(view, RunRef("run", "trace", 0, 0), view.selection())
    assert (table["Roofline"][column] == "FLOPs not known") == page.headline.startswith("FLOPs are known of PyTorch")


def test_waiting_for_data_is_unknown_where_the_table_says_so(
    table: dict[str, dict[str, str]], recorded: tuple[str, ProfileView]
) -> None:
    column, view = recorded
    if table["Overview"][column].startswith("without waiting for data"):
        assert not shows_data_loading(view)
