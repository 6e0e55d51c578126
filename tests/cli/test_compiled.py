"""``tb-dlprof import --torch-trace`` and ``tb-dlprof compiled``."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.main import app

DATA = Path(__file__).parents[1] / "data" / "compiled"
TRACE = DATA / "gpt.reduce-overhead.pt.trace.json.gz"


def _run(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    logdir = tmp_path_factory.mktemp("runs")
    _run("import", TRACE, "--torch-trace", DATA / "gpt.reduce-overhead.torch_trace.log.gz", "--logdir", logdir)
    return logdir / "gpt.reduce-overhead"


def test_an_imported_run_says_what_each_kernel_of_a_graph_computes(run):
    rows = list(csv.DictReader(io.StringIO(_run("compiled", run, "--format", "csv"))))
    assert len(rows) == 292
    attention = [row for row in rows if row["kernel"] == "torch.ops.aten._scaled_dot_product_cudnn_attention.default"]
    # A block has 16 launches.
    assert sorted(int(row["number"]) for row in attention) == [5, 21, 37, 53, 69, 85]
    assert all(row["launches"] == "3" and "compiled.py:12 forward" in row["places"] for row in attention)


def test_the_headline_says_how_much_is_known(run):
    assert "the launch of 97.5 % of its time is known" in _run("compiled", run, "--limit", 1)


def test_a_trace_alone_says_what_to_record():
    assert "or import the trace with --torch-trace" in _run("compiled", TRACE)


def test_a_folder_without_logs_is_refused_with_what_to_pass(tmp_path):
    result = CliRunner().invoke(app, ["import", str(TRACE), "--torch-trace", str(tmp_path), "--logdir", str(tmp_path)])
    assert result.exit_code == 2
    assert "pass the folder it was set to" in result.output
