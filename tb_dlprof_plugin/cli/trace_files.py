"""Finds the trace files among and below the paths that a user named."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from tb_dlprof_plugin.readers.registry import files_below


def trace_files(paths: Iterable[Path]) -> list[Path]:
    """Files as they are; of directories the traces in all formats that can be read.

    Raises:
        FileNotFoundError: a directory holds none; ``filename`` names it.
    """
    files: list[Path] = []
    for path in paths:
        inside = files_below(path) if path.is_dir() else [path]
        if not inside:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        files += inside
    return list(dict.fromkeys(files))
