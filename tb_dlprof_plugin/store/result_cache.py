"""Small results that took long, kept on this machine for this user: a SQLite database in the cache folder.

It may be removed at any time. Where it cannot be read or written, results are computed as if there was none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from tb_dlprof_plugin.model.user_folders import cache_folder

if TYPE_CHECKING:
    import sqlite3

_NAME = "results.sqlite3"
_MOST = 10_000
"""Results; the oldest go first. One has 1 to 5 kB."""
_LONGEST_WAIT_S = 0.2
"""For another process that writes."""
_AT_ONCE = 500
"""Parameters of a query; SQLite before 3.32 takes 999."""


def results_of(keys: Sequence[bytes]) -> dict[bytes, bytes]:
    """What is kept under these keys. Never raises."""
    found: dict[bytes, bytes] = {}
    # A full disk, a home that is read-only or missing, a Python without SQLite: nothing is kept.
    with suppress(Exception), _database() as database:
        for at in range(0, len(keys), _AT_ONCE):
            some = keys[at : at + _AT_ONCE]
            marks = ",".join("?" * len(some))
            found.update(database.execute(f"SELECT key, result FROM results WHERE key IN ({marks})", some))
    return found


def keep_results(results: Mapping[bytes, bytes]) -> None:
    """Keep these, each under its key. Never raises."""
    with suppress(Exception), _database() as database:
        database.executemany("INSERT OR REPLACE INTO results (key, result) VALUES (?, ?)", list(results.items()))
        database.execute("DELETE FROM results WHERE number <= (SELECT max(number) FROM results) - ?", (_MOST,))


@contextmanager
def _database() -> Iterator[sqlite3.Connection]:
    """A connection for one transaction."""
    import sqlite3

    folder = cache_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with closing(sqlite3.connect(folder / _NAME, timeout=_LONGEST_WAIT_S)) as database, database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS results (number INTEGER PRIMARY KEY AUTOINCREMENT, "
            "key BLOB NOT NULL UNIQUE, result BLOB NOT NULL)"
        )
        yield database
