"""Where the profilers of TensorFlow and JAX write in a log directory: ``plugins/profile/<time>/<host>.xplane.pb``."""

from __future__ import annotations

import os
from pathlib import Path

SESSIONS = ("plugins", "profile")
ENDINGS = (".xplane.pb", ".xplane.pb.gz")

_MOST_DIRECTORIES = 1000
_DEEPEST = 4


def in_session(path: Path) -> bool:
    """Whether a file lies where these profilers write."""
    return path.resolve().parts[-4:-2] == SESSIONS


def sessions_below(logdir: Path) -> list[str]:
    """The names of the sessions in a log directory and in runs of it, sorted; the search ends after some directories.

    What cannot be read is passed over.
    """
    sessions: set[str] = set()
    waiting, seen = [(logdir, 0)], 0
    while waiting and seen < _MOST_DIRECTORIES:
        folder, depth = waiting.pop()
        seen += 1
        sessions |= _sessions_of(folder.joinpath(*SESSIONS))
        if depth < _DEEPEST:
            waiting += [(below, depth + 1) for below in _directories(folder) if below.name != SESSIONS[0]]
    return sorted(sessions)


def _sessions_of(folder: Path) -> set[str]:
    sessions = set()
    for session in _directories(folder):
        try:
            if any(name.endswith(ENDINGS) for name in os.listdir(session)):
                sessions.add(session.name)
        except OSError:
            continue
    return sessions


def _directories(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [folder / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
