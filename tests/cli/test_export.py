"""``tb-dlprof export``: the file that it writes, what it says of it, and one sentence for whatever is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.store.event_file import write_profile

ROOT = Path(__file__).resolve().parents[2]


def export(*args: object) -> Result:
    return CliRunner().invoke(app, ["export", *map(str, args)])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, training) -> Path:
    """Two cycles of one rank."""
    folder = tmp_path_factory.mktemp("runs") / "fp32"
    for cycle in (0, 1):
        write_profile(folder, training("fp32").profile(session="s", cycle=cycle))
    return folder


def test_the_file_is_named_after_its_run_and_explains_its_size(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = export(run, "--html")
    assert result.exit_code == 0, result.output
    assert os.listdir() == ["fp32.html"]
    lines = result.stdout.splitlines()
    assert lines[0].startswith("fp32.html: ")
    assert lines[0].endswith("; open it in a browser, it needs no server.")
    assert [line.split(":")[0].strip() for line in lines[1:4]] == ["fp32", "list of runs", "the page itself"]
    assert lines[4:] == ["Not included of fp32: 1 other cycle."]


def test_a_file_that_exists_is_replaced_only_when_told_to(run: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.html"
    target.write_text("mine")
    refused = export(run, "--html", target)
    assert refused.exit_code == 2
    assert refused.stderr == f"tb-dlprof: {target} exists already; give --force to replace it.\n"
    assert target.read_text() == "mine"
    assert export("--html", target, run, "--force", "--title", "Mine & theirs").exit_code == 0
    assert "<title>Mine &amp; theirs</title>" in target.read_text("utf-8")
    assert os.listdir(tmp_path) == ["x.html"]


def test_a_trace_file_is_exported_as_it_is(tmp_path: Path) -> None:
    target = tmp_path / "trace.html"
    result = export(ROOT / "tests/traces/cpu_plain.pt.trace.json.gz", "--html", target)
    assert result.exit_code == 0, result.output
    assert target.stat().st_size > 100_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["RUN"], "choose an output: --html NAME.html writes one HTML file; for tables there is tb-dlprof report"),
        (["--html", "a.html"], "no run is named: give its directory, event file or trace"),
        (["RUN", "--html", "a.html", "b.html"], "2 HTML files are named; name one"),
        (["RUN", "--html", "no/where.html"], "there is no directory no; make it first"),
        (["RUN", "--html", "folder.html"], "folder.html is a directory; name the file to write"),
        (["gone", "--html"], "gone does not exist; give a logdir, a run or an event file"),
        (["empty", "--html"], "empty holds no profile; record one with tb_dlprof_plugin.profile(...)"),
        (["RUN", "--html", "--rank", "7"], "RUN has no profile of that rank and cycle"),
        (["RUN", "--html", "--cycle", "9"], "RUN has no profile of that rank and cycle"),
        (["damaged", "--html"], "is damaged or cut short at byte"),
        (["no.pt.trace.json", "--html"], "no.pt.trace.json"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("empty", "folder.html", "damaged"):
        (tmp_path / folder).mkdir()
    (tmp_path / "no.pt.trace.json").write_text("{")
    whole = next(run.iterdir())
    (tmp_path / "damaged" / whole.name).write_bytes(whole.read_bytes()[:-100])
    before = sorted(os.listdir())
    result = export(*(argument.replace("RUN", str(run)) for argument in arguments))
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("tb-dlprof: ")
    assert sentence.replace("RUN", str(run)) in result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(os.listdir()) == before
