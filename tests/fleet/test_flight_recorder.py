"""Dumps of the flight recorder name the ranks that a job waits for, and number the calls of recordings."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.fleet.flight_recorder import (
    FlightRecordError,
    contradictions,
    dumps_beside,
    ranks_behind,
    read_dump,
    with_sequences,
)
from tb_dlprof_plugin.fleet.rank_facts import Group, RankFacts

TENSOR, DATA = [[0, 1], [2, 3]], [[0, 2], [1, 3]]
GROUPS = {"tp": TENSOR, "dp": DATA}


def dump(rank: int, *calls: tuple[str, int], **other: Any) -> dict[str, Any]:
    """A rank of a 2 x 2 mesh with these calls (group, sequence number), the last of each group not completed."""
    last = dict(calls)
    config = {
        kind: {"name": kind, "desc": f"mesh_{kind}", "ranks": str(next(one for one in GROUPS[kind] if rank in one))}
        for kind in GROUPS
    }
    entries = [
        {
            "process_group": (kind, f"mesh_{kind}"), "collective_seq_id": number, "profiling_name": "nccl:all_reduce",
            "input_sizes": [[8]], "input_dtypes": ["Float"], "is_p2p": False, "time_created_ns": 1000 * number,
            "state": "scheduled" if last[kind] == number else "completed", **other,
        }
        for kind, number in calls
    ]  # fmt: skip
    return {"version": "2.9", "pg_config": config, "entries": entries}


def write(folder: Path, dumps: list[dict[str, Any]]) -> Path:
    for rank, content in enumerate(dumps):
        (folder / f"_dump_{rank}").write_bytes(pickle.dumps(content))
    return folder


def test_the_rank_that_nobody_delays_is_named_and_not_who_waits_for_it(tmp_path: Path) -> None:
    # Rank 3 has not made tp 6; rank 2 waits for it there, and so has not made dp 9, in which rank 0 waits.
    dumps = [
        dump(0, ("tp", 6), ("tp", 7), ("dp", 9)),
        dump(1, ("tp", 7)),
        dump(2, ("dp", 8), ("tp", 6)),
        dump(3, ("tp", 5)),
    ]
    found = ranks_behind(dumps_beside(write(tmp_path, dumps)))
    assert [(one.rank, one.waiting, one.group, one.sequence) for one in found] == [(3, (0, 2), "mesh_tp", 6)]


def test_a_rank_without_any_call_is_behind(tmp_path: Path) -> None:
    found = ranks_behind(dumps_beside(write(tmp_path, [dump(0, ("tp", 4)), dump(1), dump(2), dump(3)])))
    assert [(one.rank, one.waiting) for one in found] == [(1, (0,))]


def test_a_job_in_which_all_have_made_their_calls_waits_for_no_rank(tmp_path: Path) -> None:
    assert ranks_behind(dumps_beside(write(tmp_path, [dump(rank, ("tp", 4)) for rank in range(4)]))) == []


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ({"profiling_name": "nccl:all_gather"}, "COLLECTIVE_TYPE_MISMATCH"),
        ({"input_sizes": [[9]]}, "SIZE_OR_SYNTAX_MISMATCH"),
        ({"input_dtypes": ["Half"]}, "COLLECTIVE_DTYPE_MISMATCH"),
    ],
)
def test_contradictions_have_the_flight_recorders_words(tmp_path: Path, other: dict[str, Any], word: str) -> None:
    (found,) = contradictions(dumps_beside(write(tmp_path, [dump(0, ("tp", 4)), dump(1, ("tp", 4), **other)])))
    assert (found.word, found.group, found.sequence, found.ranks) == (word, "mesh_tp", 4, (0, 1))


def test_json_dumps_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "nccl_trace_rank_2.json"
    path.write_text(json.dumps(dump(2, ("dp", 3))))
    record = read_dump(path)
    assert (record.rank, record.members["dp"], record.calls[0].sequence) == (2, (0, 2), 3)


class _Harm:
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return Path.touch, (Path("harmed"),)  # type: ignore[return-value]


@pytest.mark.parametrize("data", [b"", b"no pickle", pickle.dumps([1]), pickle.dumps({"entries": _Harm()})])
def test_what_is_no_dump_is_refused_and_not_run(tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "_dump_0"
    path.write_bytes(data)
    with pytest.raises(FlightRecordError, match="no dump"):
        read_dump(path)
    assert dumps_beside(tmp_path) == []
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize("value", [7, -1, 10**5000, 0.5, None, "x" * 9999, [[[1]]], [10**30], {}, [{}]], ids=range(10))
@pytest.mark.parametrize(
    "key",
    ["process_group", "profiling_name", "collective_seq_id", "input_sizes", "input_dtypes", "state", "time_created_ns"],
)
def test_a_field_that_is_not_what_it_should_be_is_as_if_absent(tmp_path: Path, key: str, value: Any) -> None:
    dumps = [dump(0, ("tp", 4), **{key: value}), dump(1, ("tp", 4))]
    records = dumps_beside(write(tmp_path, dumps))
    assert [record.rank for record in records] == [0, 1]
    assert len(records[1].calls) == 1
    ranks_behind(records)
    contradictions(records)


def test_a_pickle_of_few_bytes_takes_little_memory(tmp_path: Path) -> None:
    # Its memo is asked for 2**32 places; C's unpickler writes to all of them.
    path = tmp_path / "_dump_0"
    path.write_bytes(b"\x80\x02}r\xff\xff\xff\xffX\x07\x00\x00\x00entries]s.")
    tracemalloc.start()
    try:
        assert read_dump(path).calls == ()
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_list_that_a_pickle_names_again_and_again_is_read_in_time(tmp_path: Path) -> None:
    sizes = [[1] * 1000]
    entry = dump(0, ("tp", 4))["entries"][0]
    content = dump(0) | {"entries": [entry | {"input_sizes": sizes, "collective_seq_id": at} for at in range(10_000)]}
    record = read_dump(write(tmp_path, [content]) / "_dump_0")
    held = sum(len(size) for call in record.calls for size in call.sizes)
    assert 0 < held <= (tmp_path / "_dump_0").stat().st_size
    assert len(record.calls) == 10_000


def test_sequence_numbers_of_a_dump_complete_a_recording(tmp_path: Path, new_rank: Callable[..., RankFacts]) -> None:
    base = 1_700_000_000_000_000_000
    calls = [{"start": at, "end": at + 500} for at in (20_000, 40_000, 60_000)]
    facts = new_rank(0, calls, groups=(Group("tp", "mesh_tp", (0, 1)),))
    content = dump(0, ("tp", 4), ("tp", 5), ("tp", 6))
    for entry, launched in zip(content["entries"], (10_000, 30_000, 50_000), strict=True):
        entry["time_created_ns"] = base + launched - 4_000
    (record,) = dumps_beside(write(tmp_path, [content]))
    assert with_sequences(facts, record).collectives.sequence.tolist() == [4, 5, 6]
