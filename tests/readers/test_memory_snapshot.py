"""Snapshots of GPU memory: who holds what, why a request failed, and files that want to do harm."""

from __future__ import annotations

import ast
import io
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tb_dlprof_plugin.model.out_of_memory import SUMMARY_NAME, GpuProcess, MemoryHeld, OomSummary, kind_of
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.memory_snapshot import oom_file
from tb_dlprof_plugin.readers.memory_snapshot.blocks import History, held_of, summary_of
from tb_dlprof_plugin.readers.memory_snapshot.in_child import BuiltinsAlone
from tb_dlprof_plugin.readers.memory_snapshot.oom_file import read_oom

MIB = 1 << 20


def block(address: int, size: int, state: str = "active_allocated", **more: Any) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": size, "state": state, **more}


def frame(filename: str, line: int, name: str) -> dict[str, Any]:
    return {"filename": filename, "line": line, "name": name}


def snapshot() -> dict[str, Any]:
    """A segment with a hole, one without a block in use, one of another GPU and a private pool."""
    torch_frame, own_frame = frame("/x/torch/nn/functional.py", 3, "linear"), frame("/home/me/net.py", 7, "forward")
    blocks = [
        block(0, 4 * MIB, frames=[torch_frame, own_frame]),
        block(4 * MIB, 6 * MIB, "inactive"),
        block(10 * MIB, 2 * MIB),
        block(12 * MIB, MIB, "active_pending_free"),
        block(13 * MIB, 7 * MIB, "inactive"),
    ]
    return {
        "segments": [
            {"device": 0, "address": 0, "total_size": 20 * MIB, "segment_pool_id": (0, 0), "blocks": blocks},
            {"device": 0, "address": 1 << 30, "total_size": 2 * MIB, "blocks": [block(1 << 30, 2 * MIB, "inactive")]},
            {
                "device": 0,
                "address": 2 << 30,
                "total_size": MIB,
                "segment_pool_id": (0, 1),
                "blocks": [block(2 << 30, MIB)],
            },
            {"device": 1, "address": 3 << 30, "total_size": 9 * MIB, "blocks": [block(3 << 30, 9 * MIB)]},
        ],
        "device_traces": [
            [
                {"action": "alloc", "addr": 0, "size": 4 * MIB, "time_us": 10},
                {"action": "free_completed", "addr": 0, "size": MIB, "time_us": 20},
                {"action": "oom", "addr": 5 * MIB, "size": 8 * MIB, "time_us": 30, "frames": [torch_frame, own_frame]},
            ],
            [],
        ],
        "allocator_settings": {"expandable_segments": False},
    }


def test_blocks_are_summed_by_holder_and_stack() -> None:
    # The second name lies within its block, as a view of a storage would not, but a flat parameter's part may.
    held = held_of(snapshot(), 0, {0: ("parameter", "fc"), 10 * MIB + 512: ("gradient", "fc")})
    assert (held.allocated, held.reserved) == (8 * MIB, 23 * MIB)
    assert (held.whole_free, held.holes, held.largest_hole) == (2 * MIB, 13 * MIB, 7 * MIB)
    assert {(row.kind, row.module): row.bytes for row in held.rows if row.requested == row.bytes} == {
        ("parameter", "fc"): 4 * MIB,
        ("gradient", "fc"): 2 * MIB,
        ("pending", ""): MIB,
        ("graph_pool", ""): MIB,
    }
    assert [(row.stack, row.bytes) for row in held.stacks] == [(["/home/me/net.py:7 forward"], 4 * MIB)]


def test_a_snapshot_of_torch_says_what_failed_where_and_the_memory_over_time() -> None:
    found = summary_of(snapshot())
    assert (found.requested, found.device_free) == (8 * MIB, 5 * MIB)
    assert found.where == ["/home/me/net.py:7 forward"]
    # It ends at what is allocated: 8 MiB, after 1 was freed.
    assert found.over_time == [(10, 9 * MIB), (20, 9 * MIB)]
    assert kind_of(found) == "fragmented"


def test_fields_that_a_version_lacks_are_unknown() -> None:
    found = summary_of(
        {"segments": [{"total_size": 5, "blocks": [{"size": 5, "state": "active_allocated"}, 3, None]}, 7]}
    )
    assert (found.held.allocated, found.requested) == (5, None)
    assert kind_of(found) is None


def held(**sizes: int) -> MemoryHeld:
    none = {"allocated": 0, "reserved": 0, "whole_free": 0, "holes": 0, "largest_hole": 0}
    return MemoryHeld(device=0, expandable=False, rows=[], stacks=[], sizes=[], **{**none, **sizes})


@pytest.mark.parametrize(
    ("sizes", "own", "kind"),
    [
        ({"requested": 90, "limit": 80}, {}, "one request above everything"),
        ({"requested": 20, "limit": 80}, {"reserved": 75, "holes": 25, "largest_hole": 9}, "fragmented"),
        ({"requested": 20, "limit": 80, "device_free": 500}, {"allocated": 75, "reserved": 75}, "too much held"),
        ({"requested": 20 << 30, "limit": 80 << 30, "device_free": 1 << 30}, {"reserved": 8 << 30}, "another process"),
        ({"requested": 20 << 30, "limit": 80 << 30, "device_free": 1 << 30}, {"reserved": 78 << 30}, "too much held"),
    ],
)  # fmt: skip
def test_a_failure_has_its_kind(sizes: dict[str, int], own: dict[str, int], kind: str) -> None:
    assert kind_of(OomSummary(held=held(**own), **sizes)) == kind


def test_processes_of_others_count_where_the_driver_names_them() -> None:
    process = GpuProcess(7, 40 << 30, own=False)
    sizes = {"requested": 2 << 30, "limit": 41 << 30, "device_free": 1 << 30}
    found = OomSummary(held=held(reserved=1 << 30), processes=[process], **sizes)
    assert kind_of(found) == "another process"


class _Runs:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def pickled(path: Path, content: object) -> Path:
    path.write_bytes(pickle.dumps(content, protocol=4))
    return path


def test_a_pickle_is_read_in_a_process_of_its_own(tmp_path: Path) -> None:
    found = read_oom(pickled(tmp_path / "snapshot.pickle", snapshot()))
    assert found.held.allocated == summary_of(snapshot()).held.allocated


def test_a_pickle_runs_nothing(tmp_path: Path) -> None:
    file = pickled(tmp_path / "bad.pickle", {"segments": [_Runs(tmp_path / "made")]})
    with pytest.raises(TraceError, match=r"asks for \w+\.mkdir, which no snapshot of torch does"):
        read_oom(file)
    assert not (tmp_path / "made").exists()


def test_a_pickle_that_asks_for_gigabytes_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "large.pickle"
    # Eight bytes: a text of 3 GiB follows, which it does not.
    file.write_bytes(b"\x80\x04B" + (3 << 30).to_bytes(4, "little") + b".")
    with pytest.raises(TraceError, match=r"takes more than 1\.0 GiB of memory"):
        oom_file._unpickled(file, memory=1 << 30)


def test_a_pickle_that_takes_hours_is_ended(tmp_path: Path) -> None:
    # A pair of pairs of pairs ..., to be hashed as a key: each of 2^60 parts of it.
    file = tmp_path / "slow.pickle"
    file.write_bytes(b"\x80\x04}N" + 60 * b"2\x86" + b"Ns.")
    with pytest.raises(TraceError, match="memory or 2 seconds"):
        oom_file._unpickled(file, seconds=2)


def long_history(count: int) -> list[dict[str, Any]]:
    """As torch makes one: a stack for each allocation, that both entries of its free share; texts and pools for each
    entry; new stacks on the way; a request that fails with the stack of the segments that were freed for it."""
    frames, found = [frame(f"/home/me/part{n}.py", n, "forward") for n in range(4)], []
    pending: list[Any] = []
    for number in range(count):
        if number % 1000 == 999:
            frames.append(frame(f"/home/me/late{number}.py", number, "late"))
            found.append({"action": "segment_alloc", "addr": number, "size": 9, "stream": 0, "time_us": number})
        stack = [frames[(number + depth) % len(frames)] for depth in range(number % 7)]
        action, size = ("alloc", "free_requested", "free_completed")[number % 3], (number * 7919) % (1 << 33)
        if action == "free_completed":
            stack = pending.pop()
        pending = [stack]
        context = f"{number % 5}/{number % 2}" if number % 4 else "N/A"
        entry = {
            "action": action, "addr": (1 << 46) + number, "size": size, "stream": 0, "time_us": (17 << 46) + number,
            "compile_context": context, "user_metadata": "", "pool_id": (0, number % 300), "frames": stack,
        }  # fmt: skip
        if number % 11 == 0:
            del entry["pool_id"]
        found.append(entry)
    last = [frame("/home/me/net.py", 7, "forward")]
    found.append({"action": "segment_free", "addr": 1, "size": 2, "time_us": 3, "frames": last})
    found.append({"action": "oom", "addr": 5, "size": 8 * MIB, "time_us": 30, "frames": last})
    return found


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_a_long_history_is_reduced_as_it_is_read(
    protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = snapshot()
    # More than the 1000 entries that a pickle appends at once; then what refers to texts in front of them.
    content["device_traces"] = [long_history(9001), long_history(40)[:-1]]
    content["allocator_settings"] = {"action": "alloc", "late": "/home/me/late7999.py"}
    expected = summary_of(content)
    assert expected.where == ["/home/me/net.py:7 forward"]
    assert len(expected.over_time) > 200
    singly: list[object] = []
    add = History.add
    monkeypatch.setattr(History, "add", lambda self, *one: (singly.append(one), add(self, *one)))
    reader = BuiltinsAlone(io.BytesIO(pickle.dumps(content, protocol=protocol)))
    loaded = reader.load()
    assert summary_of(loaded, reader.histories) == expected
    assert [entry["action"] for entry in loaded["device_traces"][0]] == ["oom"]
    assert loaded["allocator_settings"] == content["allocator_settings"]
    # Nearly all are read without becoming objects, where the pickle has frames.
    assert (len(singly) < 200) == (protocol >= 4)
    if protocol == 4:
        assert read_oom(pickled(tmp_path / "long.pickle", content)) == expected


def test_allocated_bytes_over_a_long_history_keep_their_highest() -> None:
    history, level, highest = History(), 0, 0
    source, changes = random.Random(3), []
    for number in range(100_003):
        changes.append(source.randrange(-level, 1000))
        level, highest = level + changes[-1], max(highest, level + changes[-1])
        history.extend([number], changes[-1:])
    points = history.over_time(level + 5)
    assert 200 <= len(points) <= 400
    assert max(size for _, size in points) == highest + 5
    assert points[-1][0] == 100_002
    assert points == history.over_time(level + 5)
    # However many come at once.
    for count in (7, 1000, 30_000, 200_000):
        other = History()
        for at in range(0, len(changes), count):
            some = changes[at : at + count]
            other.extend(list(range(at, at + len(some))), some)
        assert other.over_time(level + 5) == points


def test_mutated_pickles_are_read_or_refused_with_one_sentence(tmp_path: Path) -> None:
    source, whole, refused = random.Random(1), pickle.dumps(snapshot(), protocol=4), []
    for number in range(12):
        changed = bytearray(whole)
        for _ in range(source.choice((1, 3, 30))):
            changed[source.randrange(2, len(changed))] = source.randrange(256)
        file = tmp_path / f"{number}.pickle"
        file.write_bytes(bytes(changed))
        try:
            assert oom_file._unpickled(file, seconds=10, memory=1 << 30).held.reserved >= 0
        except TraceError as error:
            refused.append((file, str(error)))
    assert all(text.startswith(f"{file} is not read as a memory snapshot of torch: ") for file, text in refused)
    assert refused
    assert not any("\n" in text for _, text in refused)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is neither a file of the hook"),
        (b'{"format": "x"}', "is neither a file of the hook"),
        (msgspec.json.encode(OomSummary(held=held(), limit=-1)), "is neither a file of the hook"),
        (b'{"format": "tb_dlprof out of memory 9", "held": {}}', "is neither a file of the hook"),
    ],
)
def test_another_file_is_named_as_none(tmp_path: Path, content: bytes, why: str) -> None:
    file = tmp_path / SUMMARY_NAME.format(stem="x")
    file.write_bytes(content)
    with pytest.raises(TraceError, match=why):
        read_oom(file)


def test_a_folder_without_a_file_says_how_to_record_one(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="run --oom"):
        read_oom(tmp_path)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.long)])
def test_mutated_snapshots_run_nothing_and_end_with_a_sentence(count: int, tmp_path: Path) -> None:
    script, marker = Path(__file__).with_name("mutated_snapshots.py"), tmp_path / "ran"
    done = subprocess.run([sys.executable, script, str(count), "7", marker], capture_output=True, text=True, check=True)
    found = ast.literal_eval(done.stdout)
    assert sum(found.values()) == count
    assert min(found["read"], found["refused"], found["damaged"]) > 0
    assert not marker.exists()
