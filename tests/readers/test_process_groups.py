"""Process groups of a trace differ by name and description, those without a name by their members."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.kineto_file import read_kineto

from tb_dlprof_plugin.model.timeline import Timeline


def _read(folder: Path, calls: list[dict[str, Any]]) -> Timeline:
    """Of a training in which a call with each of these arguments was recorded."""
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 10 * number, "dur": 5,
         "args": {"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float", **call}}
        for number, call in enumerate(calls)
    ]  # fmt: skip
    path = folder / "trace.json"
    path.write_text(json.dumps({"distributedInfo": {"rank": 0}, "traceEvents": events}))
    return read_kineto(path)


def _call(name: str, ranks: list[int], description: str = "") -> dict[str, Any]:
    return {"Process Group Name": name, "Process Group Description": description, "Process Group Ranks": str(ranks)}


def test_a_group_whose_list_of_ranks_is_cut_in_some_calls_is_one_with_all_its_ranks(tmp_path: Path) -> None:
    found = _read(tmp_path, [_call("3", [0, 2]), _call("3", [0, 2, 4, 6]), _call("3", [0])])
    assert [group.members for group in found.process_groups] == [(0, 2, 4, 6)]
    assert found.communications.group.tolist() == [0, 0, 0]


@pytest.mark.parametrize("second", [_call("4", [0, 1]), _call("3", [0, 1], "mesh_tp"), _call("", [0, 1])])
def test_another_name_or_description_is_another_group(tmp_path: Path, second: dict[str, Any]) -> None:
    found = _read(tmp_path, [_call("3", [0, 1]), second, second])
    assert len(found.process_groups) == 2
    assert found.communications.group.tolist() == [0, 1, 1]


def test_groups_without_a_name_are_told_apart_by_their_members(tmp_path: Path) -> None:
    found = _read(tmp_path, [_call("", [0, 1]), _call("", [2, 3]), _call("", [0, 1])])
    assert [group.members for group in found.process_groups] == [(0, 1), (2, 3)]
    assert found.communications.group.tolist() == [0, 1, 0]


def test_each_of_many_groups_is_kept(tmp_path: Path) -> None:
    found = _read(tmp_path, [_call(str(number), [0, number + 1]) for number in range(20_000)])
    assert len(found.process_groups) == 20_000
    assert found.communications.group.tolist() == list(range(20_000))
