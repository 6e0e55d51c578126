"""Shortens a path for a command that is shown."""

from __future__ import annotations

import shlex
from pathlib import Path


def shell_path(path: Path) -> str:
    """Relative to the working directory if it is below it; quoted for a shell."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here)) if path.is_relative_to(here) and path != here else str(path))
