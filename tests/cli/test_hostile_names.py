"""Names from outside do not steer the terminal: every command, in every format, on recordings that are full of them."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import pickle
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from rich.text import Text
from support.hostile_names import HOSTILE, STEERS, file_name, hostile_profile, hostile_trace
from support.marks import long
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.cli.commands import COMMANDS, Command
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.cli.visible_console import console
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.logdir import read_profiles

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "demo" / "recorded" / "lenet"
TRACE = ROOT / "tests" / "traces" / "cpu_memory.pt.trace.json.gz"
ANSWERING = [command for command in COMMANDS.values() if not (command.starts_another or command.serves)]


@dataclass(frozen=True)
class Places:
    """Recordings with hostile names; ``runs`` holds ``run`` and ``other``, ``known_gpu`` one whose GPU is ours, ``job``
    has two ranks, ``failure`` is of an allocation."""

    runs: Path
    run: Path
    other: Path
    trace: Path
    known_gpu: Path
    job: Path
    failure: Path


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    runs = tmp_path_factory.mktemp("runs")
    run, other = runs / f"a{file_name()}", runs / f"b{file_name()}"
    write_profile(run, hostile_profile(read_profiles(RECORDED / "fp32")[0].profile))
    write_profile(other, hostile_profile(read_profiles(RECORDED / "tf32")[0].profile, every=True))
    stored = read_profiles(RECORDED / "fp32")[0].profile
    known_gpu = tmp_path_factory.mktemp("known_gpu")
    write_profile(known_gpu, dataclasses.replace(hostile_profile(stored), system=stored.system))
    job = tmp_path_factory.mktemp("jobs") / f"j{file_name()}"
    for rank in range(2):
        one = hostile_profile(stored)
        write_profile(job, dataclasses.replace(one, source=dataclasses.replace(one.source, rank=rank)))
    trace = hostile_trace(TRACE, tmp_path_factory.mktemp("traces"))
    failure = tmp_path_factory.mktemp("failures") / f"{file_name()}.pickle"
    frames = [{"filename": HOSTILE, "line": 1, "name": HOSTILE}]
    block = {"address": 0, "size": 512, "requested_size": 512, "state": "active_allocated", "frames": frames}
    history = [{"action": "oom", "addr": 1024, "size": 4096, "frames": frames, "time_us": 1}]
    segments = [{"device": 0, "address": 0, "total_size": 1024, "segment_type": HOSTILE, "blocks": [block]}]
    failure.write_bytes(pickle.dumps({"segments": segments, "device_traces": [history]}, protocol=4))
    yield Places(runs, run, other, trace, known_gpu, job, failure)
    shutil.rmtree(runs)


def _called(command: Command, places: Places, folder: Path, *options: str) -> Result:
    words = {"RUN": places.run, "OTHER": places.other, "JOB": places.job, "RUNS": places.runs, "TRACE": places.trace}
    if command.name in ("import", "pytorch-views"):
        words |= {"RUNS": folder / f"to{file_name()}"}
        copy = folder / places.trace.name
        shutil.copy(places.trace, copy)
        words |= {"TRACE": copy}
    if command.name == "predict":
        # A forecast needs the rates of the GPU.
        words |= {"RUN": places.known_gpu}
    words |= {"FILE.html": folder / f"file{file_name()}.html", "FILE": places.failure}
    arguments = [str(words.get(word, word)) for word in command.example.split()]
    return CliRunner().invoke(app, [command.name, *arguments, *options])


OUTPUTS = [
    (command, output) if output in ("text", "all") or command.name in ("ops", "compare") else long(command, output)
    for command in ANSWERING
    for output in (
        *(("csv", "json") if command.page or command.prints else ()),
        "text",
        *(("all",) if command.name in ("advise", "runs", "report") else ()),
    )
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "output"), OUTPUTS, ids=lambda value: value if isinstance(value, str) else value.name
)
def test_no_name_reaches_the_terminal_as_it_is(command: Command, output: str, places: Places, tmp_path: Path) -> None:
    options = {"advise": ["--verbose"], "runs": ["--by-model"], "report": ["--output-path", str(tmp_path)]}
    has_formats = bool(command.page or command.prints)
    given = options[command.name] if output == "all" else ["--format", output] if has_formats else []
    result = _called(command, places, tmp_path, *given)
    # A forecast needs ops that were measured, and none has such a name.
    assert result.exit_code == (2 if command.name == "predict" else 0), result.output
    said = result.stdout + result.stderr
    assert STEERS.findall(said) == []
    if output != "csv":  # which puts line ends into quotes
        # A cell of a table may go on in the next line, behind the visible escape.
        lines = said.splitlines()
        assert not [line for before, line in pairwise(lines) if line.startswith("forged") and r"\r\n" not in before]
    if output == "csv" and given:
        assert [row for row in csv.reader(io.StringIO(result.stdout)) for cell in row if cell.startswith("=")] == []


def test_json_has_the_exact_names_and_text_shows_what_they_hold(places: Places, tmp_path: Path) -> None:
    kernels = COMMANDS["kernels"]
    names = [row["name"] for row in json.loads(_called(kernels, places, tmp_path, "--format", "json").stdout)["rows"]]
    assert names
    assert all(name.endswith(HOSTILE) for name in names)
    shown = r"\x1b]0;owned\x07\x1b[2J\x9b31m\x90q\x9c\u202eevil\u2066\r\nforged line\x7f\t\u2028\u200f\x08\x00"
    assert shown in _called(kernels, places, tmp_path).stdout
    in_csv = _called(kernels, places, tmp_path, "--format", "csv").stdout
    assert shown.replace(r"\n", "\n") in in_csv


def test_written_reports_are_as_safe(places: Places, tmp_path: Path) -> None:
    _called(
        COMMANDS["report"],
        places,
        tmp_path,
        "--reports",
        "all",
        "--formats",
        "csv,json",
        "--output-path",
        str(tmp_path),
    )
    files = [path for path in tmp_path.iterdir() if path.suffix in (".csv", ".json")]
    assert len(files) > 20
    for path in files:
        assert STEERS.findall(path.read_text()) == [], path.name


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("summary", [f"/nowhere/{file_name()}"]),
        ("report", ["RUN", "--key-node", f"no{HOSTILE}", "--format", "text"]),
        ("ops", ["RUN", "--session", f"no{HOSTILE}"]),
        ("runs", ["RUNS", "--base", f"no{HOSTILE}"]),
        ("predict", ["RUN", "--precision", f"no{HOSTILE}"]),
        ("ops", ["RUNS"]),
    ],
)
def test_an_error_shows_them_too(command: str, options: list[str], places: Places) -> None:
    words = {"RUN": str(places.run), "RUNS": str(places.runs)}
    result = CliRunner().invoke(app, [command, *(words.get(word, word) for word in options)])
    assert result.exit_code == 2
    assert STEERS.findall(result.stdout + result.stderr) == []
    assert r"\x1b]0;owned" in result.stderr


def test_a_terminal_gets_the_colours_of_the_command_and_nothing_of_a_name() -> None:
    out = io.StringIO()
    terminal = console(80, file=out, force_terminal=True, color_system="standard")
    terminal.print(Text(f"a{HOSTILE}", style="red"), soft_wrap=True)
    own = out.getvalue().replace("\x1b[31m", "").replace("\x1b[0m", "")
    assert STEERS.findall(own) == []
    assert own.count("\n") == 1 or "forged" in own
