"""Which files ``trtexec`` wrote of one engine: they have one name but for a word that says what is in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.json_file import head_of

Part = Literal["profile", "times", "layers"]
PARTS: tuple[Part, ...] = ("profile", "times", "layers")

_PATTERNS: dict[Part, re.Pattern[bytes]] = {
    # The count is trtexec's; programs with a profiler of their own often write the layers alone.
    "profile": re.compile(
        rb'\s*\[\s*(\{\s*"count"\s*:\s*\d+\s*\}\s*(,\s*\{\s*"name"\s*:|\])|\{\s*"name"\s*:\s*"[^"]*"\s*,\s*"timeMs"\s*:)'
    ),
    "times": re.compile(rb'\s*\[\s*\{[^{}]*"(startComputeMs|computeMs|startEnqMs)"\s*:'),
    "layers": re.compile(rb'\s*\{\s*"Layers"\s*:\s*\['),
}
_WORD = re.compile(r"(?i)[._-]*(profil\w*|tim(es?|ings?)|graph|layers?([_-]?info)?|latenc\w*)(?=[._-]|$)")
_ENDING = re.compile(r"(?i)\.json(\.gz)?$")
_MOST_FILES = 2000
"""In a directory that is searched for the other files of an engine."""


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """The files of one engine; None where there is none."""

    profile: Path | None
    times: Path | None
    layers: Path | None

    @property
    def first(self) -> Path:
        """The file that stands for the engine."""
        found = self.profile or self.times or self.layers
        assert found is not None
        return found


def part_of(path: Path) -> Part | None:
    """What a file holds; None where trtexec did not write it.

    Raises:
        TraceError: the file cannot be opened or read.
    """
    head = head_of(path)
    return next((part for part in PARTS if _PATTERNS[part].match(head)), None)


def stem_of(path: Path) -> str:
    """The engine's name: the file's without endings and without the word for what it holds."""
    name = _ENDING.sub("", path.name)
    return _WORD.sub("", name).strip("._-") or ""


def engine_files(path: Path) -> EngineFiles:
    """The files of the engine that one of its files belongs to, from the same directory."""
    found: dict[Part, Path] = {}
    part = part_of(path)
    if part is not None:
        found[part] = path
    for other in sorted(path.parent.glob("*.json*"))[:_MOST_FILES]:
        if other == path or not other.is_file() or not _ENDING.search(other.name) or stem_of(other) != stem_of(path):
            continue
        try:
            part = part_of(other)
        except TraceError:
            continue
        if part is not None:
            found.setdefault(part, other)
    return EngineFiles(found.get("profile"), found.get("times"), found.get("layers"))
