"""`tb-dlprof oom` on a file of the hook next to a run, and on files that it cannot read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.model.out_of_memory import SUMMARY_NAME
from tests.planning.memory.test_smallest_change import DATA, failure, planned


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["oom", *map(str, arguments)])
    return done.exit_code, done.output


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    """A failure in the folder of a run."""
    folder = shutil.copytree(DATA / "held_out" / "bert" / "base", tmp_path / "bert")
    (folder / SUMMARY_NAME.format(stem="rank0.x")).write_bytes(msgspec.json.encode(failure(planned("held_out/bert"))))
    return folder


def test_the_text_names_kind_holders_and_what_would_have_fitted(failed: Path) -> None:
    code, text = run(failed)
    assert code == 0
    assert text.startswith("Too much is held: a request of 64.0 MiB failed, with ")
    for words in ("parameters", "activations and other", "What would have fitted", "--accumulate", "Unexplained: "):
        assert words in text


def test_the_json_has_each_change_with_its_command(failed: Path) -> None:
    code, text = run(next(failed.glob("*.json")), "--format", "json")
    assert code == 0
    page = json.loads(text)
    assert page["kind"] == "too much held"
    assert page["cannot_say"] == ""
    assert page["changes"][0]["command"].startswith(f"tb-dlprof plan {failed} --batch-size ")
    assert all(row["limit_bytes"] > 0 for row in page["changes"])


def test_without_a_run_it_says_how_to_get_one(failed: Path) -> None:
    for event_file in failed.glob("*tfevents*"):
        event_file.unlink()
    code, text = run(failed)
    assert code == 0
    assert "cannot say: no run with memory was recorded with it" in text


def test_a_file_that_is_none_ends_with_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    code, text = run(tmp_path / "x")
    assert code == 2
    assert "is neither a file of the hook" in text
