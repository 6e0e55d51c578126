"""The last result of a command is kept for --continue, as long as its script stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.stored_profiles import trial_result

from tb_dlprof_plugin.trial.kept_result import NothingKeptError, keep, kept


def test_a_result_is_kept_for_the_command_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "train.py").write_text("pass")
    result = trial_result()
    result.command = ["train.py", "--lr", "1"]
    keep(result, str(tmp_path))
    assert kept(result.command, str(tmp_path)) == result
    with pytest.raises(NothingKeptError, match="was not tried in this folder"):
        kept(["train.py"], str(tmp_path))
    (tmp_path / "train.py").write_text("pass  # changed")
    with pytest.raises(NothingKeptError, match="has changed"):
        kept(result.command, str(tmp_path))
