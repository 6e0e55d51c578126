"""Finds the run or file that was meant by a path that does not exist."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from tb_dlprof_plugin.model.near_names import near_names

_MOST_ENTRIES = 20_000
"""Looked at, of the directory that exists: listing them takes a tenth of a second on a local disk."""
_DEEPER = 2
"""Directories below the place of what was named, in which its files may be."""
_FILES = ("tfevents", ".trace.json")
"""Parts of the names of event files and traces."""


def near_paths(path: Path) -> list[str]:
    """What ``path``, which does not exist, may mean: runs and files with profiles below its nearest existing parent,
    at the same depth. Nearest first; empty if nothing is near."""
    parent = next(above for above in path.parents if above.is_dir())
    wanted = path.relative_to(parent)
    depth = len(wanted.parts)
    known = {"/".join(file.relative_to(parent).parts[:depth]) for file in _files_below(parent, depth)}
    return [str(parent / name) for name in near_names(wanted.as_posix(), known)]


def _files_below(folder: Path, depth: int) -> Iterator[Path]:
    """Event files and traces, at least ``depth`` names below a directory; those that are nearest to it first."""
    seen = 0
    waiting = deque([(folder, 1)])
    while waiting:
        place, level = waiting.popleft()
        try:
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > _MOST_ENTRIES:
                return
            if _is_folder(entry):
                if level < depth + _DEEPER and not entry.name.startswith("."):
                    waiting.append((Path(entry.path), level + 1))
            elif level >= depth and any(part in entry.name for part in _FILES):
                yield Path(entry.path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link into a directory of another user.
        return False
