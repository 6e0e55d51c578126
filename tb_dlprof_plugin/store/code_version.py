"""Which code computes a run's figures: what is stored with one code is not shown by another."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_COMPUTES = (
    "advice", "analysis", "metrics", "model", "names", "pages/recorded_run.py", "pages/kept_runs.py", "planning",
    "profile_view.py", "simulation", "store",
)  # fmt: skip
"""What has a part in it. Rules and tables are corrected from version to version, and in between."""
_KINDS = (".py", ".gz")


@functools.cache
def code_version(*more: str) -> str:
    """A hash of that code and of ``more`` packages: 15 ms for 250 files, once in a process."""
    found = hashlib.blake2s(digest_size=12)
    for part in (*_COMPUTES, *more):
        place = _PACKAGE / part
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for file in (one for one in files if one.suffix in _KINDS):
            content = file.read_bytes()
            found.update(f"{file.relative_to(_PACKAGE).as_posix()} {len(content)} ".encode())
            found.update(content)
    return found.hexdigest()
