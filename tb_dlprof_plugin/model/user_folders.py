"""The folders in which this user's programs keep files (XDG base directories)."""

from __future__ import annotations

import os
from pathlib import Path

_OURS = "tb_dlprof"


def data_folder() -> Path:
    """Of what is not made again: ``$XDG_DATA_HOME/tb_dlprof``, by default below ``~/.local/share``."""
    return _folder("XDG_DATA_HOME", ".local/share")


def cache_folder() -> Path:
    """Of what can be computed again: ``$XDG_CACHE_HOME/tb_dlprof``, by default below ``~/.cache``."""
    return _folder("XDG_CACHE_HOME", ".cache")


def _folder(variable: str, default: str) -> Path:
    named = os.environ.get(variable)
    return (Path(named) if named else Path("~", default).expanduser()) / _OURS
