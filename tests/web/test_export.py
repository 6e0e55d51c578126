"""An exported file in parts: what it asks, which chunks it takes, and that no name ends the element it stands in."""

from __future__ import annotations

import gzip
import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from tb_dlprof_plugin.store.codec import encode
from tb_dlprof_plugin.store.header import header_of
from tb_dlprof_plugin.web.export import AnsweredRuns, ExportedRun, PageExportError, answer_all, html_file
from tb_dlprof_plugin.web.export import page as page_module
from tb_dlprof_plugin.web.export.answers import AnswerBlock
from tb_dlprof_plugin.web.export.bundle import chunks
from tb_dlprof_plugin.web.export.page import script_json, script_text
from tb_dlprof_plugin.web.export.prefetch import MOST_COMPARED
from tb_dlprof_plugin.web.routes import ROUTES

MADE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
EVIL = "</script><script>alert(1)</script><!--<script>\u2028\u2029&amp;@title@"


@pytest.fixture
def bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"mount-1.js": "export {}", "standalone-2.js": 'import "./mount-1.js"'}
    monkeypatch.setattr(page_module, "chunks", lambda: modules)
    monkeypatch.setattr(page_module, "licences", lambda: "<a@b> </script> <!-- text")


def _run(training, name: str, precision: str = "fp32") -> ExportedRun:
    profile = training(precision).profile(session="s")
    return ExportedRun(name, "s", 0, 0, header_of(profile).encode(), {0: encode(profile)})


def test_a_file_of_a_rank_answers_of_that_rank_though_it_holds_the_others(training) -> None:
    ranks = {rank: training("fp32").profile(session="s", rank=rank) for rank in (0, 1)}
    run = ExportedRun(
        "ddp", "s", 1, 0, header_of(ranks[1]).encode(), {rank: encode(one) for rank, one in ranks.items()}
    )
    blocks = {block.route: json.loads(gzip.decompress(block.data)) for block in answer_all([run]).blocks}
    (overview,) = blocks["overview"]
    assert overview["query"] == {"run": "ddp"}
    assert overview["answer"]["ref"]["rank"] == 1
    assert {one["answer"]["ref"]["rank"] for one in blocks["work_detail"]} == {1}
    assert [row["ref"]["rank"] for one in blocks["many_runs"] for row in one["answer"]["rows"]] == [1, 1]


def test_json_in_a_script_element_holds_no_character_that_could_end_it() -> None:
    text = script_json({"name": EVIL})
    assert json.loads(text) == {"name": EVIL}
    assert not set(text) & set("<>&\u2028\u2029")


def test_a_title_and_a_run_of_any_name_stay_text(bundle: None) -> None:
    answered = AnsweredRuns([AnswerBlock("overview", (EVIL,), 1, b"packed")], EVIL)
    text = html_file(answered, EVIL, MADE).text
    assert text.count("<script>") == 0
    assert text.count("<!--") == 0
    assert "<title>&lt;/script&gt;&lt;script&gt;alert(1)" in text
    # The contents, one block, two chunks, the licences and the one script that runs.
    assert text.count("<script ") == text.count("</script>") == 6
    assert script_text("</SCRIPT") == "<\\/SCRIPT"


def test_the_policy_lets_run_one_script_and_forbids_every_connection(bundle: None) -> None:
    text = html_file(AnsweredRuns([], "t"), "t", MADE).text
    (policy,) = [line for line in text.splitlines() if "Content-Security-Policy" in line]
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    assert "http" not in policy.split('content="')[1]
    assert text.index("Content-Security-Policy") < text.index("<script")


def test_a_bundle_that_is_not_built_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "chunks", dict)
    with pytest.raises(PageExportError, match="not built: run `make frontend`"):
        html_file(AnsweredRuns([], "t"), "t", MADE)


def test_chunks_come_after_those_that_they_import(tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    for name, text in {
        "standalone-a.js": 'import{m}from"./mount-b.js";',
        "mount-b.js": 'import"./preload-c.js";import("./table-d.js");"./not-there.js"',
        "preload-c.js": "1",
        "table-d.js": "2",
        "other-e.js": "3",
    }.items():
        (assets / name).write_text(text)
    assert list(chunks(tmp_path)) == ["preload-c.js", "table-d.js", "mount-b.js", "standalone-a.js"]
    assert chunks(tmp_path / "nowhere") == {}


def test_every_route_is_answered_but_those_that_a_file_has_no_use_for(training) -> None:
    fractions: list[float] = []
    answered = answer_all([_run(training, "a"), _run(training, "b/c", "fp16")], fractions.append)
    held = {block.route for block in answered.blocks}
    # A small timeline is whole in its first answer.
    never = {"key_nodes", "other_jobs", "rank_lines", "search", "timeline_matches"}
    never |= {"trace_links", "trace", "page_file"}
    assert held == set(ROUTES) - never - {"timeline_events"}
    assert {block.runs for block in answered.blocks} == {(), ("a",), ("b/c",), ("a", "b/c"), ("b/c", "a")}
    assert answered.title == "a and b/c"
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] <= fractions[-1] <= 1


def test_of_many_runs_each_is_compared_with_its_base_alone(training, monkeypatch: pytest.MonkeyPatch) -> None:
    from tb_dlprof_plugin.web.export import answers

    monkeypatch.setattr(answers, "about_run", lambda name: [])
    runs = [_run(training, f"r{number}") for number in range(MOST_COMPARED + 1)]
    answered = answer_all(runs)
    pairs = [block.runs for block in answered.blocks if block.route == "compare"]
    assert len(pairs) < len(runs)
    assert answered.title == f"r0 and {MOST_COMPARED} more runs"
