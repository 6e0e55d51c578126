"""The start-up benchmarks run to their last lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_it_prints_the_ratio_last() -> None:
    command = [sys.executable, str(ROOT / "lab/speed/tensorboard_startup.py"), "--pairs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    label, ratio = done.stdout.splitlines()[-1].split(": ")
    assert label == "with / without"
    assert float(ratio) > 0


@pytest.mark.long
def test_the_start_of_commands_is_a_table_against_the_floor() -> None:
    command = [sys.executable, str(ROOT / "lab/speed/startup.py"), "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| `")]
    assert rows[0][0] == "`import numpy, msgspec, typer`"
    assert rows[0][2] == "1.00"
    assert {row[0] for row in rows if row[-1].isdigit()} == {
        "`tb-dlprof --help`", "`tb-dlprof ops --help`", "`tb-dlprof ops RUN`", "`tb-dlprof summary RUN`",
        "`tb-dlprof import TRACE`",
    }  # fmt: skip
