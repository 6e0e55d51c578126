"""Reads tables of an untrusted SQLite database into numpy columns, in bounded memory.

The file is opened read-only and immutable: neither it nor its -wal file is touched, and no index is made. Which
columns there are is asked of the database. Nothing of it is trusted: views and virtual tables are no tables here, a
value of another type than asked for counts as missing, and more rows than the file has room for are damage.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import sqlite3
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tb_dlprof_plugin.model.timeline import Ints
from tb_dlprof_plugin.readers.errors import TraceError

MISSING = int(np.iinfo(np.int64).min)
"""Stands for NULL, for a value that is no integer and for a column that the table does not have."""

_BATCH_ROWS = 5_000
_LONGEST_TEXT = 1 << 16
"""Characters that are read of a text: names of template kernels have thousands."""
_LARGEST_VALUE = 1 << 26
"""Bytes of one value or row, from which SQLite refuses it."""
_SMALLEST_ROW = 4
"""Bytes of the file that any row takes: a cell of two bytes and a pointer to it."""


class Database:
    """An open database. Columns are read with `columns`; `close` it, or use it in a ``with`` statement.

    Raises:
        TraceError: it cannot be opened, or its schema is damaged.
    """

    def __init__(self, path: Path, shown: Path, progress: Callable[[float], None] | None = None) -> None:
        """``shown`` is the path that the user knows the file by."""
        self.path, self._shown, self._progress = path, shown, progress
        self.damaged: list[str] = []
        """Tables that could not be read to their end."""
        self.rows_read = 0
        try:
            self._most_rows = path.stat().st_size // _SMALLEST_ROW
            place = urllib.parse.quote(str(path.absolute()))
            self._connection = sqlite3.connect(f"file:{place}?mode=ro&immutable=1", uri=True, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise TraceError(f"{shown} cannot be opened ({error}); check the path and its permissions.") from None
        try:
            self._connection.text_factory = _decoded
            for setting in ("trusted_schema = off", "cell_size_check = on", "mmap_size = 0"):
                self._connection.execute(f"PRAGMA {setting}")
            self._limited = hasattr(self._connection, "setlimit")  # from Python 3.11
            self._careful(True)
            self.tables = self._schema()
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            # SQLite's own message may quote what is damaged.
            self._connection.close()
            raise TraceError(
                f"{shown} is a damaged SQLite database ({error}); copy it again, or export the report again."
            ) from None
        self._expected = 1

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def expect(self, tables: Sequence[str]) -> None:
        """Names the tables that will be read, for the progress."""
        self._expected = max(1, sum(self._last_row(table) for table in tables))

    def has(self, table: str, *columns: str) -> bool:
        """Whether the table exists with all these columns."""
        return table in self.tables and self.tables[table].issuperset(columns)

    def columns(self, table: str, wanted: Sequence[str]) -> dict[str, Ints]:
        """Integer columns of a table, `MISSING` where there is no integer; without rows where there is no table."""
        parts: list[list[Ints]] = [[] for _ in wanted]
        for batch in self.batches(table, wanted):
            for part, column in zip(parts, batch, strict=True):
                part.append(integers(column))
        nothing = np.zeros(0, dtype=np.int64)
        return {name: np.concatenate(part) if part else nothing for name, part in zip(wanted, parts, strict=True)}

    def batches(self, table: str, wanted: Sequence[str], texts: Sequence[str] = ()) -> Iterator[list[Sequence[Any]]]:
        """The rows of a table, some thousand at a time, as one sequence for each of ``wanted`` and ``texts``.

        In ``wanted`` NULL, and what a table has no column for, is None; other values are as SQLite has them. Texts are
        cut to 65,536 characters; where there is none, they are None.
        """
        there = self.tables.get(table)
        if there is None:
            return
        read = 0
        # Plain columns are read in two thirds of the time. What they cannot hold is found on the way, and the rest of
        # the table is then read with care: cut by SQLite, and decoded by us, where a text is too long or broken.
        careful = not self._limited
        self._careful(careful)
        self._connection.text_factory = str  # Most texts are sound, and sqlite3 itself decodes them in half the time.
        try:
            cursor = self._connection.execute(_query(table, wanted, texts, there, careful), (read,))
            while True:
                try:
                    rows = cursor.fetchmany(_BATCH_ROWS)
                except (sqlite3.DataError, sqlite3.OperationalError, UnicodeDecodeError) as error:
                    if careful and (self._connection.text_factory is _decoded or "decode" not in _words(error)):
                        raise
                    careful = True
                    self._careful(True)
                    if "decode" in _words(error):
                        self._connection.text_factory = _decoded
                    cursor = self._connection.execute(_query(table, wanted, texts, there, True), (read,))
                    continue
                if not rows:
                    return
                read += len(rows)
                if read > self._most_rows:
                    self.damaged.append(table)
                    return
                self.rows_read += len(rows)
                if self._progress is not None:
                    self._progress(min(0.99, self.rows_read / self._expected))
                yield list(zip(*rows, strict=True))
        except (sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError):
            self.damaged.append(table)
        finally:
            self._careful(True)
            self._connection.text_factory = _decoded

    def texts(self, table: str, key: str, value: str, wanted: set[int]) -> dict[int, str]:
        """The texts of a table of strings whose keys are wanted."""
        found: dict[int, str] = {}
        for keys, values in self.batches(table, (key,), (value,)):
            found.update(
                (k, v)
                for k, v in zip(keys, values, strict=True)
                if type(k) is int and k in wanted and isinstance(v, str)
            )
        return found

    def pairs(self, table: str, name: str, value: str) -> dict[str, str]:
        """A table of names and values as texts; of a repeated name the first counts."""
        found: dict[str, str] = {}
        for names, values in self.batches(table, (), (name, value)):
            for key, text in zip(names, values, strict=True):
                if isinstance(key, str) and text is not None:
                    found.setdefault(key, str(text))
        return found

    def _careful(self, careful: bool) -> None:
        """Lets SQLite refuse values longer than are kept, or only those that are absurd."""
        if self._limited:
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE if careful else _LONGEST_TEXT)

    def _schema(self) -> dict[str, set[str]]:
        rows = self._connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        plain = [name for name, sql in rows if isinstance(name, str) and isinstance(sql, str) and _is_plain(sql)]
        return {name: self._columns_of(name) for name in plain}

    def _columns_of(self, table: str) -> set[str]:
        # A function with a parameter: the name is a value, whatever it holds.
        found = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
        return {name for (name,) in found if isinstance(name, str)}

    def _last_row(self, table: str) -> int:
        if table not in self.tables:
            return 0
        try:
            (last,) = self._connection.execute(f'SELECT max(rowid) FROM "{table}"').fetchone()
        except sqlite3.Error:
            return 0
        return last if isinstance(last, int) and 0 < last <= self._most_rows else 0


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Without garbage collection: rows and events come as millions of tuples and dicts, none of which has a cycle."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def integers(values: Sequence[Any]) -> Ints:
    """A column of integers; `MISSING` where there is none."""
    if not values or (values[0] is None and values.count(None) == len(values)):
        return np.full(len(values), MISSING, dtype=np.int64)
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        return np.fromiter((v if type(v) is int else MISSING for v in values), np.int64, len(values))


def filled(column: Ints, value: int) -> Ints:
    """The column with another value for what is missing."""
    return np.where(column == MISSING, value, column)


def _query(table: str, wanted: Sequence[str], texts: Sequence[str], there: set[str], careful: bool) -> str:
    # The names are this program's own, and quoted: a database can say which exist, never what is executed.
    parts = [f'"{name}"' if name in there else "NULL" for name in (*wanted, *texts)]
    if careful:
        parts[len(wanted) :] = [f"substr({part}, 1, {_LONGEST_TEXT})" for part in parts[len(wanted) :]]
    return f'SELECT {", ".join(parts)} FROM "{table}" LIMIT -1 OFFSET ?1'


def _words(error: Exception) -> str:
    # The message of a UnicodeDecodeError has no place for words of SQLite's.
    return "decode" if isinstance(error, UnicodeDecodeError) else str(error)


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _is_plain(sql: str) -> bool:
    words = list(itertools.islice(iter(sql.split(None, 2)), 2))
    return [word.upper() for word in words] == ["CREATE", "TABLE"]
