"""Cuts a small database out of one of Nsight Systems: rows that begin in a window of time, with the texts they name.

    python tests/support/nsys_slices.py IN.sqlite[.gz] OUT.sqlite.gz [--from-ms 0] [--to-ms 1e9]

The recordings in ``tests/traces/nsys`` are made so; their README names the window of each.
"""

from __future__ import annotations

import argparse
import gzip
import sqlite3
import tempfile
from pathlib import Path

EVENTS = (
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS", "PROFILER_OVERHEAD",
)  # fmt: skip
WHOLE = (
    "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE", "TARGET_INFO_SESSION_START_TIME", "META_DATA_EXPORT",
    "EXPORT_META_DATA", "MPI_RANKS",
)  # fmt: skip
_SYSTEM = ("CpuCores", "CpuDescription", "NvDriverVersion", "CudaDriverVersion")
_NAMES = ("nameId", "textId", "demangledName", "shortName", "mangledName", "jsonTextId")


def cut(source: Path, target: Path, first_ns: int, last_ns: int) -> None:
    """Writes the slice. Times count from the first event of the file."""
    with tempfile.TemporaryDirectory() as folder:
        unpacked, made = Path(folder) / "in.sqlite", Path(folder) / "out.sqlite"
        raw = source.read_bytes()
        unpacked.write_bytes(gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw)
        db = sqlite3.connect(made)
        db.text_factory = bytes
        db.execute("ATTACH ? AS whole", (str(unpacked),))
        there = {
            name.decode(): sql.decode()
            for name, sql in db.execute("SELECT name, sql FROM whole.sqlite_master WHERE type = 'table'")
        }
        starts = [
            db.execute(f'SELECT min("start") FROM whole."{t}" WHERE "start" >= 0').fetchone()[0]
            for t in EVENTS
            if t in there
        ]
        zero = min(one for one in starts if one is not None) if any(one is not None for one in starts) else 0
        used: set[int] = set()
        for table in (*EVENTS, *WHOLE, "TARGET_INFO_SYSTEM_ENV", "DIAGNOSTIC_EVENT"):
            if table not in there:
                continue
            db.execute(there[table])
            where, values = "", ()
            if table in EVENTS:
                also = ' OR "eventType" = 75' if table == "NVTX_EVENTS" else ""
                where, values = f'WHERE "start" >= ? AND "start" < ?{also}', (zero + first_ns, zero + last_ns)
            elif table == "TARGET_INFO_SYSTEM_ENV":
                where, values = f"WHERE name IN ({', '.join('?' * len(_SYSTEM))})", _SYSTEM
            elif table == "DIAGNOSTIC_EVENT":
                where = "WHERE severity >= 2 AND text LIKE '%CUDA%'"
            db.execute(f'INSERT INTO main."{table}" SELECT * FROM whole."{table}" {where}', values)
            columns = {row[1].decode() for row in db.execute(f'PRAGMA main.table_info("{table}")')}
            for name in columns.intersection(_NAMES):
                used.update(
                    one for (one,) in db.execute(f'SELECT DISTINCT "{name}" FROM main."{table}"') if one is not None
                )
        if "StringIds" in there:
            db.execute(there["StringIds"])
            for one in sorted(used):
                db.execute("INSERT INTO main.StringIds SELECT * FROM whole.StringIds WHERE id = ?", (one,))
        db.commit()
        db.execute("DETACH whole")
        db.execute("VACUUM")
        db.close()
        with open(target, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as packed:
            packed.write(made.read_bytes())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--from-ms", type=float, default=0)
    parser.add_argument("--to-ms", type=float, default=1e9)
    given = parser.parse_args()
    cut(given.source, given.target, round(given.from_ms * 1e6), round(given.to_ms * 1e6))
