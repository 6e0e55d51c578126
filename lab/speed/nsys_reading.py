"""How long reading a database of Nsight Systems takes, against ``SELECT *`` over the same tables.

A recorded database is multiplied until it has the given size: each copy's times and correlation ids lie behind those of
the copy before. Both sides run in processes of their own, in turn; the least CPU time of each counts. Bound: 1.5 times.

    python lab/speed/nsys_reading.py [--megabytes 100] [--repeat 3] [DATABASE.sqlite[.gz]]
"""

from __future__ import annotations

import argparse
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tb_dlprof_plugin.readers.nsys.tables import ALL
from tb_dlprof_plugin.readers.registry import read_timelines
from tb_dlprof_plugin.readers.sqlite_file import unpacked

RECORDED = Path(__file__).resolve().parents[2] / "tests" / "traces" / "nsys" / "emit_nvtx_amp.sqlite.gz"
_TIMES = ("start", "end")
_IDS = ("correlationId",)
_BATCH = 20_000


def multiply(source: Path, target: Path, megabytes: float) -> None:
    """Writes a database of about this size."""
    with unpacked(source) as file:
        target.write_bytes(file.read_bytes())
    db = sqlite3.connect(target)
    db.execute("PRAGMA journal_mode = off")
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    events = [
        table
        for table in ALL
        if table in tables - {"StringIds"} and db.execute(f'SELECT max("end") FROM "{table}"').fetchone()[0]
    ]
    first = min(db.execute(f'SELECT min("start") FROM "{table}"').fetchone()[0] for table in events)
    last = max(db.execute(f'SELECT max("end") FROM "{table}"').fetchone()[0] for table in events)
    most = max(
        db.execute(f'SELECT max("correlationId") FROM "{table}"').fetchone()[0] or 0
        for table in events
        if table.startswith("CUPTI")
    )
    rows = {table: db.execute(f'SELECT max(rowid) FROM "{table}"').fetchone()[0] or 0 for table in events}
    before = target.stat().st_size
    copies = max(1, round(megabytes * 1e6 / before))
    for copy in range(1, copies):
        for table in events:
            columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
            values = [_later(name, copy, last - first, most) for name in columns]
            db.execute(
                f'INSERT INTO "{table}" SELECT {", ".join(values)} FROM "{table}" WHERE rowid <= ?', (rows[table],)
            )
    db.commit()
    db.close()


def _later(column: str, copy: int, span_ns: int, ids: int) -> str:
    if column in _TIMES:
        return f'"{column}" + {copy * span_ns}'
    if column in _IDS:
        return f'"{column}" + {copy * ids}'
    # Texts of ops have their numbers in them, so that each is another.
    return f"replace(\"text\", 'op_id = ', 'op_id = {copy}')" if column == "text" else f'"{column}"'


def select_all(path: Path) -> int:
    """Every row of the tables that the reader reads; the number of rows."""
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    count = 0
    for table in ALL:
        if table in there:
            cursor = db.execute(f'SELECT * FROM "{table}"')
            while rows := cursor.fetchmany(_BATCH):
                count += len(rows)
    return count


def _one(what: str, path: Path) -> None:
    begin = time.process_time()
    rows = select_all(path) if what == "select" else sum(timeline.events for timeline in read_timelines(path))
    seconds = time.process_time() - begin
    print(seconds, rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    """Prints both times, the memory of each, and the ratio last."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("database", type=Path, nargs="?", default=RECORDED)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=("select", "read"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        _one(given.only, given.database)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "multiplied.sqlite"
        multiply(given.database, path, given.megabytes)
        best: dict[str, tuple[float, ...]] = {}
        for _ in range(given.repeat):
            for what in ("select", "read"):
                line = [sys.executable, __file__, str(path), "--only", what]
                found = tuple(
                    map(float, subprocess.run(line, capture_output=True, text=True, check=True).stdout.split())
                )
                best[what] = min(best.get(what, found), found)
        size = path.stat().st_size / 1e6
    for what, (seconds, rows, megabytes) in best.items():
        print(f"{what:<7} {size:.0f} MB, {rows:,.0f} rows: {seconds:.2f} s, at most {megabytes:.0f} MiB")
    print(f"ratio {best['read'][0] / best['select'][0]:.2f}")


if __name__ == "__main__":
    main()
