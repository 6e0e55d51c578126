"""Commands on databases of other profilers, as DLProf's users type them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.marks import short_of
from support.nsys_database import NsysDatabase
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.store.logdir import read_profiles

TRACES = Path(__file__).resolve().parents[1] / "traces"
AMP, FP32 = (TRACES / "nsys" / f"emit_nvtx_{kind}.sqlite.gz" for kind in ("amp", "fp32"))
COMMANDS = (
    "summary", "ops", "op-types", "modules", "kernels", "launches", "timeline", "tensor-cores", "roofline", "advise",
    "info", "memory",
)  # fmt: skip


@pytest.fixture
def run() -> Callable[..., Result]:
    return lambda *args: CliRunner().invoke(app, list(map(str, args)))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    made = NsysDatabase(tmp_path / "report.sqlite")
    for number, at in enumerate((0, 100, 200)):
        made.range(f"iteration {number}", at, 90)
        made.range("forward", at + 5, 20)
        made.launch("k", at + 10, at + 30, 10)
    return made.write()


def test_dlprof_s_own_command_line_writes_its_reports(run, database: Path) -> None:
    result = run(
        "report", "--database", database, "--mode", "auto", "--iter_start", 1, "--iter_stop", 2, "--reports", "op_type"
    )
    assert result.exit_code == 0, result.stderr
    header, row = result.stdout.splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    assert (cells["Op Name"], cells["No. Calls"], cells["Total GPU Time (ns)"]) == ("forward", "2", "20000")


def test_simple_mode_has_kernels_and_no_ops(run, database: Path) -> None:
    result = run("report", "--database", database, "--mode", "simple", "--reports", "kernel")
    assert result.exit_code == 0, result.stderr
    assert "unassociated_k" in result.stdout


def test_a_key_node_cuts_the_recording(run, database: Path) -> None:
    result = run("report", "--database", database, "--key_node", "forward", "--reports", "iteration")
    assert result.exit_code == 0, result.stderr
    assert {line.split(",")[0] for line in result.stdout.splitlines()[1:]} == {"0", "1", "2"}


@pytest.mark.parametrize("args", [[], ["RUN", "--database", "FILE"]])
def test_one_recording_is_named(run, args: list[str]) -> None:
    result = run("report", *args)
    assert (result.exit_code, "name a run or a recording, or --database FILE" in result.stderr) == (2, True)


def test_a_stored_profile_has_no_mode_any_more(run, database: Path, tmp_path: Path) -> None:
    run("import", database, "--logdir", tmp_path / "runs")
    result = run("report", tmp_path / "runs" / "report", "--mode", "simple")
    assert (result.exit_code, "leave out --mode" in result.stderr) == (2, True)


def test_the_convention_of_the_markers_can_be_named(run, database: Path, tmp_path: Path) -> None:
    assert run("import", database, "--logdir", tmp_path / "runs", "--markers", "none").exit_code == 0
    (stored,) = read_profiles(tmp_path / "runs")
    assert (stored.profile.source.format, int(stored.profile.ops.top.sum())) == ("nsys", 0)


def test_of_a_folder_it_is_said_what_was_read_and_what_was_not(run, database: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(database, folder / "a.sqlite")
    shutil.copy(TRACES / "nsys" / "nothing_recorded.sqlite.gz", folder)
    shutil.copy(TRACES / "nvprof" / "pyprof_markers.nvprof.gz", folder / "old.sqlite.gz")
    (folder / "notes.txt").write_text("none")
    (folder / "net.profile.json").write_text('[{"count": 1}, {"name": "Conv_0", "averageMs": 0.5}]')
    (folder / "net.times.json").write_text('[{"startComputeMs": 1, "endComputeMs": 2, "computeMs": 1}]')
    result = run("import", folder, "--logdir", tmp_path / "runs")
    assert result.exit_code == 2
    said = result.stderr.splitlines()
    assert "3 of 4 recordings were read; profiles: 1 of nsys, 1 of nvprof, 1 of tensorrt." in said
    assert "Not read, for the reasons above: nothing_recorded.sqlite.gz." in said
    assert "Not recordings by their names: notes.txt. Name one to have it read all the same." in said


def test_the_rank_of_a_report_of_several_can_be_named(run, tmp_path: Path) -> None:
    two = TRACES / "nsys" / "two_ranks.sqlite.gz"
    assert json.loads(run("info", two, "--rank", 1, "--format", "json").stdout)["rank"] == 1
    result = run("info", two, "--rank", 5)
    assert (result.exit_code, "holds the ranks 0, 1, not 5" in result.stderr) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "name",
    short_of(
        [
            "nsys/emit_nvtx_amp.sqlite.gz", "nsys/cuda_graph_whole.sqlite.gz", "nsys/tensorrt_ranges.sqlite.gz",
            "nvprof/pyprof_markers.nvprof.gz",
        ],
        {"nsys/tensorrt_ranges.sqlite.gz"},
    ),
)  # fmt: skip
def test_every_page_has_something_to_say(run, command: str, name: str) -> None:
    result = run(command, TRACES / name)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.strip()
    assert "Traceback" not in result.stderr


def test_runs_in_two_precisions_are_compared(run) -> None:
    result = run("compare", FP32, AMP)
    assert result.exit_code == 0, result.stderr
    (row,) = [line for line in result.stdout.splitlines() if line.startswith("Tensor Core kernel time per step")]
    assert "ms" in row
    assert "Base: TF32, NVIDIA H200" in result.stdout
    assert "Candidate: FP16, NVIDIA H200" in result.stdout
