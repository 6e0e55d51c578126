"""The GitHub Action that compares two runs: its script, run as the action runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.marks import long

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / ".github" / "actions" / "compare-runs"
RECORDED = ROOT / "demo" / "recorded" / "lenet"


def _run(tmp_path: Path, base: str, candidate: str, unsure: str = "false") -> tuple[int, str, str]:
    """Status, summary and outputs."""
    summary, outputs = tmp_path / "summary.md", tmp_path / "outputs"
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "tb-dlprof"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tb_dlprof_plugin.cli.main "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "BASE": base,
        "CANDIDATE": candidate,
        "PERCENT": "5",
        "FAIL_IF_UNSURE": unsure,
        "FOLDER": str(tmp_path / "folder"),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(outputs),
    }
    done = subprocess.run([ACTION / "compare_runs.sh"], env=environment, capture_output=True, text=True, check=False)
    texts = [path.read_text() if path.is_file() else "" for path in (summary, outputs)]
    return done.returncode, *texts


@pytest.mark.parametrize(
    ("base", "candidate", "unsure", "status", "verdict"),
    [
        long("amp-fp16", "fp32", "false", 0, "not_slower"),
        ("fp32", "amp-fp16", "false", 1, "slower"),
        ("fp32", "fp32", "true", 4, "cannot_say"),
    ],
)
def test_the_verdict_is_in_the_summary_the_outputs_and_the_status(
    tmp_path: Path, base: str, candidate: str, unsure: str, status: int, verdict: str
) -> None:
    code, summary, outputs = _run(tmp_path, str(RECORDED / base), str(RECORDED / candidate), unsure)
    assert outputs == f"verdict={verdict}\n"
    assert code == status
    assert "| Where the step goes |" in summary
    folder = tmp_path / "folder"
    assert json.loads((folder / "compare.json").read_text())["regression"]["verdict"] == verdict
    assert (folder / "pair.html").stat().st_size > 100_000


def test_a_run_that_is_not_there_ends_it_and_what_an_input_says_is_no_code(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    code, summary, outputs = _run(tmp_path, f"$(touch {touched})", "missing")
    assert (code, summary, outputs) == (2, "", "")
    assert not touched.exists()
    steps = (ACTION / "action.yml").read_text().split("runs:")[1]
    assert re.findall(r"run: .*\$\{\{", steps) == []
