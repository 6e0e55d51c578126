"""The start-up benchmark runs to its last line."""

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
