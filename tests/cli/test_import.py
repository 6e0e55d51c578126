"""``tb-dlprof import``: what it makes of traces, and what it leaves alone."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.logdir import read_profiles


@pytest.fixture
def run() -> Callable[..., Result]:
    return lambda *args: CliRunner().invoke(app, ["import", *map(str, args)])


def _traces(training, folder: Path, *names: str) -> list[Path]:
    folder.mkdir(exist_ok=True)
    return [training(steps=1).write(name).rename(folder / name) for name in names]


def test_each_trace_makes_a_run_named_after_its_file(run, training, tmp_path: Path) -> None:
    traces = _traces(training, tmp_path / "old", "w0.17.pt.trace.json", "w1.18.pt.trace.json.gz", "plain.json")
    result = run(*traces, "--logdir", tmp_path / "logdir")
    assert result.exit_code == 0, result.stderr
    assert sorted(path.name for path in (tmp_path / "logdir").iterdir()) == ["plain", "w0.17", "w1.18"]


def test_the_model_can_be_named(run, training, tmp_path: Path) -> None:
    traces = _traces(training, tmp_path / "old", "a.pt.trace.json", "b.pt.trace.json")
    assert run(*traces, "--logdir", tmp_path / "logdir", "--model", " ResNet-50 ").exit_code == 0
    stored = [one for name in "ab" for one in read_profiles(next((tmp_path / "logdir" / name).iterdir()))]
    assert [one.profile.facts.model for one in stored] == ["ResNet-50"] * 2
    refused = run(traces[0], "--logdir", tmp_path / "other", "--model", " ")
    assert refused.exit_code == 2
    assert "--model is empty" in refused.stderr


def test_a_directory_stands_for_the_traces_in_it(run, training, tmp_path: Path) -> None:
    _traces(training, tmp_path / "old", "w0.1.pt.trace.json", "w1.2.pt.trace.json", "named_by_hand.json")
    (tmp_path / "old" / "notes.json").write_text('{"learning_rate": 0.1}')
    assert run(tmp_path / "old", "--logdir", tmp_path / "logdir").exit_code == 0
    assert sorted(path.name for path in (tmp_path / "logdir").iterdir()) == ["named_by_hand", "w0.1", "w1.2"]


def test_files_of_one_name_become_runs_of_their_own(run, training, tmp_path: Path) -> None:
    traces = [_traces(training, tmp_path / name, "trace.json")[0] for name in ("fp32", "amp")]
    assert run(*traces, "--logdir", tmp_path / "logdir").exit_code == 0
    found = {stored.path.parent.relative_to(tmp_path / "logdir").as_posix() for stored in read_profiles(tmp_path)}
    assert found == {"fp32/trace", "amp/trace"}


def test_the_traces_of_one_run_are_cycles_of_one_session_in_order_of_time(run, new_trace, tmp_path: Path) -> None:
    # GIVEN two recordings of one process, named against their order
    traces = []
    for name, base in (("b.pt.trace.json", 1_000), ("a.pt.trace.json", 9_000_000_000)):
        trace = new_trace(baseTimeNanoseconds=base)
        trace.op("aten::mm", 0, 1)
        traces.append(trace.write(name))
    result = run(*reversed(traces), "--logdir", tmp_path, "--run", "old", "--rank", 3)
    assert result.exit_code == 0
    sources = [stored.profile.source for stored in read_profiles(tmp_path / "old")]
    assert [(source.cycle, source.rank, source.trace_file) for source in sources] == [
        (0, 3, "b.pt.trace.json"),
        (1, 3, "a.pt.trace.json"),
    ]
    assert len({source.session for source in sources}) == 1


def test_ranks_of_one_run_stay_ranks(run, new_trace, tmp_path: Path) -> None:
    traces = []
    for rank in (1, 0):
        trace = new_trace(distributedInfo={"rank": rank, "world_size": 2})
        trace.op("aten::mm", 0, 1)
        traces.append(trace.write(f"w{rank}.pt.trace.json"))
    run(*traces, "--logdir", tmp_path, "--run", "ddp")
    sources = [stored.profile.source for stored in read_profiles(tmp_path / "ddp")]
    assert sorted((source.rank, source.cycle) for source in sources) == [(0, 0), (1, 0)]


def test_a_run_that_exists_is_left_alone_unless_forced(run, training, tmp_path: Path) -> None:
    (trace,) = _traces(training, tmp_path / "old", "w.pt.trace.json")
    assert run(trace, "--logdir", tmp_path).exit_code == 0
    before = list((tmp_path / "w").iterdir())
    again = run(trace, "--logdir", tmp_path)
    assert again.exit_code == 2
    assert "already has 1 profile; give another --run, or --force, which removes 1 file" in again.stderr
    assert list((tmp_path / "w").iterdir()) == before
    assert run(trace, "--logdir", tmp_path, "--force").exit_code == 0
    after = list((tmp_path / "w").iterdir())
    assert len(after) == 1
    assert after != before


def test_a_forced_import_that_fails_replaces_nothing(run, training, tmp_path: Path) -> None:
    (trace,) = _traces(training, tmp_path / "old", "w.pt.trace.json")
    run(trace, "--logdir", tmp_path)
    before = list((tmp_path / "w").iterdir())
    trace.write_text("{")
    result = run(trace, "--logdir", tmp_path, "--force")
    assert (result.exit_code, "was left as it is" in result.stderr) == (2, True)
    assert list((tmp_path / "w").iterdir()) == before


def test_one_bad_file_does_not_stop_the_others(run, training, tmp_path: Path) -> None:
    (good,) = _traces(training, tmp_path / "old", "good.pt.trace.json")
    result = run(tmp_path / "missing.json", good, "--logdir", tmp_path / "logdir")
    assert result.exit_code == 2
    assert "missing.json cannot be read" in result.stderr
    assert len(read_profiles(tmp_path / "logdir")) == 1


def test_facts_that_the_hook_read_are_kept(run, training, tmp_path: Path) -> None:
    trace = training(steps=1).write("w0.pt.trace.json")
    profile = analyze_trace(trace, facts=RunFacts(model="Net", cudnn_benchmark=True), session="first", rank=2, cycle=4)
    known = write_profile(tmp_path / "old", profile)
    result = run(trace, "--logdir", tmp_path, "--run", "new", "--facts-from", known)
    assert result.exit_code == 0, result.stderr
    (again,) = read_profiles(tmp_path / "new")
    assert again.profile.facts == profile.facts
    assert (again.profile.source.session, again.profile.source.rank, again.profile.source.cycle) == ("first", 2, 4)


def test_facts_that_are_not_there_are_named(run, training, tmp_path: Path) -> None:
    trace = training(steps=1).write("w0.pt.trace.json")
    result = run(trace, "--logdir", tmp_path, "--facts-from", tmp_path / "nowhere")
    assert (result.exit_code, "nowhere does not exist" in result.stderr) == (2, True)


def test_work_of_over_a_second_shows_a_bar_on_a_terminal(new_trace, tmp_path: Path) -> None:
    # GIVEN a file of 60 MB, and standard error on a terminal
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1.5, "dur": 0, "args": {}}
    text = json.dumps(event | {"filler": "x" * 500})
    path = tmp_path / "large.json"
    with path.open("w") as file:
        file.write('{"traceEvents": [' + text)
        for _ in range(400):
            file.write(", ".join(["", *[text] * 600]))
        file.write("]}")
    shown, terminal = pty.openpty()
    impatient = "from tb_dlprof_plugin.cli import main, progress\nprogress._SILENT_S = 0.05\nmain.app()"
    process = subprocess.Popen(
        [sys.executable, "-c", impatient, "import", path, "--logdir", tmp_path / "out"],
        stderr=terminal,
        stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(terminal)
    seen = b""
    while True:
        try:
            part = os.read(shown, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    assert process.wait(60) == 0
    assert b"large.json" in seen
    assert b"%" in seen
