"""Exports of one report by different versions of nsys give equal profiles, whatever columns and tables they have."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.readers.sqlite_file import unpacked
from tb_dlprof_plugin.store.codec import encode

TRACES = Path(__file__).resolve().parents[1] / "traces" / "nsys"
KERNEL, RUNTIME, RANGES = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"
Change = Callable[[sqlite3.Connection], None]


def columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]


def tables(db: sqlite3.Connection) -> list[str]:
    return [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


def select(db: sqlite3.Connection, table: str, wanted: list[str]) -> None:
    db.execute(f'CREATE TABLE "new" AS SELECT {", ".join(wanted)} FROM "{table}" ORDER BY rowid')
    db.execute(f'DROP TABLE "{table}"')
    db.execute(f'ALTER TABLE "new" RENAME TO "{table}"')


def without(table: str, *names: str) -> Change:
    return lambda db: select(db, table, [f'"{one}"' for one in columns(db, table) if one not in names])


def of_2021(db: sqlite3.Connection) -> None:
    """No export metadata, no enums, no mangled names, no domains of numbers, no call chains."""
    for table in tables(db):
        if table.startswith(("META_DATA", "ENUM_", "DIAGNOSTIC", "TARGET_INFO_CUDA", "ANALYSIS", "CUDA_GRAPH")):
            db.execute(f'DROP TABLE "{table}"')
    without(KERNEL, "mangledName", "sharedMemoryLimitConfig", "greenContextId", "graphNodeId", "launchType")(db)
    without(RUNTIME, "callchainId", "returnValue")(db)
    without(RANGES, "jsonText", "jsonTextId", "binaryData", "category", "color")(db)


def of_2026(db: sqlite3.Connection) -> None:
    """Columns that the reader does not know, and tables of other kinds."""
    select(
        db, KERNEL, [*(f'"{one}"' for one in columns(db, KERNEL)), "7 AS clusterX", "NULL AS graphId", "'x' AS other"]
    )
    db.execute("CREATE TABLE NVTX_PAYLOAD_SCHEMAS (domainId INTEGER, schemaId INTEGER, name TEXT)")
    db.execute("CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER)")


def registered_texts(db: sqlite3.Connection) -> None:
    """All texts of ranges in StringIds."""
    (last,) = db.execute("SELECT max(id) FROM StringIds").fetchone()
    texts = [text for (text,) in db.execute(f"SELECT DISTINCT text FROM {RANGES} WHERE text IS NOT NULL")]
    ids = {text: last + 1 + number for number, text in enumerate(texts)}
    db.executemany("INSERT INTO StringIds (id, value) VALUES (?, ?)", [(n, text) for text, n in ids.items()])
    db.executemany(
        f"UPDATE {RANGES} SET textId = ?, text = NULL WHERE text = ?", [(n, text) for text, n in ids.items()]
    )


def backtraces(db: sqlite3.Connection) -> None:
    """A second row of each call, of class 67."""
    names = columns(db, RUNTIME)
    values = ["67" if one == "eventClass" else f'"{one}"' for one in names]
    quoted = ", ".join(f'"{one}"' for one in names)
    db.execute(f"INSERT INTO {RUNTIME} ({quoted}) SELECT {', '.join(values)} FROM {RUNTIME}")


def other_order(db: sqlite3.Connection) -> None:
    """Rows by their ends, as some versions sort them."""
    for table in (KERNEL, RUNTIME):
        db.execute(f'CREATE TABLE "new" AS SELECT * FROM "{table}" ORDER BY "end", "start"')
        db.execute(f'DROP TABLE "{table}"')
        db.execute(f'ALTER TABLE "new" RENAME TO "{table}"')


def contents(path: Path) -> list[bytes]:
    """The profiles without what tells of the file."""
    result = []
    for profile in analyze_ranks(path, session="s"):
        notes = [note for note in profile.notes if note.code != "nsys_warning"]
        source = replace(profile.source, created_unix_ns=0, trace_file="", trace_events=None)
        result.append(encode(replace(profile, source=source, notes=notes)))
    return result


@pytest.fixture(scope="module")
def expected() -> list[bytes]:
    return contents(TRACES / "emit_nvtx_amp.sqlite.gz")


@pytest.mark.parametrize("change", [of_2021, of_2026, registered_texts, backtraces, other_order])
def test_exports_of_one_report_give_equal_profiles(change: Change, expected: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    with unpacked(TRACES / "emit_nvtx_amp.sqlite.gz") as file:
        path.write_bytes(file.read_bytes())
    db = sqlite3.connect(path)
    change(db)
    db.commit()
    db.close()
    assert contents(path) == expected
