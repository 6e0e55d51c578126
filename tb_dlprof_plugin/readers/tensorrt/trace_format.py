"""The format of ``trtexec``'s exports: up to three JSON files of an engine, read together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.options import ReadOptions
from tb_dlprof_plugin.readers.tensorrt.files import engine_files, part_of, stem_of

NAME = "tensorrt"
TITLE = "JSON of TensorRT's trtexec (--exportProfile, --exportTimes, --exportLayerInfo)"


def recognises(path: Path) -> bool:
    """Whether trtexec wrote the file."""
    return part_of(path) is not None


def read(path: Path, options: ReadOptions, progress: Callable[[float], None] | None = None) -> list[Timeline]:
    """The Timeline of an engine."""
    from tb_dlprof_plugin.readers.tensorrt.reader import read_tensorrt

    return [read_tensorrt(path)]


def recording_of(path: Path) -> Path:
    """The file that stands for all of an engine."""
    return engine_files(path).first


def run_name(path: Path) -> str:
    """The engine's name, else that of the directory."""
    return stem_of(path) or path.resolve().parent.name


def files_below(folder: Path) -> set[Path]:
    """One file of each engine in a directory and those below it."""
    found: set[Path] = set()
    for pattern in ("*.json", "*.json.gz"):
        for file in folder.rglob(pattern):
            if file.name.startswith(".") or file.name.endswith((".trace.json", ".trace.json.gz")):
                continue
            try:
                if recognises(file):
                    found.add(recording_of(file))
            except TraceError:
                continue
    return found
