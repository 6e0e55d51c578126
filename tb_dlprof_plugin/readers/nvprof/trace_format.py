"""The format of nvprof's databases (``nvprof -o NAME``), as nvvp and PyProf read them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.options import ReadOptions
from tb_dlprof_plugin.readers.sqlite_file import DATABASE_ENDINGS, is_sqlite, unpacked

NAME = "nvprof"
TITLE = "a database of nvprof (*.nvprof, *.nvvp)"

STRINGS = "StringTable"
"""Only nvprof has a table of this name."""
_ENDINGS = (".nvprof", ".nvvp", *DATABASE_ENDINGS)
_ENDING = re.compile(r"(\.nvprof|\.nvvp|\.prof)?(\.sqlite|\.db|\.sql)?(\.gz)?$")
_NOTHING = (
    "holds no kernel, copy or marker: nothing ran on a GPU while nvprof recorded, or it ended before it wrote them; "
    "record again with `nvprof -f -o NAME.nvprof --profile-from-start on COMMAND`."
)


def recognises(path: Path) -> bool:
    """Whether a file is a database with nvprof's tables.

    Raises:
        TraceError: the file cannot be opened or read.
    """
    if not is_sqlite(path):
        return False
    from tb_dlprof_plugin.readers.sqlite_tables import Database

    try:
        with unpacked(path) as file, Database(file, path) as database:
            return STRINGS in database.tables and any(name.startswith("CUPTI_") for name in database.tables)
    except TraceError:
        return False


def read(path: Path, options: ReadOptions, progress: Callable[[float], None] | None = None) -> list[Timeline]:
    """The Timelines of the recorded processes."""
    from tb_dlprof_plugin.readers.cupti.timelines import timelines
    from tb_dlprof_plugin.readers.nvprof.tables import read_tables
    from tb_dlprof_plugin.readers.sqlite_tables import Database, collector_paused

    with unpacked(path) as file, Database(file, path, progress) as database, collector_paused():
        recording = read_tables(database, path)
    return timelines(recording, options.markers, _NOTHING)


def run_name(path: Path) -> str:
    """The file's name without its endings."""
    return _ENDING.sub("", path.name) or path.name


def files_below(folder: Path) -> set[Path]:
    """Databases in a directory and those below it, found by name."""
    return {file for ending in _ENDINGS for file in folder.rglob(f"*{ending}") if not file.name.startswith(".")}
