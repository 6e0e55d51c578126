"""Kernels of replayed CUDA graphs and the ops in which their nodes were captured."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.nsys_database import COPY, KERNEL, NsysDatabase, thread

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.metrics.op_statistics import op_statistics
from tb_dlprof_plugin.model.profile import Attribution, Profile
from tb_dlprof_plugin.profile_view import ProfileView

NODES = "CUDA_GRAPH_NODE_EVENTS"
CAPTURED, INSTANTIATED = 1 << 32, 2 << 32


def created(database: NsysDatabase, at: float, node: int, original: int | None = None, tid: int = 1) -> None:
    database.row(
        NODES,
        start=round(at * 1000),
        globalTid=thread(tid),
        graphNodeId=node,
        originalGraphNodeId=original,
    )


def captured_step(database: NsysDatabase, begin: bool = True) -> None:
    """Two ops of a module, and a backward node on autograd's thread, captured in a range around all."""
    database.range("iteration 0", 0, 90)
    if begin:
        database.call(5, 1, name="cudaStreamBeginCapture_v10000")
    database.range("aten::linear, seq = 4, op_id = 1, sizes = [[8, 16], [32, 16]]", 10, 20)
    database.range("aten::mm, seq = 4, op_id = 2", 12, 10)
    created(database, 15, CAPTURED)
    database.range("aten::relu, seq = 5, op_id = 3", 35, 10)
    created(database, 36, CAPTURED + 1)
    created(database, 37, CAPTURED + 2)
    database.range("MmBackward0, seq = 4, op_id = 4", 50, 10, tid=2)
    created(database, 55, CAPTURED + 3, tid=2)
    for node in range(4):
        created(database, 80, INSTANTIATED + node, CAPTURED + node)


def replay(database: NsysDatabase, at: float) -> None:
    launch = database.call(at, 10, name="cudaGraphLaunch_v10000")
    for node, name in enumerate(("gemm", "relu", "", "gemm_backward")):
        where = {"demangledName": database.text(name)} if name else {"copyKind": 8, "srcKind": 2, "dstKind": 2}
        table = KERNEL if name else COPY
        database.activity(table, at + 20 + 5 * node, 4, launch, graphNodeId=INSTANTIATED + node, **where)


def times(profile: Profile) -> dict[tuple[str, str], int]:
    view = ProfileView(profile)
    found = op_statistics(view, view.selection())
    strings, groups = profile.strings, view.groups
    rows = zip(groups.op_type.tolist(), groups.role.tolist(), found.gpu.total.tolist(), strict=False)
    return {(strings[name], str(role)): time for name, role, time in rows if time}


@pytest.fixture
def database(tmp_path: Path) -> NsysDatabase:
    return NsysDatabase(tmp_path / "report.sqlite")


def test_kernels_of_every_replay_belong_to_the_ops_that_were_captured(database) -> None:
    captured_step(database)
    for step in (1, 2, 3):
        database.range(f"iteration {step}", 100 * step, 90)
        replay(database, 100 * step + 10)
    (profile,) = analyze_ranks(database.write())
    assert set(profile.launches.attribution.tolist()) == {Attribution.LINKED}
    found = times(profile)
    assert sorted(found.values()) == [12_000, 12_000, 24_000]
    assert {name for name, _ in found} == {"linear", "relu"}
    # Each step has its own work, and the CPU does nothing for the ops but launch their graph.
    view = ProfileView(profile)
    assert view.launch_iteration.tolist() == [1] * 4 + [2] * 4 + [3] * 4
    calls = profile.calls
    replayed = calls.start_ns > 100_000
    of_op = [profile.strings[profile.ops.name[one]] == "aten::relu" for one in calls.op.tolist()]
    assert calls.duration_ns[replayed & of_op].max() <= 2
    assert not [note for note in profile.notes if note.code == "graph_nodes"]


def test_shapes_of_the_captured_op_are_those_of_the_replayed(database) -> None:
    captured_step(database)
    replay(database, 110)
    (profile,) = analyze_ranks(database.write())
    call = int(profile.launches.call[0])
    names = [profile.strings[profile.ops.name[row]] for row in profile.calls.op.tolist()]
    assert names[call] == "aten::mm"
    assert any(
        profile.shapes_of(int(op)) == ((8, 16), (32, 16))
        for op, start in zip(profile.calls.op.tolist(), profile.calls.start_ns.tolist(), strict=True)
        if start > 100_000
    )


def test_a_graph_that_was_built_by_calls_has_the_ranges_within_it(database) -> None:
    captured_step(database, begin=False)
    replay(database, 110)
    (profile,) = analyze_ranks(database.write())
    assert {name for name, _ in times(profile)} == {"linear", "relu"}


def test_without_the_capture_the_launch_keeps_them_and_a_note_says_so(database) -> None:
    database.range("iteration 1", 100, 90)
    replay(database, 110)
    (profile,) = analyze_ranks(database.write())
    (note,) = [note for note in profile.notes if note.code == "graph_nodes"]
    assert note.count == 4
    assert "--capture-range" in note.text
    assert len(profile.launches) == 4


def test_a_node_made_from_itself_is_not_followed_for_ever(database) -> None:
    captured_step(database)
    created(database, 81, 7, 7)
    launch = database.call(110, 10, name="cudaGraphLaunch_v10000")
    database.activity(KERNEL, 130, 4, launch, graphNodeId=7, demangledName=database.text("k"))
    (profile,) = analyze_ranks(database.write())
    assert [note.count for note in profile.notes if note.code == "graph_nodes"] == [1]
