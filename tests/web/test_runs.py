"""The routes of many runs: what the views hold, read little by little, wrong requests in one sentence."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from web.conftest import BOTH_LOADERS

from tb_dlprof_plugin.pages.recorded_run import recorded_run
from tb_dlprof_plugin.pages.stored_summary import encode_summary
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.profile_store import ProfileStore
from tb_dlprof_plugin.store.reclassify import opened as opened_profile
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web import recorded_runs
from tb_dlprof_plugin.web.run_source import DataProviderSource

RUNS = ["damaged", "deep/ranks", "fp16", "fp32"]


def _all(server: Any, route: str, **query: Any) -> dict[str, Any]:
    """Asked again until everything is read, as the page does."""
    while True:
        status, page = server.page(route, **query)
        assert status == 200, page
        if page["done"] == page["total"]:
            return page


@BOTH_LOADERS
def test_every_run_is_in_the_table_once_and_a_damaged_one_apart(server) -> None:
    page = _all(server, "many_runs")
    assert [row["ref"]["run"] for row in page["rows"]] == RUNS[1:]
    assert [failed["run"] for failed in page["failed"]] == ["damaged"]
    assert "Run 'damaged' cannot be shown" in page["failed"][0]["why"]
    assert (page["total"], page["total_rows"]) == (4, 3)
    assert page["rows"][2]["ref"] == {"run": "fp32", "session": "s1", "rank": 0, "cycle": 11}
    # The hook saw no model, so nothing says what to compare them with.
    assert {row["no_base"] for row in page["rows"]} == {"its model was not recorded"}


def test_a_chosen_base_is_everyones(server) -> None:
    rows = {row["ref"]["run"]: row for row in _all(server, "many_runs", base="fp32")["rows"]}
    assert {row["base"] for row in rows.values()} == {"fp32"}
    assert rows["fp16"]["speedup"] == pytest.approx(rows["fp32"]["step_ns"] / rows["fp16"]["step_ns"], rel=1e-5)
    assert rows["fp16"]["changes"] == ["FP32 to FP16"]


def test_a_sweep_is_drawn_over_what_differs(server) -> None:
    page = _all(server, "sweep", over="precision", measure="share", kernel_group="convolution")
    assert [len(curve["marks"]) for curve in page["curves"]] == [2]
    assert page["positions"] == ["FP16", "FP32"]
    by_op = _all(server, "sweep", over="precision", measure="share", op="conv2d", direction="backward")
    assert by_op["op"] == "conv2d backward"
    assert by_op["measure_label"].endswith("conv2d, backward")
    assert next(option["key"] for option in by_op["ops"]) == "conv2d backward"
    # As addresses of earlier versions have it.
    assert _all(server, "sweep", over="precision", measure="share", op="conv2d", direction="bprop") == by_op
    assert _all(server, "by_model")["rows"] == []


_TAG = "tb_dlprof/v1/s1/rank0"


class _Provider:
    """A data provider of three runs that counts which profiles are read."""

    def __init__(self, blob: bytes, summary: bytes | None = None) -> None:
        self.blob, self.summary, self.read = blob, summary, 0

    def read_blob_sequences(self, *_: Any, **__: Any) -> Any:
        def datum(run: str) -> Any:
            value = type("Reference", (), {"blob_key": run})
            return type("Datum", (), {"step": 0, "wall_time": 1.0, "values": [value]})

        def summaries(run: str) -> Any:
            return {} if self.summary is None else {f"{_TAG}/summary": [datum(f"{run} summary")]}

        return {run: {_TAG: [datum(run)], **summaries(run)} for run in ("b", "a", "c")}

    def read_blob(self, _: Any, blob_key: str) -> bytes:
        if blob_key.endswith("summary"):
            assert self.summary is not None
            return self.summary
        self.read += 1
        return self.blob


def test_a_response_reads_as_much_as_its_time_allows_and_keeps_it(training) -> None:
    from tb_dlprof_plugin.store.codec import encode

    provider = _Provider(encode(training("fp32").profile()))
    runs = recorded_runs.RecordedRuns()
    counts = []
    for _ in range(4):
        found = runs.read(ProfileStore(DataProviderSource(provider, None, "")), budget_s=0.0)
        counts.append((len(found.recorded), found.total, provider.read))
    assert counts == [(1, 3, 1), (2, 3, 2), (3, 3, 3), (3, 3, 3)]
    assert [one.ref.run for one in found.recorded] == ["a", "b", "c"]


def test_a_table_of_runs_with_summaries_opens_no_profile_and_says_the_same(training) -> None:
    from tb_dlprof_plugin.store.codec import encode

    profile = training("fp32").profile()
    view = ProfileView(opened_profile(encode(profile)))
    summary = encode_summary(recorded_run(view, RunRef("before it was moved", "s1", 0, 0), view.selection()))
    by_summary, opened = _Provider(encode(profile), summary), _Provider(encode(profile))
    tables = [
        recorded_runs.RecordedRuns().read(ProfileStore(DataProviderSource(one, None, "")), budget_s=60.0)
        for one in (by_summary, opened)
    ]
    assert (by_summary.read, opened.read) == (0, 3)
    assert tables[0] == tables[1]
    assert [one.ref.run for one in tables[0].recorded] == ["a", "b", "c"]


def test_a_summary_that_is_of_no_use_is_passed_over(training) -> None:
    from tb_dlprof_plugin.store.codec import encode

    provider = _Provider(encode(training("fp32").profile()), b"damaged")
    table = recorded_runs.RecordedRuns().read(ProfileStore(DataProviderSource(provider, None, "")), budget_s=60.0)
    assert (provider.read, len(table.recorded)) == (3, 3)


def test_those_who_ask_together_read_each_profile_once(training) -> None:
    from tb_dlprof_plugin.store.codec import encode

    provider = _Provider(encode(training("fp32").profile()))
    runs = recorded_runs.RecordedRuns()
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(runs.read, ProfileStore(DataProviderSource(provider, None, "")), 60.0) for _ in range(8)]
    assert {len(one.result().recorded) for one in found} == {3}
    assert provider.read == 3
