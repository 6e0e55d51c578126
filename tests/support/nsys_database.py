"""Databases of Nsight Systems for the tests, row by row, with the columns that the test is about."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path
from typing import Any

PID = 100
KERNEL, COPY, SET = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
RUNTIME, GRAPH, RANGES = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS"


def thread(tid: int = 1, pid: int = PID) -> int:
    """A globalTid."""
    return 1 << 56 | pid << 24 | tid


class NsysDatabase:
    """Rows by table. Times are microseconds here, and nanoseconds in the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._strings: dict[str, int] = {}
        self._correlation = itertools.count(1)

    def row(self, table: str, **values: Any) -> None:
        self.rows.setdefault(table, []).append(values)

    def text(self, value: str) -> int:
        """The id of a text in StringIds."""
        return self._strings.setdefault(value, len(self._strings) + 1)

    def call(
        self,
        start: float,
        length: float,
        correlation: int | None = None,
        *,
        name: str = "cudaLaunchKernel_v7000",
        tid: int = 1,
        pid: int = PID,
        **values: Any,
    ) -> int:
        correlation = next(self._correlation) if correlation is None else correlation
        times = {"start": _ns(start), "end": _ns(start + length)}
        ids = {"globalTid": thread(tid, pid), "correlationId": correlation, "nameId": self.text(name)}
        self.row(RUNTIME, **times, **ids, eventClass=0, **values)
        return correlation

    def activity(
        self, table: str, start: float, length: float, correlation: int, *, pid: int = PID, **values: Any
    ) -> None:
        common = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": thread(0, pid)}
        self.row(table, start=_ns(start), end=_ns(start + length), correlationId=correlation, **(common | values))

    def launch(
        self, name: str, call: float, start: float, length: float, *, tid: int = 1, pid: int = PID, **values: Any
    ) -> int:
        """A call of one microsecond and its kernel."""
        correlation = self.call(call, 1, tid=tid, pid=pid)
        self.activity(KERNEL, start, length, correlation, pid=pid, demangledName=self.text(name), **values)
        return correlation

    def range(
        self, text: str | None, start: float, length: float | None, *, tid: int = 1, pid: int = PID, **values: Any
    ) -> None:
        common = {"eventType": 59, "domainId": 0, "textId": None, "endGlobalTid": None}
        self.row(RANGES, start=_ns(start), end=None if length is None else _ns(start + length), text=text,
                 globalTid=thread(tid, pid), **(common | values))  # fmt: skip

    def domain(self, name: str, number: int, pid: int = PID) -> None:
        self.range(name, 0, None, eventType=75, domainId=number, pid=pid)

    def write(self) -> Path:
        """Makes the file."""
        self.path.unlink(missing_ok=True)
        db = sqlite3.connect(self.path)
        db.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(i, text) for text, i in self._strings.items()])
        for table, rows in self.rows.items():
            columns = list(dict.fromkeys(name for row in rows for name in row))
            db.execute(f'CREATE TABLE "{table}" ({", ".join(f"[{name}]" for name in columns)})')
            marks = ", ".join("?" * len(columns))
            db.executemany(f'INSERT INTO "{table}" VALUES ({marks})', [[row.get(c) for c in columns] for row in rows])
        db.commit()
        db.close()
        return self.path


def _ns(time_us: float) -> int:
    return round(time_us * 1000)
