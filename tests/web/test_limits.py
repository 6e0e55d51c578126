"""Hundreds of runs, 64 ranks, thousands of iterations: every answer stays below 1 MB, and nothing is lost unsaid."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from big_trace import make

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.cli.export_runs import exported_run
from tb_dlprof_plugin.model.run_choice import ProfileChoice
from tb_dlprof_plugin.pages.recorded_run import recorded_run
from tb_dlprof_plugin.pages.runs import many_runs_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import encode
from tb_dlprof_plugin.store.event_file import event_files
from tb_dlprof_plugin.store.header import header_of
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.store.tags import Tag
from tb_dlprof_plugin.web.answers import Answers
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.export.prefetch import about_run
from tb_dlprof_plugin.web.export.runs import ExportedRun, ExportedRuns
from tb_dlprof_plugin.web.queries import read_query
from tb_dlprof_plugin.web.respond import MAX_RESPONSE_BYTES, encode_page
from tb_dlprof_plugin.web.routes import ROUTES
from tb_dlprof_plugin.web.run_source import Series

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "demo" / "recorded"
RUNS, RANKS = 150, 64


class _OfManyRanks(ExportedRuns):
    """Lists every run with as many ranks as a large job has."""

    def series(self) -> list[Series]:
        return [
            dataclasses.replace(one, tag=Tag(one.tag.session, rank))
            for one in super().series()
            for rank in range(RANKS)
        ]


def _answer(source: ExportedRuns, route: str, query: dict[str, str]) -> Any:
    found = ROUTES[route]
    data = encode_page(Answers("").answer(found, read_query(found.load_query(), query), source))
    assert len(data) <= MAX_RESPONSE_BYTES, (route, query, len(data))
    return json.loads(data)


def test_a_list_of_thousands_of_profiles_comes_in_pieces_and_is_whole() -> None:
    recorded, _ = exported_run("mlp/fp32", event_files(RECORDED / "mlp/fp32"), ProfileChoice())
    recorded = dataclasses.replace(recorded, ranks=dict.fromkeys(range(RANKS), recorded.ranks[0]))
    names = [f"experiments/learning-rates/of-a-name-that-is-long/run-{number}" for number in range(RUNS)]
    source = _OfManyRanks([dataclasses.replace(recorded, name=name) for name in reversed(names)])
    first = _answer(source, "runs", {})
    assert len(first["runs"]) < RUNS * RANKS
    # What is beyond the first answer is part of its revision: the page asks for the rest again by that alone.
    last = dataclasses.replace(recorded, name=names[-1], cycle=7)
    grown = _OfManyRanks([last, *(dataclasses.replace(recorded, name=name) for name in names[:-1])])
    assert _answer(source, "runs", {})["revision"] == first["revision"]
    assert _answer(grown, "runs", {})["revision"] != first["revision"]
    entries: list[dict[str, Any]] = []
    while len(entries) < RUNS * RANKS:
        piece = _answer(source, "runs", {"offset": str(len(entries))})
        assert (piece["offset"], piece["total"]) == (len(entries), RUNS * RANKS)
        assert piece["runs"]
        entries += piece["runs"]
    assert [(entry["run"], entry["rank"]) for entry in entries] == [
        (run, rank) for run in names for rank in range(RANKS)
    ]
    assert {(tuple(entry["cycles"]), entry["model"]) for entry in entries} == {((0,), "MLP")}
    assert _answer(source, "runs", {"offset": str(RUNS * RANKS)})["runs"] == []


def test_the_table_of_thousands_of_runs_counts_those_that_do_not_fit() -> None:
    (stored,) = read_profiles(RECORDED / "mlp/fp32")
    view = ProfileView(stored.profile)
    one = recorded_run(view, RunRef("mlp/fp32", "s", 0, 0), view.selection())
    many = [
        msgspec.structs.replace(
            one, ref=RunRef(f"run-{number}", "s", 0, 0), run=msgspec.structs.replace(one.run, name=f"run-{number}")
        )
        for number in range(3000)
    ]
    page = many_runs_page(many, None)
    data = encode_page(page)
    answer = json.loads(data)
    assert len(msgspec.json.encode(page)) > MAX_RESPONSE_BYTES >= len(data)
    assert 800 < len(answer["rows"]) < 3000 == answer["total_rows"]


@pytest.mark.slow
@pytest.mark.long
def test_thousands_of_iterations_fit_into_every_answer(tmp_path: Path) -> None:
    long = tmp_path / "long.pt.trace.json"
    make(ROOT / "tests/traces/steps_many.pt.trace.json.gz", long, megabytes=32)
    profile = analyze_trace(long)
    count = len(profile.iterations)
    assert count > 1_000
    run = ExportedRun("long", "s", 0, 0, header_of(profile).encode(), {0: encode(profile)})
    source = ExportedRuns([run])
    for question in about_run("long"):
        if question.route != "advice" and question.query.get("name") in (None, "iteration", "detail"):
            _answer(source, question.route, question.query)
    page = _answer(source, "overview", {"run": "long"})
    assert len(page["iterations"]) <= 1_000 < page["range"]["total"] == count
    assert page["bars_note"].startswith(f"{count:,} iterations in ")
    assert page["iterations"][-1]["last"] == count - 1
    ops = _answer(source, "ops", {"run": "long"})
    detail = _answer(source, "work_detail", {"run": "long", "kind": "op", "id": ops["rows"][0]["id"]})
    assert len(detail["iterations"]) == len(page["iterations"])


def test_a_page_that_is_too_long_without_a_table_is_refused_in_one_sentence() -> None:
    class Page(msgspec.Struct):
        text: str

    with pytest.raises(RequestError, match=r"would take 1\.2 MB, and an answer has at most 1 MB") as refused:
        encode_page(Page("x" * 1_200_000))
    assert refused.value.status == 422
