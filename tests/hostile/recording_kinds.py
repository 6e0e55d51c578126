"""Hostile recordings of other profilers: databases of Nsight Systems and nvprof, XPlane files of JAX and TensorFlow."""

from __future__ import annotations

import gzip
import random
import sqlite3
from pathlib import Path
from typing import Any

from hostile.event_files import bytes_changed
from hostile.outcome import LONGEST_S, ROOT, Outcome, Try, timed
from support import broken_traces, hostile_traces
from support.xplane_files import varint

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.xplane.space import read_space
from tb_dlprof_plugin.readers.xplane.xplane_pb2 import XPlane
from tb_dlprof_plugin.store.codec import decode, encode
from tb_dlprof_plugin.store.reclassify import reclassified

_TRACES = ROOT / "tests" / "traces"
_DATABASES = ("nsys/two_kernels", "nsys/cuda_graph_whole", "nsys/few_columns", "nsys/tensorrt_ranges", "nsys/two_ranks")
_SHOWN = 0.02
"""Of the recordings that are let in, about so many all is asked: 0.3 s each."""
_PLACES_SHOWN = ("rowid = 1", "rowid % 2 = 0", "rowid % 7 = 3", "1")
_NUMBERS = (0, 1, -1, 7, 255, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63))


def databases(folder: Path) -> Try:
    """Reads databases with other bytes, values, columns and tables."""
    sound = [gzip.decompress((_TRACES / f"{name}.sqlite.gz").read_bytes()) for name in _DATABASES]
    path = folder / "report.sqlite"

    def one(source: random.Random) -> Outcome:
        data = source.choice(sound)
        if source.random() < 0.4:
            data = bytes_changed(data, source, source.choice((1, 3, 20)))
            path.write_bytes(data if source.random() < 0.8 else data[: source.randrange(len(data))])
        else:
            path.write_bytes(data)
            _change_database(path, source)
        return _read(path, source)

    return one


def _change_database(path: Path, source: random.Random) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA journal_mode = MEMORY")
        for _ in range(source.choice((1, 1, 2, 4, 8))):
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            filled = [name for name in tables if db.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()]
            if not filled:
                break
            table = source.choice(filled)
            columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
            column, rows = source.choice(columns), source.choice(_PLACES_SHOWN)
            try:
                _change_table(db, table, column, rows, source)
            except (sqlite3.Error, OverflowError):  # a key, or a value that SQLite does not take
                continue
    db.close()


def _change_table(db: sqlite3.Connection, table: str, column: str, rows: str, source: random.Random) -> None:
    how = source.random()
    if how < 0.7:
        odd = (None, 1.5, 1e300, float("inf"), "", "x", "12", b"\xff", b"", "\0", "é" * 300, "\x1b[2J", *_NUMBERS)
        db.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE {rows}', (source.choice(odd),))
    elif how < 0.8:
        db.execute(f'UPDATE "{table}" SET "{column}" = (SELECT "{column}" FROM "{table}" LIMIT 1) WHERE {rows}')
    elif how < 0.9:
        db.execute(f'DELETE FROM "{table}" WHERE {rows}')
    elif how < 0.95:
        db.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{column}_"')
    else:
        db.execute(f'DROP TABLE "{table}"')


def xplanes(folder: Path) -> Try:
    """Reads XPlane files with other bytes, and with other numbers, names and events in their planes."""
    files = sorted((ROOT / "tests" / "readers" / "xplane").glob("*.pb.gz"))
    sound = [[_cut(plane) for plane in read_space(file).planes] for file in files]
    path = folder / "host.xplane.pb"

    def one(source: random.Random) -> Outcome:
        planes = source.choice(sound)
        if source.random() < 0.4:
            data = bytes_changed(_space(planes), source, source.choice((1, 3, 20)))
            data = data if source.random() < 0.8 else data[: source.randrange(len(data))]
        else:
            data = _space(_other_planes(planes, source))
        path.write_bytes(gzip.compress(data, 1) if source.random() < 0.05 else data)
        return _read(path, source)

    return one


_MOST_EVENTS = 150


def _cut(plane: XPlane) -> XPlane:
    """A plane with the first events of each line: the same code in a tenth of the time."""
    for line in plane.lines:
        del line.events[_MOST_EVENTS:]
    return plane


def _space(planes: list[XPlane]) -> bytes:
    bodies = [plane.SerializeToString() for plane in planes]
    return b"".join(b"\x0a" + varint(len(body)) + body for body in bodies)


def _other_planes(planes: list[XPlane], source: random.Random) -> list[XPlane]:
    at = source.randrange(len(planes))
    plane = XPlane.FromString(planes[at].SerializeToString())
    for _ in range(source.choice((1, 1, 2, 5, 20))):
        message: Any = plane
        while inner := _inside(message):
            if source.random() < 0.2:
                break
            message = source.choice(inner)
        _change_message(message, source)
    return [*planes[:at], plane, *planes[at + 1 :]]


def _inside(message: Any) -> list[Any]:
    """A few of the messages in a message, of each field the same number: maps of thousands do not hide a line."""
    found: list[Any] = []
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                found += [value[key] for key in list(value)[:40]]
        elif hasattr(value, "__len__"):
            found += list(value)[:40]
        else:
            found.append(value)
    return found


def _change_message(message: Any, source: random.Random) -> None:
    fields = [one for one in message.DESCRIPTOR.fields if one.message_type is None]
    filled = [one for one, _ in message.ListFields()]
    if source.random() < 0.15 and filled:
        message.ClearField(source.choice(filled).name)
        return
    if not fields:
        return
    field = source.choice(fields)
    held = getattr(message, field.name)
    if isinstance(held, (int, float, str, bytes, bool)):
        setattr(message, field.name, _other(held, source, getattr(message, field.name)))
    elif len(held):
        at = source.randrange(len(held))
        held[at] = _other(held[at], source, held[source.randrange(len(held))])


def _other(value: Any, source: random.Random, another: Any) -> Any:
    if source.random() < 0.3:
        return another
    if isinstance(value, bytes):
        return bytes_changed(value, source, source.choice((1, 2, 5)))
    if isinstance(value, str):
        return source.choice(("", "x", "7", "/device:GPU:0", "\x1b[2J", "9" * 400))
    if isinstance(value, float):
        return source.choice((0.0, -1.0, 1e300, float("nan"), float("inf")))
    return source.choice((0, 1, 3, 127, 2**31 - 1))


def _read(path: Path, source: random.Random) -> Outcome:
    """Of one profile that is let in, sometimes all that can be asked about it."""
    profiles: list[Profile] = []

    def read() -> bool:
        try:
            profiles.extend(analyze_ranks(path))
        except TraceError as error:
            if len(str(error).splitlines()) != 1:
                raise AssertionError(f"the refusal is no sentence: {error}") from error
            return False
        for profile in profiles:
            broken_traces.agrees_with_itself(profile)
        return True

    found = timed(read, LONGEST_S)
    if found.faults or not profiles or source.random() > _SHOWN:
        return found
    asked: list[str] = []
    view = ProfileView(reclassified(decode(encode(profiles[0]))))
    found.faults += hostile_traces.faults_of(view, path, False, asked.append)
    found.answers = len(asked)
    return found
