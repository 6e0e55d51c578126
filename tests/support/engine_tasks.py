"""Functions that an engine's processes import: some die, once or always."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def work(task: tuple[str, str]) -> str:
    """Of a task's kind: "square N", "raise", "die" (always) or "die once", where a file in the folder says so.

    A task is a kind and a folder.
    """
    kind, folder = task
    if kind == "raise":
        raise ValueError("no such thing")
    if kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "die once":
        died = Path(folder, "died")
        if not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "alive"
    return str(int(kind.removeprefix("square ")) ** 2)
