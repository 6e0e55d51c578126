"""nvprof's databases, made row by row: calls by number, markers in pairs, processes by correlation."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.nvprof.call_names import driver_call, runtime_call
from tb_dlprof_plugin.readers.registry import format_of, read_timelines

KIND = "CUPTI_ACTIVITY_KIND_"


def write(path: Path, rows: dict[str, list[dict[str, Any]]], texts: list[str]) -> Path:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY, value TEXT)")
    db.executemany("INSERT INTO StringTable VALUES (?, ?)", list(enumerate(texts, 1)))
    for table, found in rows.items():
        columns = list(found[0])
        db.execute(f'CREATE TABLE "{KIND}{table}" ({", ".join(f"[{one}]" for one in columns)})')
        marks = ", ".join("?" * len(columns))
        db.executemany(f'INSERT INTO "{KIND}{table}" VALUES ({marks})', [list(row.values()) for row in found])
    db.commit()
    db.close()
    return path


def marker(flags: int, time: int, number: int, name: int, thread: int = 0xEADC3740) -> dict[str, Any]:
    owner = struct.pack("<IIII", 100, thread, 0, 0)
    return {
        "flags": flags,
        "timestamp": time,
        "id": number,
        "objectKind": 2,
        "objectId": owner,
        "name": name,
        "domain": 0,
    }


def call(cbid: int, start: int, correlation: int) -> dict[str, Any]:
    # The thread is written as a signed number there.
    thread = 0xEADC3740 - 2**32
    return {
        "cbid": cbid,
        "start": start,
        "end": start + 5,
        "processId": 100,
        "threadId": thread,
        "correlationId": correlation,
    }


def kernel(start: int, correlation: int, name: int) -> dict[str, Any]:
    return {
        "start": start,
        "end": start + 50,
        "deviceId": 0,
        "contextId": 1,
        "streamId": 7,
        "correlationId": correlation,
        "name": name,
    }


def test_a_kernel_belongs_to_the_marker_around_its_call(tmp_path: Path) -> None:
    rows = {
        "MARKER": [marker(2, 100, 1, 1), marker(4, 200, 1, 0), marker(2, 300, 1, 2), marker(4, 400, 1, 0)],
        "RUNTIME": [call(211, 150, 7), call(211, 350, 8)],
        "CONCURRENT_KERNEL": [kernel(500, 7, 3), kernel(600, 8, 3)],
    }
    path = write(tmp_path / "a.nvprof", rows, ["mm, seq = 1", "relu, seq = 2", "kernel"])
    assert format_of(path).NAME == "nvprof"
    (timeline,) = read_timelines(path)
    names = [timeline.strings[name] for name in timeline.host.name.tolist()]
    # An id that was used again is another range.
    assert names == ["aten::mm", "cudaLaunchKernel", "aten::relu", "cudaLaunchKernel"]
    assert timeline.host.duration_ns.tolist() == [100, 5, 100, 5]
    (profile,) = analyze_ranks(path)
    assert (profile.base_time_unix_ns, profile.launches.attribution.tolist()) == (100, [0, 0])


def test_a_marker_without_an_end_ends_with_the_recording(tmp_path: Path) -> None:
    rows = {"MARKER": [marker(2, 100, 1, 1)], "RUNTIME": [call(211, 150, 7)], "CONCURRENT_KERNEL": [kernel(500, 7, 2)]}
    (timeline,) = read_timelines(write(tmp_path / "a.nvvp", rows, ["mm, seq = 1", "kernel"]))
    assert timeline.host.duration_ns.tolist() == [450, 5]


def test_calls_are_known_by_cupti_s_number() -> None:
    assert [runtime_call(one) for one in (17, 211, 31, 99_999)] == [
        "cudaGetDevice",
        "cudaLaunchKernel",
        "cudaMemcpy",
        "CUDA runtime call 99999",
    ]
    assert [driver_call(one) for one in (307, 1)] == ["cuLaunchKernel", "CUDA driver call 1"]


def test_a_database_without_gpu_work_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "a.nvprof", {"RUNTIME": [call(20, 1, 1)]}, [])
    with pytest.raises(TraceError, match=r"a.nvprof holds no kernel, copy or marker: .* `nvprof -f -o"):
        read_timelines(path)


def test_a_damaged_owner_of_a_marker_is_no_thread(tmp_path: Path) -> None:
    odd = marker(2, 100, 1, 1) | {"objectId": b"\x01"}
    rows = {
        "MARKER": [odd, marker(4, 200, 1, 0)],
        "RUNTIME": [call(211, 150, 7)],
        "CONCURRENT_KERNEL": [kernel(500, 7, 2)],
    }
    (profile,) = analyze_ranks(write(tmp_path / "a.nvprof", rows, ["mm, seq = 1", "kernel"]))
    assert len(profile.launches) == 1
