"""The formats of Nsight Systems: ``nsys export --type sqlite``, plain or gzip, and reports (.nsys-rep, .qdrep).

Databases are recognised by their tables; reports, which are closed, by their names, and are converted by the nsys that
the user has (`report_file`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.options import ReadOptions
from tb_dlprof_plugin.readers.sqlite_file import DATABASE_ENDINGS, is_sqlite, unpacked

if TYPE_CHECKING:
    from tb_dlprof_plugin.readers.sqlite_tables import Database

NAME = "nsys"
TITLE = "a database or report of Nsight Systems (*.sqlite, *.sqlite.gz, *.nsys-rep, *.qdrep)"

REPORT_ENDINGS = (".nsys-rep", ".qdrep")
UNFINISHED = ".qdstrm"
_STRINGS = "StringIds"
_ENDING = re.compile(r"(\.nsys-rep|\.qdrep|\.sqlite|\.sqlite3|\.db)?(\.gz)?$")


def recognises(path: Path) -> bool:
    """Whether a file is a report, or a database with tables of Nsight Systems.

    A SQLite file whose tables cannot be listed counts as one: `read` says what is wrong with it.

    Raises:
        TraceError: the file cannot be opened or read.
    """
    if is_report(path):
        return True
    if not is_sqlite(path):
        return False
    from tb_dlprof_plugin.readers.sqlite_tables import Database

    try:
        with unpacked(path) as file, Database(file, path) as database:
            tables = database.tables
            known = any(name.startswith(("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "TARGET_INFO_")) for name in tables)
            return "StringTable" not in tables and (known or _STRINGS in tables)
    except TraceError:
        return True


def read(path: Path, options: ReadOptions, progress: Callable[[float], None] | None = None) -> list[Timeline]:
    """The Timelines of a report's processes."""
    from tb_dlprof_plugin.readers.cupti.timelines import timelines
    from tb_dlprof_plugin.readers.nsys.report_file import exported
    from tb_dlprof_plugin.readers.nsys.tables import read_tables
    from tb_dlprof_plugin.readers.sqlite_tables import Database, collector_paused

    with collector_paused():
        with exported(path) if is_report(path) else unpacked(path) as file, Database(file, path, progress) as database:
            recording = read_tables(database, path)
            nothing = why_nothing(database)
        return timelines(recording, options.markers, nothing)


def is_report(path: Path) -> bool:
    """Whether the name is that of a report; its contents are closed."""
    return path.name.endswith((*REPORT_ENDINGS, UNFINISHED))


def run_name(path: Path) -> str:
    """The file's name without its endings."""
    return _ENDING.sub("", path.name) or path.name


def files_below(folder: Path) -> set[Path]:
    """Reports and databases in a directory and those below it; of a report and its exported database the latter."""
    endings = (*DATABASE_ENDINGS, *REPORT_ENDINGS)
    found = {file for ending in endings for file in folder.rglob(f"*{ending}") if not file.name.startswith(".")}
    databases = {(one.parent, run_name(one)) for one in found if not is_report(one)}
    return {one for one in found if not is_report(one) or (one.parent, run_name(one)) not in databases}


COMMAND = "nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none COMMAND"


def why_nothing(database: Database) -> str:
    """The rest of a sentence that begins with the file's name."""
    if database.has("CUPTI_ACTIVITY_KIND_RUNTIME"):
        return (
            "holds CUDA calls, but no kernel, copy or NVTX range: nothing ran on a GPU while it was recorded, or the "
            f"recording ended before it did; record longer, with {COMMAND}."
        )
    others = [
        words
        for table, words in (("OSRT_API", "calls of the operating system"), ("COMPOSITE_EVENTS", "CPU samples"))
        if database.has(table)
    ]
    only = f"only {' and '.join(others)}" if others else "neither CUDA calls nor NVTX ranges"
    return (
        f"holds {only}: nothing of the GPU was recorded; record again with {COMMAND}, and with "
        "--trace-fork-before-exec=true where other processes of it do the work."
    )
