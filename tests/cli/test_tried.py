"""``tb-dlprof tried``: the result of a trial on the terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from support.recorded_runs import DEMO, recorded_view
from support.stored_profiles import trial_result
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.store.event_file import write_profile


def test_gains_reasons_and_the_patch_are_printed(tmp_path: Path) -> None:
    write_profile(tmp_path, replace(recorded_view(DEMO / "lenet" / "fp32").profile, trial=trial_result()))
    result = CliRunner().invoke(app, ["tried", str(tmp_path)])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "TF32 for matrix products and convolutions: a step takes 31.5 % less time (30.9 to 32.1 %)."
    assert "compile: failed: RuntimeError: no compiler was found" in lines
    assert lines[-2:] == ["--- a/train.py", "+++ b/train.py"]


def test_a_run_without_a_trial_says_so() -> None:
    result = CliRunner().invoke(app, ["tried", str(DEMO / "lenet" / "fp32")])
    assert result.stdout.splitlines()[0] == "No remedy was tried with this run as the baseline."
