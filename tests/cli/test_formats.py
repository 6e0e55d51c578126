"""``--format text|json|csv``: every command that prints a result, on a recorded run."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.cli.main import _SUBCOMMANDS, app

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "demo" / "recorded" / "lenet" / "fp32"
LARGE = ROOT / "demo" / "recorded" / "resnet50" / "fp32"
OLD_RUN = ROOT / "demo" / "recorded" / "custom" / "amp-fp16"
SEVERAL = ROOT / "demo" / "recorded" / "mlp"
TRACE = ROOT / "tests" / "traces" / "cpu_memory.pt.trace.json.gz"
PRINTING = {
    "summary": [RUN],
    "ops": [RUN],
    "op-types": [RUN],
    "modules": [RUN],
    "kernels": [RUN],
    "launches": [RUN],
    "timeline": [RUN],
    "tensor-cores": [RUN],
    "roofline": [RUN],
    "report": [RUN, "--reports", "op_type"],
    "memory": [TRACE],
    "advise": [RUN],
    "compare": [RUN, RUN.parent / "tf32"],
    "predict": [RUN, "--precision", "bf16"],
    "runs": [SEVERAL],
    "sweep": [SEVERAL],
    "import": [TRACE],
    "info": [RUN],
}
"""Commands that print a result, with arguments."""
LISTS = {
    "ops": ("rows", "name"),
    "op-types": ("rows", "op_type"),
    "modules": ("rows", "path"),
    "kernels": ("rows", "name"),
    "launches": ("iterations", "duration_ns"),
    "tensor-cores": ("ops", "gpu_ns"),
    "roofline": ("ops", "flops"),
    "memory": ("rows", "bytes"),
    "advise": ("findings", "rule"),
    "compare": ("ops", "a_ns"),
    "predict": ("ops", "measured_ms"),
}
"""Of those whose CSV is a list in their JSON: the list, and a field of its entries."""
WITHOUT = ("run", "export", "pytorch-views")
"""Commands whose result is files, or another program's output."""


def _run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def _called(command: str, tmp_path: Path, *options: object) -> Result:
    where = ["--logdir", tmp_path / "runs"] if command == "import" else []
    return _run(command, *PRINTING[command], *where, *options)


def _table(text: str) -> list[dict[str, str]]:
    header, *rows = csv.reader(io.StringIO(text))
    assert len(header) == len(set(header))
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_every_command_is_looked_at() -> None:
    assert sorted([*PRINTING, *WITHOUT]) == sorted(_SUBCOMMANDS)


@pytest.mark.parametrize("command", PRINTING)
def test_every_format_is_all_that_goes_to_stdout(command: str, tmp_path: Path) -> None:
    shown = {}
    for output in ("text", "json", "csv"):
        result = _called(command, tmp_path / output, "--format", output)
        assert result.exit_code == 0, result.output
        assert result.stdout
        shown[output] = result.stdout
    data, rows = json.loads(shown["json"]), _table(shown["csv"])
    assert data
    assert rows
    if command in LISTS:
        name, column = LISTS[command]
        assert [row[column] for row in rows] == [_as_text(entry[column]) for entry in data[name]]


def _as_text(value: object) -> str:
    """As CSV has it."""
    return "" if value is None else str(value)


@pytest.mark.parametrize("command", [name for name in PRINTING if name not in ("import", "report")])
def test_the_former_options_still_work_and_no_help_names_them(command: str, tmp_path: Path) -> None:
    former = _called(command, tmp_path, "--json")
    assert former.exit_code == 0
    assert former.stdout == _called(command, tmp_path, "--format", "json").stdout
    shown = _run(command, "--help").stdout
    assert "--json" not in shown
    assert "--csv" not in shown
    assert "--format <text|json|csv>" in shown


def test_the_summary_is_one_row_with_the_name_of_the_run() -> None:
    (row,) = _table(_run("summary", RUN, "--format", "csv").stdout)
    page = json.loads(_run("summary", RUN, "--format", "json").stdout)
    assert (row["run"], row["rank"]) == ("fp32", "0")
    assert float(row["gpu_utilization_percent"]) == page["summary"]["gpu_utilization_percent"]
    assert int(row["average_iteration_ns"]) == page["summary"]["average_iteration_ns"]


def test_unknown_is_an_empty_cell_and_numbers_keep_their_digits() -> None:
    rows = _table(_run("roofline", RUN, "--format", "csv").stdout)
    page = json.loads(_run("roofline", RUN, "--format", "json").stdout)
    for name in ("flops", "flops_per_byte", "percent_of_ceiling"):
        assert [float(row[name]) if row[name] else None for row in rows] == [op[name] for op in page["ops"]]
    # A recording of version 0.1, which does not say how many events its trace had.
    (info,) = _table(_run("info", OLD_RUN, "--format", "csv").stdout)
    page = json.loads(_run("info", OLD_RUN, "--format", "json").stdout)
    assert (page["events"], info["events"], info["kernels"]) == (None, "", str(page["kernels"]))


def test_another_table_is_chosen_by_its_name_and_one_that_is_cut_says_so_on_stderr() -> None:
    result = _run("launches", LARGE, "--format", "csv", "--table", "gaps")
    page = json.loads(_run("launches", LARGE, "--format", "json").stdout)
    assert [int(row["duration_ns"]) for row in _table(result.stdout)] == [gap["duration_ns"] for gap in page["gaps"]]
    assert page["total_gaps"] > len(page["gaps"])
    assert f"Note: The first {len(page['gaps'])} of {page['total_gaps']:,}." in result.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("ops", RUN, "--format", "xml"), "'xml' is not one of 'text', 'json', 'csv'"),
        (("ops", RUN, "--fromat", "json"), "No such option: --fromat"),
        (("ops", RUN, "--format", "csv", "--table", "row"), "no table 'row'; it has rows, coverage."),
        (("ops", RUN, "--table", "rows"), "--table chooses what --format csv prints; add --format csv"),
        (("report", RUN, "--format", "csv"), "--format csv prints one report; name it with --reports."),
        (("report", RUN, "--format", "json", "--output-path", "x"), "--format prints and writes no file;"),
        (("export", RUN, "--json"), "No such option: --json"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_said_in_a_sentence_on_stderr(args: tuple[object, ...], words: str) -> None:
    result = _run(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


def test_several_reports_in_json_are_one_object() -> None:
    both = json.loads(_run("report", RUN, "--reports", "op_type,summary", "--format", "json").stdout)
    for name in ("op_type", "summary"):
        assert both[name] == json.loads(_run("report", RUN, "--reports", name, "--format", "json").stdout)
    text = _run("report", RUN, "--reports", "op_type", "--format", "text").stdout
    assert text.startswith("Op types\n")
    assert both["op_type"][0]["op_name"] in text


def test_what_was_imported_is_told_and_a_trace_that_failed_is_none_of_it(tmp_path: Path) -> None:
    good = shutil.copy(TRACE, tmp_path / "good.pt.trace.json.gz")
    broken = tmp_path / "broken.pt.trace.json"
    broken.write_text("{")
    result = _run("import", good, broken, "--logdir", tmp_path / "runs", "--format", "json")
    assert result.exit_code == 2
    (made,) = json.loads(result.stdout)["profiles"]
    assert (made["run"], made["trace_file"], made["cycle"]) == ("good", "good.pt.trace.json.gz", 0)
    assert Path(made["event_file"]).is_file()
    assert "ends in the middle of the JSON" in result.stderr


def test_scripts_after_run_keep_their_options(tmp_path: Path) -> None:
    script = tmp_path / "show.py"
    script.write_text("import sys\nprint(sys.argv[1:])\n")
    refused = _run("run", "--json", script)
    assert (refused.exit_code, "No such option: --json" in refused.stderr) == (2, True)
