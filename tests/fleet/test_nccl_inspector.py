"""Recorded ranks without numbers, bytes and groups get them from files of NCCL Inspector."""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin.api.distributed import distributed
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.inspected_calls import with_logs
from tb_dlprof_plugin.fleet.job_files import read_job
from tb_dlprof_plugin.fleet.matching import match
from tb_dlprof_plugin.fleet.nccl_inspector import InspectorError, InspectorLog, logs_beside, read_log
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Group, Operation, RankFacts

RECORDED = Path(__file__).parents[2] / "tests" / "data" / "ranks" / "recorded"
FUNCTIONS = {
    Operation.ALL_REDUCE: "AllReduce",
    Operation.ALL_GATHER: "AllGather",
    Operation.REDUCE_SCATTER: "ReduceScatter",
}
INTERVAL_NS = 500_000
LINE = {
    "header": {"id": "0x7f8c496ae9f661", "rank": 2, "n_ranks": 8, "nnodes": 1},
    "metadata": {
        "inspector_output_format_version": "v4.0", "git_rev": "", "rec_mechanism": "profiler_plugin",
        "dump_timestamp_us": 1748030377748202, "hostname": "node", "pid": 1639453,
    },
    "coll_perf": {
        "coll": "AllReduce", "coll_sn": 1407, "coll_msg_size_bytes": 17179869184, "coll_exec_time_us": 61974,
        "coll_algobw_gbs": 277.210914, "coll_busbw_gbs": 485.119099,
    },
}  # fmt: skip
"""As in NCCL's own description of the format."""


def lines_of(facts: RankFacts, begun: dict[int, int], communicator: str = "0xa1") -> list[dict[str, Any]]:
    """What the plugin writes of a rank: every 0.5 ms the call that ended last, numbered by operation.

    ``begun`` is how many calls of each operation the communicator had made before.
    """
    calls, size = facts.collectives, facts.world_size
    ends = facts.base_ns + calls.start_ns + calls.duration_ns
    number = np.zeros(len(calls), dtype=np.int64)
    for operation, count in begun.items():
        rows = np.flatnonzero(calls.operation == operation)
        number[rows] = count + np.arange(len(rows))
    lines, written = [], -1
    for now in range(int(ends[0]), int(ends[-1]) + INTERVAL_NS, INTERVAL_NS):
        last = int(np.searchsorted(ends, now, side="right")) - 1
        if last <= written:
            continue
        written = last
        operation = Operation(int(calls.operation[last]))
        part = size if operation in (Operation.ALL_GATHER, Operation.REDUCE_SCATTER) else 1
        lines.append(
            {
                "header": {"id": communicator, "rank": facts.rank, "n_ranks": size, "nnodes": 1},
                "metadata": {**LINE["metadata"], "dump_timestamp_us": now // 1000},
                "coll_perf": {
                    "coll": FUNCTIONS[operation],
                    "coll_sn": int(number[last]),
                    "coll_msg_size_bytes": int(calls.bytes[last]) // part,
                    "coll_exec_time_us": int(calls.duration_ns[last]) // 1000,
                    "coll_timing_source": "kernel_gpu",
                    "coll_algobw_gbs": 1.0,
                    "coll_busbw_gbs": 1.0,
                },
            }
        )
    return lines


def write(folder: Path, process: int, lines: Sequence[dict[str, Any]]) -> InspectorLog:
    path = folder / f"node-pid{process}.log"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_log(path)


def without(facts: RankFacts, *columns: str) -> RankFacts:
    unknown = np.full(len(facts.collectives), UNKNOWN, dtype=np.int64)
    return dataclasses.replace(
        facts, collectives=dataclasses.replace(facts.collectives, **dict.fromkeys(columns, unknown))
    )


def test_a_line_of_the_format(tmp_path: Path) -> None:
    gather = {**LINE, "coll_perf": {**LINE["coll_perf"], "coll": "AllGather", "coll_msg_size_bytes": 1000}}
    seen = {
        **LINE["coll_perf"],
        "event_trace_ts": {"kernel_events": [{"channel_id": 0, "kernel_stop_ts": 1748030377740000}]},
    }
    path = tmp_path / "node-pid1639453.log.gz"
    text = "".join(json.dumps(line) + "\n" for line in (LINE, gather, {**LINE, "coll_perf": seen}))
    # The process was killed while it wrote.
    path.write_bytes(gzip.compress((text + json.dumps(LINE)[:100]).encode()))
    (log,) = logs_beside(tmp_path)
    (calls,) = log.communicators
    assert (log.host, log.process, calls.name, calls.rank, calls.members) == ("node", 1639453, "0x7f8c496ae9f661", 2, 8)
    assert calls.operation.tolist() == [Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.ALL_REDUCE]
    assert calls.bytes.tolist() == [17179869184, 8000, 17179869184]
    assert calls.duration_ns.tolist() == [61_974_000] * 3
    assert calls.ended_ns.tolist() == [1748030377748202_000] * 2 + [1748030377740000_000]


@pytest.mark.parametrize(
    "content", ["", "no json\n", '{"header": 1}\n', json.dumps({**LINE, "header": {"id": 3}}) + "\n"]
)
def test_what_the_plugin_did_not_write_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "node-pid1.log"
    path.write_text(content)
    with pytest.raises(InspectorError, match="no collectives"):
        read_log(path)
    (tmp_path / "train.log").write_text(json.dumps(LINE))
    assert logs_beside(tmp_path) == []


@pytest.mark.parametrize("job", ["ddp_slow_gpu", "fsdp_slow_host"])
def test_a_recording_without_groups_numbers_and_bytes_is_answered_as_with_them(tmp_path: Path, job: str) -> None:
    recorded = read_job([RECORDED / job]).facts
    begun = {int(Operation.ALL_REDUCE): 41, int(Operation.ALL_GATHER): 7, int(Operation.REDUCE_SCATTER): 300}
    logs = [write(tmp_path, 100 + one.rank, lines_of(one, begun)) for one in recorded]
    stripped = [dataclasses.replace(without(one, "sequence", "bytes", "group"), groups=()) for one in recorded]
    completed, fitting = with_logs(stripped, logs)
    assert fitting == 2
    assert {group for one in completed for group in one.groups} == {Group("0xa1", "", (0, 1))}
    for before, after in zip(recorded, completed, strict=True):
        known = after.collectives.bytes != UNKNOWN
        assert known.mean() > 0.9
        assert (after.collectives.bytes == before.collectives.bytes)[known].all()
    matched, by_order = match(completed), match(recorded)
    assert (matched.matching.by, by_order.matching.by) == ("sequence", "order")
    assert sorted(zip(matched.rank_index, matched.row, strict=True)) == sorted(
        zip(by_order.rank_index, by_order.row, strict=True)
    )
    assert job_of(completed).delays == job_of(recorded).delays


def test_each_communicator_goes_to_the_group_of_its_members(tmp_path: Path) -> None:
    (first, second) = read_job([RECORDED / "ddp_even"]).facts
    # Every second call on a group of its own, of the same members, in which it is the other one.
    turns = np.arange(len(first.collectives)) % 2
    facts, logs = [], []
    for one in (first, second):
        other = dataclasses.replace(one.collectives, group=turns)
        facts.append(
            dataclasses.replace(one, collectives=other, groups=(Group("0", "", (0, 1)), Group("1", "", (1, 0))))
        )
        lines = []
        for group in (0, 1):
            part = dataclasses.replace(one, collectives=_rows(one, np.flatnonzero(turns == group)))
            of_group = lines_of(part, {int(Operation.ALL_REDUCE): 10 * group}, f"0xa{group}")
            place = one.rank if group == 0 else 1 - one.rank
            lines += [{**line, "header": {**line["header"], "rank": place}} for line in of_group]
        logs.append(lines)
    # Both communicators have all ranks: which is that of global ranks is not known.
    assert with_logs(facts, [write(tmp_path, rank, lines) for rank, lines in enumerate(logs)])[1] == 0
    world = [
        [{**lines[0], "header": {**lines[0]["header"], "id": "0xff", "n_ranks": 4, "rank": rank}}]
        for rank, lines in enumerate(logs)
    ]
    four = [dataclasses.replace(one, world_size=4) for one in facts]
    found, fitting = with_logs(four, [write(tmp_path, rank, lines + world[rank]) for rank, lines in enumerate(logs)])
    assert fitting == 2
    for one in found:
        for group, start in ((0, 0), (1, 10)):
            numbers = one.collectives.sequence[one.collectives.group == group] // len(Operation)
            assert numbers.tolist() == list(range(start, start + len(numbers)))


def test_lines_that_contradict_the_recording_change_nothing(tmp_path: Path) -> None:
    recorded = read_job([RECORDED / "ddp_even"]).facts
    lines = [lines_of(one, {int(Operation.ALL_REDUCE): 0}) for one in recorded]
    for line in lines[0]:
        line["coll_perf"]["coll_msg_size_bytes"] += 4
    found, _ = with_logs(recorded, [write(tmp_path, rank, own) for rank, own in enumerate(lines)])
    assert (found[0].collectives.sequence == UNKNOWN).all()
    assert found[0].collectives.bytes.tolist() == recorded[0].collectives.bytes.tolist()
    assert (found[1].collectives.sequence != UNKNOWN).all()


def test_files_of_another_training_are_named(tmp_path: Path) -> None:
    for path in (RECORDED / "ddp_even").glob("*tfevents*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    folder = tmp_path / "nccl-inspector-4711"
    folder.mkdir()
    write(folder, 1, [LINE])
    job = distributed(tmp_path)
    assert any("NCCL Inspector" in note for note in job.notes)
    assert job.collectives.by == "order"


def _rows(one: RankFacts, rows: Any) -> Any:
    calls = one.collectives
    return dataclasses.replace(
        calls, **{column.name: getattr(calls, column.name)[rows] for column in dataclasses.fields(calls)}
    )


@pytest.mark.parametrize("ending", [b'{"x":' + b"[" * 100_000, b"\xff" * 50, b"\n\n{}\n"])
def test_a_line_of_anything_leaves_the_others(tmp_path: Path, ending: bytes) -> None:
    path = tmp_path / "node-pid7.log"
    path.write_bytes(json.dumps(LINE).encode() + b"\n" + ending)
    assert [len(one.sequence) for one in read_log(path).communicators] == [1]


def test_a_damaged_gzip_is_one_sentence_and_hides_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "node-pid1.log").write_text(json.dumps(LINE))
    packed = bytearray(gzip.compress(bytes(range(256)) * 100))
    packed[30] ^= 0xFF
    path = tmp_path / "node-pid2.log.gz"
    path.write_bytes(packed)
    with pytest.raises(InspectorError, match="cannot be read"):
        read_log(path)
    assert [log.process for log in logs_beside(tmp_path)] == [1]


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [("header", "n_ranks", 10**30), ("coll_perf", "coll_sn", 2**61), ("metadata", "dump_timestamp_us", 10**40)],
)
def test_a_call_with_a_figure_that_cannot_be_is_left_out(tmp_path: Path, part: str, key: str, value: int) -> None:
    path = tmp_path / "node-pid7.log"
    path.write_text("\n".join(json.dumps(one) for one in (LINE, LINE | {part: LINE[part] | {key: value}})))
    (found,) = read_log(path).communicators
    assert (found.members, len(found.sequence)) == (8, 1)
