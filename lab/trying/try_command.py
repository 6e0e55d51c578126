"""Runs `tb-dlprof try` in a process of its own, for at most so long."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PROGRAM = ("-m", "tb_dlprof_plugin.cli.main")


def try_result(
    arguments: Sequence[str], longest_s: float, folder: Path | None = None, program: Sequence[str] = _PROGRAM
) -> dict[str, Any]:
    """The JSON of ``tb-dlprof try``, or ``{"error": ...}``; ended as by Ctrl-C after ``longest_s``. ``program`` is what
    Python runs."""
    command = [sys.executable, "-W", "ignore", *program, "try", "--format", "json", *arguments]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)
    try:
        out, err = process.communicate(timeout=longest_s)
    except subprocess.TimeoutExpired:
        # As Ctrl-C: it prints what it knows.
        process.terminate()
        out, err = process.communicate()
    try:
        return dict(json.loads(out))
    except ValueError:
        return {"error": "\n".join(err.strip().splitlines()[-5:])}
