"""An option of ours behind the script belongs to the script, and is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.cli.options_behind import sentences

OPTIONS = {"--budget": True, "--copy": False}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["train.py", "--budget", "1m"],
            "--budget 1m goes to train.py, because it stands behind it; put it before",
        ),
        (["train.py", "--budget=1m", "--lr", "1"], "--budget=1m goes to train.py"),
        (["train.py", "--copy", "data"], "--copy goes to train.py"),
        (["train.py", "--budget", "--lr", "1"], "--budget goes to train.py"),
        (["train.py", "--budget", "1m", "--copy"], "--budget 1m and --copy go to train.py, because they stand behind"),
        (["torchrun", "--copy", "train.py"], "--copy goes to torchrun"),
        (["torchrun", "--nproc-per-node", "2", "train.py", "--copy"], "--copy goes to train.py"),
    ],
)
def test_the_option_is_named_with_its_value_and_what_it_goes_to(words: list[str], sentence: str) -> None:
    (said,) = sentences(words, OPTIONS)
    assert said.startswith(sentence)


@pytest.mark.parametrize(
    "words", [["train.py"], ["train.py", "--lr", "1"], ["train.py", "--", "--copy"], ["python", "-m", "train"]]
)
def test_nothing_is_said_of_other_arguments(words: list[str]) -> None:
    assert sentences(words, OPTIONS) == []


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["try", "--remedies", "none", "train.py", "--budget", "1m"], "--budget 1m"),
        (["run", "--delay", "-1", "train.py", "--duration", "3"], "--duration 3"),
        (["run", "--delay", "-1", "train.py", "--iter_start", "3"], "--iter_start 3"),
    ],
    ids=["try", "run", "DLProf's spelling"],
)
def test_commands_that_start_a_script_say_so(
    command: list[str], option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    # Another option is wrong, so that nothing runs.
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert f"tb-dlprof: {option} goes to train.py, because it stands behind it; put it before" in result.stderr


def test_help_behind_the_script_is_the_script_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    result = CliRunner().invoke(app, ["run", "--delay", "-1", "train.py", "--help"])
    assert "stands behind" not in result.stderr
