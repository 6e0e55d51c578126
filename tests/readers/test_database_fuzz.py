"""Sound databases, broken in any way: the analysis ends in a profile that agrees with itself, or in one error."""

from __future__ import annotations

import functools
import gzip
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.broken_traces import check
from support.nsys_database import COPY, RANGES, NsysDatabase, thread

from tb_dlprof_plugin.model.profile import Profile

TRACES = Path(__file__).resolve().parents[1] / "traces"
SMALL = [TRACES / "nsys" / f"{name}.sqlite.gz" for name in ("two_kernels", "cuda_graph_whole", "few_columns")]
SMALL.append(TRACES / "nvprof" / "pyprof_markers.nvprof.gz")
ODD_VALUES = st.sampled_from(
    [None, -1, 0, 2**31, 2**62, 2**63 - 1, -(2**63), 1.5, 1e300, "", "x", "12", b"\xff", b"", "\0", "é" * 300]
)


@functools.cache
def sound(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    path=st.sampled_from(SMALL),
    flips=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=16)), max_size=12),
    cut=st.sampled_from([None, None, 0.1, 0.5, 0.97]),
)
def test_a_database_with_other_bytes_gives_a_profile_or_one_error(tmp_path_factory, path, flips, cut) -> None:
    text = bytearray(sound(path))
    for where, new in flips:
        at = int(where * (len(text) - len(new)))
        text[at : at + len(new)] = new
    broken = tmp_path_factory.getbasetemp() / "broken.sqlite"
    broken.write_bytes(text if cut is None else text[: int(cut * len(text))])
    check(broken)


def _whole(path: Path) -> Path:
    database = NsysDatabase(path)
    database.row("TARGET_INFO_GPU", id=0, cuDevice=0, name="GPU", computeMajor=8, computeMinor=0, smCount=10)
    database.row("MPI_RANKS", globalTid=thread(), rank=0)
    for at in range(4):
        database.range(f"aten::mm, seq = {at}, op_id = {at}", at * 10, 9)
        database.launch("k", at * 10 + 1, 100 + at * 10, 5, gridX=1, gridY=1, gridZ=1, blockX=1, blockY=1, blockZ=1)
    database.range("iteration 1", 0, 18)
    database.range("iteration 2", 20, 18)
    copy = database.call(50, 1)
    database.activity(COPY, 200, 5, copy, copyKind=1, srcKind=1, dstKind=2, bytes=4)
    return database.write()


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_database_with_other_values_gives_a_profile_or_one_error(tmp_path_factory, data) -> None:
    path = _whole(tmp_path_factory.getbasetemp() / "values.sqlite")
    with sqlite3.connect(path) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for _ in range(data.draw(st.integers(1, 6))):
            table = data.draw(st.sampled_from([one for one in tables if one != "StringIds"] + [RANGES]))
            columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
            column, rows = data.draw(st.sampled_from(columns)), data.draw(st.sampled_from(["1", "rowid % 2 = 0"]))
            db.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE {rows}', (data.draw(ODD_VALUES),))
    db.close()
    check(path)


@pytest.mark.parametrize("column", ["computeMajor", "computeMinor", "smCount", "totalMemory"])
@pytest.mark.parametrize("value", [-1, 2**31, 2**32, 2**62])
def test_a_figure_of_a_gpu_that_cannot_be_is_as_if_not_recorded(tmp_path: Path, column: str, value: int) -> None:
    path = _whole(tmp_path / "gpu.sqlite")
    with sqlite3.connect(path) as db:
        if column == "totalMemory":
            db.execute("ALTER TABLE TARGET_INFO_GPU ADD COLUMN totalMemory")
        db.execute(f"UPDATE TARGET_INFO_GPU SET {column} = ?", (value,))
    db.close()
    profile = check(path)
    assert isinstance(profile, Profile)
    (gpu,) = profile.system.gpus
    kept = {"computeMajor": gpu.compute_major, "computeMinor": gpu.compute_minor, "smCount": gpu.sm_count}
    found = kept.get(column, gpu.memory_bytes)
    if column == "totalMemory" and 0 <= value <= 2**52:
        assert found == value
    else:
        assert found in (None, 0)
