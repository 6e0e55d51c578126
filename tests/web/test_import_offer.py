"""The list of runs names the command that imports what TensorFlow's and JAX' profilers wrote into the log directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.xplane_files import Space
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.readers.log_directory import sessions_below
from tb_dlprof_plugin.web.run_index import _import_command

SESSION = "2026_01_02_03_04_05"


def _logdir(tmp_path: Path, *runs: str) -> Path:
    logdir = tmp_path / "log dir"
    for run in runs:
        space = Space()
        gpu = space.plane("/device:GPU:0")
        gpu.event("Stream #1", "kernel", 1, 1, hlo_op="fusion.1", hlo_module="jit_f")
        space.write(logdir / run / "plugins" / "profile" / SESSION / "host.xplane.pb")
    logdir.mkdir(exist_ok=True)
    return logdir


def test_the_command_is_named_until_it_has_run_and_does_what_is_said(tmp_path: Path) -> None:
    logdir = _logdir(tmp_path, "", "train")
    assert sessions_below(logdir) == [SESSION]
    assert _import_command(str(logdir), []) == f"tb-dlprof import '{logdir}' --logdir '{logdir}'"
    result = CliRunner().invoke(app, ["import", str(logdir), "--logdir", str(logdir)])
    assert result.exit_code == 0, result.output
    runs = sorted(str(path.parent.relative_to(logdir)) for path in logdir.rglob("*tfevents*"))
    assert runs == [SESSION, f"train/{SESSION}"]
    assert _import_command(str(logdir), runs) == ""


@pytest.mark.parametrize("logdir", ["", "gs://bucket/runs", "/does/not/exist"])
def test_what_is_no_local_directory_has_no_command(logdir: str) -> None:
    assert _import_command(logdir, []) == ""


def test_a_directory_without_sessions_has_no_command(tmp_path: Path) -> None:
    assert _import_command(str(_logdir(tmp_path)), []) == ""
