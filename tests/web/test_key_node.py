"""A key node in a query: every page follows it, and what could be one is listed."""

from __future__ import annotations

import json

import msgspec
import pytest

from tb_dlprof_plugin.metrics.key_node import with_key_node
from tb_dlprof_plugin.pages.key_nodes import key_nodes_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import encode
from tb_dlprof_plugin.store.header import header_of
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web import open_runs
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.export.runs import ExportedRun, ExportedRuns
from tb_dlprof_plugin.web.queries import RangeQuery

KEY_NODE = "conv1/conv2d"


def test_the_recorded_steps_are_back_without_the_key_node(server) -> None:
    def found(**query: object) -> tuple[str, int]:
        status, page = server.page("overview", run="fp32", **query)
        assert status == 200
        return page["range"]["found_by"], len(page["iterations"])

    assert found(key_node=KEY_NODE) == ("key_node", 4)
    assert found() == ("profiler_step", 3)
    assert found(key_node="") == ("profiler_step", 3)


def test_other_ranks_are_cut_too(server) -> None:
    status, page = server.page("advice", run="deep/ranks", key_node=KEY_NODE)
    (rule,) = [rule for rule in page["rules"] if rule["rule"] == "imbalanced_gpu"]
    assert (status, page["range"]["total"], rule["outcome"]) == (200, 4, "silent")


def test_an_op_that_runs_too_often_is_no_key_node(new_trace, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = new_trace()
    for call in range(5):
        trace.op("aten::often", 10 * call, 5)
    profile = trace.profile(session="s")
    run = ExportedRun("run", "s", 0, 0, header_of(profile).encode(), {0: encode(profile)})
    query = RangeQuery(run="run", key_node="often")

    def opened() -> ProfileView:
        return open_runs.OpenRuns(ExportedRuns([run]), "", open_runs.KeptBetweenRequests()).profile(query)[0]

    monkeypatch.setattr(open_runs, "_MOST_ITERATIONS", 6)
    assert len(opened().profile.iterations) == 6
    monkeypatch.setattr(open_runs, "_MOST_ITERATIONS", 5)
    with pytest.raises(
        RequestError, match=r"^Run 'run': 'often' runs 5 times, too often for a key node; .*\.$"
    ) as found:
        opened()
    assert found.value.status == 400


def test_candidates_do_not_depend_on_the_key_node_and_each_of_them_cuts(server, profiles) -> None:
    listed = key_nodes_page(ProfileView(profiles["fp32"]), RunRef("fp32", "s1", 0, 11))
    expected = json.loads(msgspec.json.encode(listed))
    assert server.page("key_nodes", run="fp32") == (200, expected)
    assert server.page("key_nodes", run="fp32", key_node="nothing", first=0, last=99) == (200, expected)
    rows = expected["rows"]
    assert (expected["found_by"], expected["iterations"]) == ("profiler_step", 3)
    assert {row["calls"] for row in rows} == {3}
    for row in rows:
        # By name where that means this op, else by id: both lead to the op that was picked.
        named, by_id = (with_key_node(profiles["fp32"], row[key]) for key in ("key_node", "id"))
        assert named.iterations.stop_ns.tolist() == by_id.iterations.stop_ns.tolist()
        assert len(named.iterations) == row["calls"] + 1
    assert {row["key_node"] == row["id"] for row in rows if row["direction"] == "backward"} == {True}
