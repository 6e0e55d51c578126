"""``--format text|json|csv``: every command that prints a result, on a recorded run."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.marks import short_of
from support.recorded_runs import recorded_view
from support.stored_profiles import trial_result
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.api.page_result import tables_of
from tb_dlprof_plugin.cli.commands import COMMANDS, Command
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.readers.options import ReadOptions
from tb_dlprof_plugin.reports.table import csv_text
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.web.typescript import answers

parquet = pytest.importorskip("pyarrow.parquet")

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "demo" / "recorded" / "lenet" / "fp32"
LARGE = ROOT / "demo" / "recorded" / "resnet50" / "fp32"
OLD_RUN = ROOT / "demo" / "recorded" / "custom" / "amp-fp16"
SEVERAL = ROOT / "demo" / "recorded" / "mlp"
TRACE = ROOT / "tests" / "traces" / "cpu_memory.pt.trace.json.gz"
PRINTING = [command for command in COMMANDS.values() if command.page or command.prints]
OF_RUNS = [command for command in PRINTING if not command.starts_another]
JOB = ROOT / "tests" / "data" / "ranks" / "held_out" / "images_even"
PLACES = {"RUN": RUN, "OTHER": RUN.parent / "tf32", "JOB": JOB, "RUNS": SEVERAL, "TRACE": TRACE}
"""What stands for the words of `Command.example`."""


COMPILED = Path(__file__).parents[1] / "data" / "compiled"


def _run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def _called(command: str, tmp_path: Path, *options: object) -> Result:
    places = PLACES | ({"RUNS": tmp_path / "runs"} if command == "import" else {})
    if command == "tried":
        places["RUN"] = tmp_path / "tried"
        write_profile(places["RUN"], replace(recorded_view(RUN).profile, trial=trial_result()))
    if command == "compiled":
        places["RUN"] = tmp_path / "compiled"
        options_of_trace = ReadOptions(torch_trace=COMPILED / "gpt.reduce-overhead.torch_trace.log.gz")
        trace = COMPILED / "gpt.reduce-overhead.pt.trace.json.gz"
        write_profile(places["RUN"], analyze_trace(trace, options=options_of_trace))
    return _run(command, *(places.get(word, word) for word in COMMANDS[command].example.split()), *options)


def _table(text: str) -> list[dict[str, str]]:
    header, *rows = csv.reader(io.StringIO(text))
    assert len(header) == len(set(header))
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda command: command.name)
def test_a_command_has_formats_where_the_table_says_that_it_prints(command: Command) -> None:
    assert ("--format <text|json|csv|parquet|markdown>" in _run(command.name, "--help").stdout) == (command in PRINTING)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    short_of(OF_RUNS, {"summary", "compare", "distributed", "runs", "import", "report"}, lambda command: command.name),
    ids=lambda command: command.name,
)
def test_every_format_is_all_that_goes_to_stdout(command: Command, tmp_path: Path) -> None:
    shown = {}
    for output in ("text", "json", "csv", "parquet"):
        result = _called(command.name, tmp_path / output, "--format", output)
        assert result.exit_code == 0, result.output
        assert result.stdout_bytes
        shown[output] = result.stdout_bytes
    data, rows = json.loads(shown["json"]), _table(shown["csv"].decode())
    assert data
    table = parquet.read_table(io.BytesIO(shown["parquet"]))
    assert (table.num_rows, table.num_columns) == (len(rows), len(rows[0]))
    if (name := _main_list(command)) and command.name != "sweep":  # whose rows are made of the page's curves
        entries = data[name]
        both = [name for name, value in entries[0].items() if name in rows[0] and not isinstance(value, list | dict)]
        assert both
        assert [[row[name] for name in both] for row in rows] == [
            [_as_text(entry[name]) for name in both] for entry in entries
        ]


@pytest.mark.parametrize(
    "command",
    short_of([one for one in OF_RUNS if one.page], {"ops", "memory", "compare"}, lambda command: command.name),
    ids=lambda command: command.name,
)
def test_the_tables_of_a_command_are_those_of_its_page(command: Command, tmp_path: Path) -> None:
    refused = _called(command.name, tmp_path, "--format", "csv", "--table", "no such table")
    assert refused.exit_code == 2
    assert f"it has {', '.join(_tables(command))}." in refused.stderr


def _tables(command: Command) -> tuple[str, ...]:
    return tables_of(answers()[command.page])


def _main_list(command: Command) -> str:
    """The list in the JSON of which CSV has the rows; "" where it has others."""
    named = re.match(r"`(\w+)`", command.prints)
    return named[1] if named else "" if command.prints else _tables(command)[0]


def _as_text(value: object) -> str:
    """As CSV has it."""
    if isinstance(value, float):
        return str(round(value) if abs(value) >= 1e6 else value)
    return csv_text(value)


@pytest.mark.parametrize(
    "command",
    short_of([one.name for one in OF_RUNS if one.name not in ("import", "report")], {"ops", "memory", "distributed"}),
)
def test_the_former_options_still_work_and_no_help_names_them(command: str, tmp_path: Path) -> None:
    former = _called(command, tmp_path, "--json")
    assert former.exit_code == 0
    assert former.stdout == _called(command, tmp_path, "--format", "json").stdout
    shown = _run(command, "--help").stdout
    assert "--json" not in shown
    assert "--csv" not in shown
    assert "--format <text|json|csv|parquet|markdown>" in shown


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
        (("ops", RUN, "--format", "xml"), "'xml' is not one of 'text', 'json', 'csv', 'parquet'"),
        (("ops", RUN, "--fromat", "json"), "No such option: --fromat"),
        (("ops", RUN, "--format", "csv", "--table", "row"), "no table 'row'; it has rows, coverage."),
        (("ops", RUN, "--table", "rows"), "--table chooses what --format csv or parquet prints; add --format csv"),
        (("report", RUN, "--format", "csv"), "--format csv prints one report; name it with --reports."),
        (("report", RUN, "--format", "json", "--output-path", "x"), "--format prints and writes no file;"),
        (("export", RUN, "--json"), "No such option: --json"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_said_in_a_sentence_on_stderr(args: tuple[object, ...], words: str) -> None:
    result = _run(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


def test_parquet_files_are_written_next_to_the_others(tmp_path: Path) -> None:
    result = _run("report", RUN, "--reports", "kernel", "--formats", "csv,parquet", "--output-path", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dlprof_kernel.csv", "dlprof_kernel.parquet"]
    assert result.stdout.splitlines() == [str(tmp_path / f"dlprof_kernel.{kind}") for kind in ("csv", "parquet")]
    kernels = _table((tmp_path / "dlprof_kernel.csv").read_text())
    assert parquet.read_table(tmp_path / "dlprof_kernel.parquet").num_rows == len(kernels)


@pytest.mark.parametrize("args", [("ops", RUN, "--format", "parquet"), ("report", RUN, "--formats", "csv,parquet")])
def test_without_pyarrow_the_extra_is_named_before_anything_is_written(
    args: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.chdir(tmp_path)
    result = _run(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "pip install pyarrow" in result.stderr
    assert list(tmp_path.iterdir()) == []


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
