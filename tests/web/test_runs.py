"""The routes of many runs: what the views hold, read little by little, wrong requests in one sentence."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from web.conftest import BOTH_LOADERS

from tb_dlprof_plugin.pages.runs import many_runs_page
from tb_dlprof_plugin.store.codec import encode
from tb_dlprof_plugin.store.profile_store import ProfileStore
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

    def __init__(self, blob: bytes) -> None:
        self.blob, self.read = blob, 0

    def read_blob_sequences(self, *_: Any, **__: Any) -> Any:
        def datum(run: str) -> Any:
            value = type("Reference", (), {"blob_key": run})
            return type("Datum", (), {"step": 0, "wall_time": 1.0, "values": [value]})

        return {run: {_TAG: [datum(run)]} for run in ("b", "a", "c")}

    def read_blob(self, *_: Any, **__: Any) -> bytes:
        self.read += 1
        return self.blob


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_a_response_opens_as_many_as_its_time_allows_and_keeps_them(training, own_cache) -> None:
    provider = _Provider(encode(training("fp32").profile()))
    runs = recorded_runs.RecordedRuns()
    counts, headlines = [], []
    for _ in range(4):
        found = runs.read(ProfileStore(DataProviderSource(provider, None, "")), budget_s=0.0)
        counts.append((len(found.recorded), found.total, provider.read))
        headlines.append(many_runs_page(found.recorded, total=found.total).headline)
    # All are read once to see what is kept, and again to be opened.
    assert counts == [(1, 3, 4), (2, 3, 5), (3, 3, 6), (3, 3, 6)]
    assert headlines == ["1 of 3 runs.", "2 of 3 runs.", "3 runs.", "3 runs."]
    assert [one.ref.run for one in found.recorded] == ["a", "b", "c"]


def test_a_server_that_starts_later_opens_no_profile_and_says_the_same(training, own_cache) -> None:
    provider = _Provider(encode(training("fp32").profile()))
    reads, tables = [], []
    for _ in range(2):
        tables.append(
            recorded_runs.RecordedRuns().read(ProfileStore(DataProviderSource(provider, None, "")), budget_s=60.0)
        )
        reads.append(provider.read)
    assert reads == [6, 9]
    assert tables[0] == tables[1]
    assert [one.ref.run for one in tables[0].recorded] == ["a", "b", "c"]


def test_those_who_ask_together_read_each_profile_once(training, own_cache) -> None:
    provider = _Provider(encode(training("fp32").profile()))
    runs = recorded_runs.RecordedRuns()
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(runs.read, ProfileStore(DataProviderSource(provider, None, "")), 60.0) for _ in range(8)]
    assert {len(one.result().recorded) for one in found} == {3}
    assert provider.read == 6
