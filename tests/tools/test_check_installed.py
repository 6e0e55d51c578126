"""The check of an installed package does not pass on the package of the repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_package_of_the_repository_is_not_an_installed_one(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "check_installed.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "not an installed one" in done.stderr
