"""The routes over HTTP: what the views say, and errors in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from web.conftest import BOTH_LOADERS

from tb_dlprof_plugin.metrics.key_node import with_key_node
from tb_dlprof_plugin.pages.advice import advice_page
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.pages.forecast import forecast_page
from tb_dlprof_plugin.pages.timeline.event import timeline_event
from tb_dlprof_plugin.pages.timeline.matches import timeline_matches
from tb_dlprof_plugin.pages.timeline.page import timeline_page
from tb_dlprof_plugin.pages.work_detail import work_detail
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.reports.page import report_page
from tb_dlprof_plugin.reports.registry import REPORTS
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.version import __version__
from tb_dlprof_plugin.web.routes import PAGES

KEY_NODE = "conv1/conv2d"
REF = RunRef("fp32", "s1", 0, 11)


def _json(page: msgspec.Struct) -> object:
    return json.loads(msgspec.json.encode(page))


@pytest.fixture(scope="module")
def cut(profiles) -> ProfileView:
    """The run "fp32" with iterations between the three calls of `KEY_NODE`."""
    return ProfileView(with_key_node(profiles["fp32"], KEY_NODE))


@BOTH_LOADERS
def test_all_runs_are_listed_with_every_cycle_and_in_natural_order(server) -> None:
    status, index = server.page("runs")
    assert (status, index["plugin_version"]) == (200, __version__)
    assert [(r["run"], r["session"], r["rank"], r["cycles"], r["precision"]) for r in index["runs"]] == [
        ("damaged", "s1", 0, [0], "fp16"),
        ("deep/ranks", "s1", 0, [0], "fp16"),
        ("deep/ranks", "s1", 1, [0], "fp16"),
        ("fp16", "s1", 0, [0], "fp16"),
        ("fp32", "s1", 0, list(range(12)), "fp32"),
    ]
    assert {(r["device"], r["iterations"], r["recorded_iteration_ns"], r["model"]) for r in index["runs"]} == {
        ("NVIDIA H200", 3, 1_000_000, None)
    }


@BOTH_LOADERS
@pytest.mark.parametrize("route", sorted(PAGES))
def test_each_page_is_what_its_view_makes_of_the_range_and_the_key_node(server, profiles, cut, route: str) -> None:
    view, page = ProfileView(profiles["fp32"]), PAGES[route].load_page()
    for query, asked, selection in (
        ({}, view, view.selection()),
        ({"first": 1, "last": 1}, view, view.selection(1, 1)),
        # Index 3 is there only with the key node: three steps become four intervals.
        ({"key_node": KEY_NODE, "first": 1, "last": 3}, cut, cut.selection(1, 3)),
    ):
        assert server.page(route, run="fp32", **query) == (200, _json(page(asked, REF, selection)))


def test_an_op_and_what_belongs_to_it_are_found(server, profiles, cut) -> None:
    op = cut.groups.ids[0]
    for query, view in (({}, ProfileView(profiles["fp32"])), ({"key_node": KEY_NODE}, cut)):
        expected = work_detail(view, REF, view.selection(), "op", op)
        assert server.page("work_detail", run="fp32", kind="op", id=op, **query) == (200, _json(expected))
    status, page = server.page("search", run="fp32", text="conv1")
    hit = next(hit for hit in page["hits"] if hit["kind"] == "op")
    assert (status, hit["id"] in cut.groups.ids) == (200, True)
    assert server.page("related", run="fp32", kind="op", id=hit["id"])[1]["ops"] == [hit["id"]]


def test_a_forecast_is_of_the_cycle_and_the_gpu_that_are_asked_for(server, profiles) -> None:
    view, gpu = ProfileView(profiles["fp32"]), "NVIDIA A100-SXM4-80GB"
    # Empty parameters are those of the run.
    assert server.page("forecast", run="fp32", precision="bf16", gpu="", batch_size="") == (
        200,
        _json(forecast_page(view, REF, "bf16")),
    )
    status, page = server.page("forecast", run="fp32", cycle=3, precision="tf32", gpu=gpu)
    expected = forecast_page(view, RunRef("fp32", "s1", 0, 3), "tf32", gpu=gpu)
    assert (status, page["ref"]["cycle"], page["gpu"]) == (200, 3, gpu)
    assert page["predicted_step_ms"] == expected.predicted_step_ms


def test_the_timeline_of_an_iteration_comes_with_its_events_and_matches(server, profiles) -> None:
    frame = ProfileView(profiles["fp32"])
    all_of_it = frame.selection()
    page = timeline_page(frame, REF, all_of_it, 2)
    assert server.page("timeline", run="fp32", iteration=2) == (200, _json(page))
    longest = page.longest_gpu[0].spot.id
    event = timeline_event(frame, REF, all_of_it, 2, longest)
    assert server.page("timeline_event", run="fp32", iteration=2, id=longest) == (200, _json(event))
    found = timeline_matches(frame, all_of_it, 2, text="CONV")
    assert server.page("timeline_matches", run="fp32", iteration=2, text="CONV") == (200, _json(found))


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_served_by_its_name(server, profiles, name: str) -> None:
    frame = ProfileView(profiles["fp32"])
    expected = report_page(frame, REF, frame.selection(1, 2), name)
    assert server.page("report", run="fp32", name=name, first=1, last=2) == (200, _json(expected))


def test_findings_that_were_set_aside_are_left_out_of_the_combined_saving(server, profiles) -> None:
    frame = ProfileView(profiles["fp32"])
    first = advice_page(frame, REF, frame.selection()).findings[0].rule
    status, page = server.page("advice", run="fp32", set_aside=f"{first},no_such_rule,")
    assert (status, page) == (200, _json(advice_page(frame, REF, frame.selection(), {first})))


@pytest.mark.parametrize("rank", [0, 1])
def test_advice_on_a_rank_looks_at_the_others_too(server, rank: int) -> None:
    def outcome(run: str, **query: int) -> tuple[str, str]:
        status, page = server.page("advice", run=run, **query)
        assert status == 200
        (rule,) = [rule for rule in page["rules"] if rule["rule"] == "imbalanced_gpu"]
        return rule["outcome"], rule["why"]

    found = outcome("deep/ranks", rank=rank)
    assert found[0] == "silent"
    assert "rank 0 works 0.22 ms of a step, rank 1 0.22 ms" in found[1]
    assert outcome("fp16") == ("not_applicable", "The run used one GPU.")


def test_two_runs_are_compared_each_with_its_own_range_and_key_node(server, profiles, cut) -> None:
    a, b = ProfileView(profiles["fp32"]), ProfileView(profiles["fp16"])
    other = CompareInput(b, RunRef("fp16", "s1", 0, 0), b.selection())
    for query, side in (
        ({"a_first": 0, "a_last": 1}, CompareInput(a, REF, a.selection(0, 1))),
        ({"a_key_node": KEY_NODE}, CompareInput(cut, REF, cut.selection())),
    ):
        expected = _json(compare_page(side, other))
        assert server.page("compare", a_run="fp32", b_run="fp16", **query) == (200, expected)


def test_an_op_of_two_runs_shows_its_kernels_before_and_after(server, profiles) -> None:
    _, page = server.page("compare", a_run="fp32", b_run="fp16")
    conv = next(op for op in page["ops"] if op["name"] == "conv1/conv2d" and op["direction"] == "forward")
    status, detail = server.page("compare_op", a_run="fp32", b_run="fp16", id=conv["id"])
    assert (status, detail["op"]) == (200, conv)
    before, after = ([(k["ns"], k["uses_tc"], k["cast"]) for k in detail[side]] for side in ("a_kernels", "b_kernels"))
    assert before == [(200_000, "no", False)]
    assert after == [(40_000, "yes", False), (10_000, "no", True)]


@BOTH_LOADERS
@pytest.mark.parametrize(
    ("query", "ref"),
    [
        ({"run": "fp32"}, {"run": "fp32", "session": "s1", "rank": 0, "cycle": 11}),
        ({"run": "fp32", "cycle": 0}, {"run": "fp32", "session": "s1", "rank": 0, "cycle": 0}),
        ({"run": "fp32", "cycle": 5}, {"run": "fp32", "session": "s1", "rank": 0, "cycle": 5}),
        ({"run": "deep/ranks"}, {"run": "deep/ranks", "session": "s1", "rank": 0, "cycle": 0}),
        ({"run": "deep/ranks", "rank": 1}, {"run": "deep/ranks", "session": "s1", "rank": 1, "cycle": 0}),
    ],
)
def test_what_is_not_named_is_the_lowest_rank_and_the_last_cycle(server, query, ref) -> None:
    status, page = server.page("kernels", **query)
    assert (status, page["ref"]) == (200, ref)


@BOTH_LOADERS
def test_a_damaged_run_does_not_stop_the_others(server) -> None:
    assert server.page("overview", run="damaged")[0] == 422
    assert server.page("overview", run="fp16")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_only_get_is_answered(server, method: str) -> None:
    status, body = server.request("/data/plugin/tb_dlprof/runs", method)
    assert (status, json.loads(body)) == (405, {"error": "Only GET is answered."})
    assert server.request("/data/plugin/tb_dlprof/index.js", method) == (405, b"Only GET is answered.")


@pytest.mark.parametrize(
    "path",
    [
        "assets/unknown.js", "unknown", "../../plugin.py", "assets/../../plugin.py", "assets/%2e%2e/%2e%2e/plugin.py",
        "assets/..%2f..%2fplugin.py", "/etc/passwd", "assets//etc/passwd", "index.js/../../plugin.py",
    ],
)  # fmt: skip
def test_a_path_that_is_no_route_is_not_found(server, path: str) -> None:
    status, body = server.request(f"/data/plugin/tb_dlprof/{path}")
    assert status == 404
    assert b"import" not in body
    assert b"root:" not in body


def test_the_entry_module_is_served_whether_or_not_the_frontend_is_built(server) -> None:
    status, body = server.request("/data/plugin/tb_dlprof/index.js")
    assert status == 200
    assert b"render" in body


def _listing(server) -> dict:
    status, body = server.request("/data/plugins_listing")
    assert status == 200
    return json.loads(body)


def test_the_tab_is_active_where_there_is_data(server) -> None:
    entry = _listing(server)["tb_dlprof"]
    assert (entry["enabled"], entry["tab_name"], entry["loading_mechanism"]["type"]) == (True, "DLProf", "IFRAME")


def test_the_tab_is_inactive_without_data_until_data_comes(start_tensorboard, profiles, tmp_path: Path) -> None:
    from tb_dlprof_plugin.store.event_file import write_profile

    server = start_tensorboard(tmp_path, load_fast=True)
    assert _listing(server)["tb_dlprof"]["enabled"] is False
    nothing = {"plugin_version": __version__, "logdir": str(tmp_path), "runs": [], "offset": 0, "total": 0}
    nothing["import_command"] = ""
    status, index = server.page("runs")
    revision = index.pop("revision")
    assert (status, index) == (200, nothing)
    write_profile(tmp_path / "new", profiles["fp16"])
    server.wait_for(lambda: _listing(server)["tb_dlprof"]["enabled"])
    assert server.page("overview", run="new")[0] == 200
    assert server.page("runs")[1]["revision"] != revision


BROKEN = """
import importlib.abc, sys

class Broken(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "tb_dlprof_plugin.plugin":
            raise ImportError("broken on purpose")

sys.meta_path.insert(0, Broken())
"""


def test_tensorboard_runs_without_the_plugin_where_it_cannot_be_loaded(start_tensorboard, tmp_path: Path) -> None:
    # GIVEN a plugin whose import fails
    (tmp_path / "sitecustomize.py").write_text(BROKEN)
    (tmp_path / "logdir").mkdir()
    server = start_tensorboard(tmp_path / "logdir", load_fast=False, extra_path=tmp_path)
    # THEN TensorBoard has its other tabs, and its log says why this one is missing
    listing = _listing(server)
    assert "tb_dlprof" not in listing
    assert "scalars" in listing
    server.wait_for(lambda: any("The DLProf tab is missing" in line for line in server.log))
    assert any("broken on purpose" in line for line in server.log)
