"""``tb-dlprof info``: the accounts of a recording."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.store.event_file import write_profile


def _info(source: Path, *args: str) -> Result:
    return CliRunner().invoke(app, ["info", str(source), *args])


def test_a_trace_and_the_run_made_of_it_say_the_same(training, tmp_path: Path) -> None:
    trace = training()
    event_file = write_profile(tmp_path / "run", trace.profile())
    pages = [json.loads(_info(source, "--format", "json").stdout) for source in (tmp_path / "run", event_file)]
    assert pages[0] == pages[1]
    alone = json.loads(_info(trace.write("t.pt.trace.json"), "--format", "json").stdout)
    same = ("events", "steps", "kernels", "kernel_time_ns", "attributed_kernel_time_ns", "repaired", "notes")
    assert {key: alone[key] for key in same} == {key: pages[0][key] for key in same}


def test_a_directory_with_one_trace_is_read_as_that_trace(training, tmp_path: Path) -> None:
    training(steps=1).write("only.pt.trace.json").rename(tmp_path / "only.pt.trace.json")
    assert "only.pt.trace.json" in _info(tmp_path).stdout


def test_what_was_mended_is_told(new_trace, tmp_path: Path) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 5)
    trace.op("aten::add", 10, -5)
    result = _info(trace.write())
    assert "1 repaired" in result.stdout
    assert "negative duration" in result.stdout
    assert "nothing ran on a GPU" in result.stdout


def _in_sessions(training, folder: Path, *sessions: str) -> Path:
    for steps, session in enumerate(sessions, 2):
        profile = training(steps=steps).profile()
        source = dataclasses.replace(profile.source, session=session)
        write_profile(folder, dataclasses.replace(profile, source=source))
    return folder


@pytest.mark.parametrize("command", ["info", "summary", "ops", "advise", "timeline", "report"])
def test_several_sessions_of_a_run_are_named_and_each_can_be_picked(training, tmp_path: Path, command: str) -> None:
    run = _in_sessions(training, tmp_path / "run", "20260102-a", "20260101-b", "20260103-c")
    more = ["--reports", "summary"] if command == "report" else []
    result = CliRunner().invoke(app, [command, str(run), *more])
    assert result.exit_code == 0
    assert result.stderr.startswith(
        f"tb-dlprof: {run} holds 3 sessions (starts of a training); the newest one, 20260103-c, is shown. "
        "--session NAME picks another: 20260102-a, 20260101-b.\n"
    )
    picked = CliRunner().invoke(app, [command, str(run), *more, "--session", "20260102-a"])
    assert picked.exit_code == 0
    assert "sessions" not in picked.stderr
    assert picked.stdout != result.stdout


def test_the_session_that_is_picked_is_the_one_that_is_read(training, tmp_path: Path) -> None:
    run = _in_sessions(training, tmp_path / "run", "20260102-a", "20260101-b")
    pages = {
        name: json.loads(_info(run, "--session", name, "--format", "json").stdout)
        for name in ("20260102-a", "20260101-b")
    }
    assert {name: (page["session"], page["steps"]) for name, page in pages.items()} == {
        "20260102-a": ("20260102-a", 2),
        "20260101-b": ("20260101-b", 3),
    }
    missing = _info(run, "--session", "20260104-d")
    assert missing.exit_code == 2
    assert "has no session '20260104-d'; it has 20260102-a, 20260101-b." in missing.stderr
    rank = _info(run, "--session", "20260102-a", "--rank", "5")
    assert "has no profile of that rank and cycle in session '20260102-a'." in rank.stderr


def test_a_run_with_one_session_is_shown_without_a_line_about_it(training, tmp_path: Path) -> None:
    assert _info(_in_sessions(training, tmp_path / "run", "20260101-a")).stderr == ""
