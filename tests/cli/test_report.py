"""``tb-dlprof report``: what it prints, which files it writes, what it refuses; and the same from Python."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import tb_dlprof_plugin
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.reports.registry import REPORTS
from tb_dlprof_plugin.reports.tensor import COLUMNS
from tb_dlprof_plugin.reports.tensor import KEYS as TENSOR_KEYS
from tb_dlprof_plugin.store.event_file import write_profile

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "reports.md").read_text()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, training) -> Path:
    folder = tmp_path_factory.mktemp("report") / "fp32"
    write_profile(folder, training("fp32").profile(session="s", facts=RunFacts(unprofiled_before_ns=[1_000_000] * 4)))
    return folder


def report(*args: object) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, args)])


def summary(*args: object) -> dict[str, Any]:
    result = report(*args, "--reports", "summary", "--formats", "json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


class TestFiles:
    def test_one_report_in_one_format_is_printed(self, source: Path) -> None:
        result = report(source, "--reports", "tensor", "--formats", "json")
        assert result.exit_code == 0
        rows = json.loads(result.stdout)
        assert [len(row) for row in rows] == [len(COLUMNS)] * 4
        assert rows[0]["reason"].startswith("Its inputs are FP32; whether TF32 is allowed")
        assert set(TENSOR_KEYS.values()) < set(rows[0])

    def test_files_are_named_as_dlprof_names_them(self, source: Path, tmp_path: Path) -> None:
        folder = tmp_path / "new" / "folder"
        result = report(source, "--reports", "tensor,kernel", "--formats", "json,csv", "--output-path", folder)
        assert result.exit_code == 0
        names = ["dlprof_kernel.csv", "dlprof_kernel.json", "dlprof_tensor.csv", "dlprof_tensor.json"]
        assert sorted(path.name for path in folder.iterdir()) == names
        assert sorted(result.stdout.splitlines()) == [str(folder / name) for name in names]
        assert len(json.loads((folder / "dlprof_tensor.json").read_text())) == 4

    def test_all_reports_go_to_the_working_directory(self, source: Path, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert report(source).exit_code == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"dlprof_{name}.csv" for name in REPORTS)

    def test_a_base_name_begins_the_file_names_and_is_in_the_summary(
        self, source: Path, tmp_path: Path, monkeypatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert report(source, "--reports", "summary", "--base-name", "my run").exit_code == 0
        assert (tmp_path / "my_run_summary.csv").read_text().splitlines()[1] == "Profile Name,my run"

    def test_notes_say_on_stderr_what_could_not_be_had(self, source: Path) -> None:
        result = report(source, "--reports", "iteration")
        assert "Note (iteration): Parameters and Output Shapes are empty" in result.stderr
        assert "Note" not in result.stdout


class TestRange:
    def test_every_table_follows_the_range(self, source: Path) -> None:
        whole, part = summary(source), summary(source, "--iter-start", 6, "--iter-stop", 6)
        assert (whole["iterations"]["start_iteration"], whole["iterations"]["stop_iteration"]) == (5, 7)
        assert (part["iterations"]["total_iterations"], part["iterations"]["aggregated_iterations"]) == (3, 1)
        assert part["summary_report"]["wall_clock_time_ns"] == 1_000_000
        rows = csv.DictReader(io.StringIO(report(source, "--reports", "iteration", "--iter-start", 7).stdout))
        assert {row["Iteration"] for row in rows} == {"7"}

    def test_a_key_node_makes_new_iterations(self, source: Path) -> None:
        found = summary(source, "--key-node", "conv1/conv2d")["iterations"]
        assert (found["total_iterations"], found["start_iteration"], found["stop_iteration"]) == (4, 0, 3)
        assert found["iterations_found_by"] == "key node"
        part = summary(source, "--key-node", "conv1/conv2d", "--iter-start", 1, "--iter-stop", 2)
        assert part["iterations"]["average_iteration_time_ns"] == 1_000_000

    def test_an_op_id_of_the_detail_report_is_a_key_node(self, source: Path) -> None:
        rows = csv.DictReader(io.StringIO(report(source, "--reports", "detail").stdout))
        ids = {row["Op ID"] for row in rows if row["No. Calls"] == "3"}
        assert len(ids) > 4
        for op_id in ids:
            assert summary(source, "--key-node", op_id)["iterations"]["total_iterations"] == 4

    def test_dlprofs_spellings_are_accepted_and_hidden(self, source: Path, tmp_path: Path) -> None:
        result = report(
            source, "--key_node=conv1/conv2d", "--iter_start=1", "--iter_stop=2", "--report", "summary",
            "--file_formats=json", f"--output_path={tmp_path}", "--profile_name=mine",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        assert json.loads((tmp_path / "mine_summary.json").read_text())["iterations"]["start_iteration"] == 1
        words = report("--help").stdout
        assert "--key-node" in words
        assert not re.search("key_node|iter_start|file_formats|profile.name|--out ", words)


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--reports", "kernels"), f"no report kernels; there is {', '.join(REPORTS)}."),
            (("--formats", "xml,csv"), "no format xml; there is csv, json, parquet."),
            (("--formats", ","), "no format was named"),
            (("--iter-start", "1"), "iteration 1 was not recorded; this recording has iterations 5 to 7."),
            (("--iter-start", "7", "--iter-stop", "5"), "the range 7 to 5 is empty"),
            (("--key-node", "global_step"), "there is no op named 'global_step'; called once a step are"),
            (("--base-name", "a/b"), "the base name 'a/b' cannot begin a file name"),
        ],
    )
    def test_what_does_not_exist_is_refused_in_one_sentence(
        self, source: Path, options: tuple[str, ...], words: str
    ) -> None:
        result = report(source, *options)
        assert result.exit_code == 2
        assert words in result.stderr
        assert result.stdout == ""
        assert len(result.stderr.splitlines()) == 1

    def test_a_range_without_iterations_is_refused(self, new_trace, tmp_path: Path) -> None:
        trace = new_trace()
        trace.op("aten::relu", 0, 10)
        result = report(trace.write(), "--iter-start", 2, "--reports", "summary")
        assert result.exit_code == 2
        assert "no iterations were found in this recording" in result.stderr

    def test_a_folder_that_cannot_be_made_is_said(self, source: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        result = report(source, "--output-path", tmp_path / "file")
        assert result.exit_code == 2
        assert "cannot be written" in result.stderr


class TestPython:
    def test_a_read_profile_gives_the_commands_tables(self, source: Path) -> None:
        (run,) = tb_dlprof_plugin.read_profiles(source)
        for name in REPORTS:
            options = {"iter_start": 6, "iter_stop": 7}
            table = run.report(name, **options)
            printed = report(source, "--reports", name, "--iter-start", 6, "--iter-stop", 7).stdout
            assert table.to_csv() == printed
            assert all(len(row) == len(table.columns) for row in table.rows)

    def test_a_trace_has_reports_too(self, training) -> None:
        profile = tb_dlprof_plugin.analyze(training("fp32").write())
        table = tb_dlprof_plugin.report(profile, "iteration", key_node="conv1/conv2d", iter_start=3)
        assert {row[0] for row in table.rows} == {3}

    @pytest.mark.parametrize(
        ("name", "options", "words"),
        [
            ("kernels", {}, "there is no report 'kernels'; there are summary"),
            ("kernel", {"iter_start": 1}, "iteration 1 was not recorded"),
            ("kernel", {"key_node": "x"}, "there is no op named 'x'"),
        ],
    )
    def test_what_does_not_exist_is_a_value_error(self, source: Path, name: str, options: Any, words: str) -> None:
        (run,) = tb_dlprof_plugin.read_profiles(source)
        with pytest.raises(ValueError, match=words):
            run.report(name, **options)


class TestDocument:
    def test_the_python_examples_run(self, monkeypatch, capsys) -> None:
        pytest.importorskip("pandas")
        monkeypatch.chdir(ROOT)
        blocks = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
        assert len(blocks) == 2
        exec("\n".join(blocks), {})
        assert "Kernel Name" in capsys.readouterr().out

    def test_the_commands_run(self, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "runs").mkdir()
        (tmp_path / "runs" / "resnet50").symlink_to(ROOT / "demo" / "recorded" / "resnet50" / "fp32")
        (block,) = re.findall(r"```sh\n(.*?)```", DOCUMENT, re.DOTALL)
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            result = CliRunner().invoke(app, words[1:])
            assert (words[0], result.exit_code) == ("tb-dlprof", 0), result.output
