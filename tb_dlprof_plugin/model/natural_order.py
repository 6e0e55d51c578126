"""Natural sort order of names with numbers."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"(\d+)")


def natural_order(text: str) -> list[tuple[int, int | str]]:
    """A sort key: "run2" before "run10"."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in _DIGITS.split(text) if part]
