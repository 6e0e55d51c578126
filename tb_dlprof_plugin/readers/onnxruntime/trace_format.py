"""The format of ONNX Runtime's profiles (``onnxruntime_profile_*.json``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.json_file import head_of
from tb_dlprof_plugin.readers.options import ReadOptions

NAME = "onnxruntime"
TITLE = "a profile of ONNX Runtime (onnxruntime_profile_*.json)"

_BEGINS = re.compile(rb'\s*\[\s*\{[^{}]*"cat"\s*:\s*"(Session|Node|Api)"')
_ENDING = re.compile(r"(?i)\.json(\.gz)?$")


def recognises(path: Path) -> bool:
    """Whether ONNX Runtime wrote the file: its first event is of a session or a node."""
    return _BEGINS.match(head_of(path)) is not None


def read(path: Path, options: ReadOptions, progress: Callable[[float], None] | None = None) -> list[Timeline]:
    """The Timeline of the one session that a profile holds."""
    from tb_dlprof_plugin.readers.onnxruntime.reader import read_onnxruntime

    return [read_onnxruntime(path)]


def run_name(path: Path) -> str:
    """The file's name without its ending."""
    return _ENDING.sub("", path.name) or path.name


def files_below(folder: Path) -> set[Path]:
    """Profiles in a directory and those below it, by the name that ONNX Runtime gives them."""
    found = set()
    for file in folder.rglob("*onnxruntime_profile*.json*"):
        try:
            if _ENDING.search(file.name) and recognises(file):
                found.add(file)
        except TraceError:
            continue
    return found
