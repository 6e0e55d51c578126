"""``tb-dlprof report``: what it prints, which files it writes, what it refuses."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.commands.main import app
from tb_dlprof_plugin.storage.eventfile import write_profile
from tb_dlprof_plugin.views.reports.tensor import COLUMNS


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, training) -> Path:
    folder = tmp_path_factory.mktemp("report") / "fp32"
    write_profile(folder, training("fp32").profile(session="s"))
    return folder


def report(*args: object) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, args)])


def test_one_report_in_one_format_is_printed(source: Path) -> None:
    result = report(source, "--reports", "tensor", "--formats", "json")
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    assert [tuple(row) for row in rows] == [COLUMNS] * 4
    assert rows[0]["Reason"].startswith("Its inputs are FP32; whether TF32 is allowed")


def test_csv_is_the_default(source: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(report(source, "--reports", "tensor").stdout)))
    assert len(rows) == 4
    assert rows[0]["Uses TC"] == "False"


def test_files_are_named_as_dlprof_names_them(source: Path, tmp_path: Path) -> None:
    result = report(source, "--reports", "tensor", "--formats", "json,csv", "--out", tmp_path / "new" / "folder")
    assert result.exit_code == 0
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == ["dlprof_tensor.csv", "dlprof_tensor.json"]
    assert result.stdout.splitlines() == [str(folder / "dlprof_tensor.json"), str(folder / "dlprof_tensor.csv")]
    assert len(json.loads((folder / "dlprof_tensor.json").read_text())) == 4


def test_several_files_go_to_the_working_directory(source: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert report(source, "--formats", "csv,json").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "dlprof_expert_systems.csv", "dlprof_expert_systems.json", "dlprof_tensor.csv", "dlprof_tensor.json",
    ]  # fmt: skip


def test_expert_systems_has_dlprofs_columns_first_and_the_savings_after_them(source: Path) -> None:
    result = report(source, "--reports", "expert_systems", "--formats", "json")
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    (tf32,) = [row for row in rows if row["Rule"] == "tf32_off"]
    assert list(tf32)[:2] == ["Problem", "Recommendation"]
    assert tf32["Problem"].startswith("TF32 is not used")
    assert tf32["Recommendation"].startswith("Allow TF32")
    assert tf32["Saving Low"] <= tf32["Saving"] <= tf32["Saving High"]
    lines = list(csv.DictReader(io.StringIO(report(source, "--reports", "expert_systems").stdout)))
    assert [line["Problem"] for line in lines] == [row["Problem"] for row in rows]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--reports", "kernel"), "no report kernel; there is tensor, expert_systems."),
        (("--formats", "xml,csv"), "no format xml; there is csv, json."),
        (("--formats", ","), "no format was named"),
    ],
)
def test_what_does_not_exist_is_refused_in_one_sentence(source: Path, options: tuple[str, str], words: str) -> None:
    result = report(source, *options)
    assert result.exit_code == 2
    assert words in result.output


def test_a_folder_that_cannot_be_made_is_said(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = report(source, "--out", tmp_path / "file")
    assert result.exit_code == 2
    assert "cannot be written" in result.output
