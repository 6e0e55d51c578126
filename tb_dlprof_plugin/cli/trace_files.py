"""Finds the trace files among and below the paths that a user named."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from tb_dlprof_plugin.readers.trace_names import ORIGINAL_ENDINGS, ORIGINALS, TAB_ENDINGS, is_copy


def trace_files(paths: Iterable[Path]) -> list[Path]:
    """Files unchanged; for directories their traces as torch wrote them, without copies for the PyTorch Profiler tab.

    Raises:
        FileNotFoundError: a directory holds none; ``filename`` names it.
    """
    files: list[Path] = []
    for path in paths:
        inside = _inside(path) if path.is_dir() else [path]
        if not inside:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        files += inside
    return list(dict.fromkeys(files))


def _inside(folder: Path) -> list[Path]:
    patterns = [f"*{ending}" for ending in TAB_ENDINGS] + [f"{ORIGINALS}/*{ending}" for ending in ORIGINAL_ENDINGS]
    found = {file for pattern in patterns for file in folder.rglob(pattern) if not file.name.startswith(".")}
    return sorted(file for file in found if not is_copy(file))
