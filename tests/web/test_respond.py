"""Responses stay below the limit, and the tables say how much was left out."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
from pathlib import Path

import msgspec
from werkzeug.wrappers import Request

from tb_dlprof_plugin.loader import Loader
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.pages.kernels import kernels_page
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.bundle import bundle_files, content_of
from tb_dlprof_plugin.web.respond import MAX_RESPONSE_BYTES, Answer, encode_page, respond_answer, respond_error
from tb_dlprof_plugin.web.run_index import RunEntry, RunIndex


def test_a_page_below_the_limit_goes_out_whole(gpu_view: ProfileView, ref: RunRef) -> None:
    page = ops_page(gpu_view, ref, gpu_view.selection())
    assert encode_page(page) == msgspec.json.encode(page)


def _many(new_trace) -> ProfileView:
    trace = new_trace()
    for number in range(6000):
        trace.op(f"op_{number}", 10 * number, 5)
        trace.launch(f"kernel_{number}", 10 * number + 1, 10 * number, 6000 - number)
    return trace.view()


def test_a_long_table_is_cut_from_its_end_and_still_counted(new_trace, ref: RunRef) -> None:
    view = _many(new_trace)
    side = CompareInput(view, ref, view.selection())
    pages = {
        "rows": (ops_page(view, ref, view.selection()), kernels_page(view, ref, view.selection())),
        "ops": (compare_page(side, side),),
    }
    for table, made in pages.items():
        for page in made:
            data = encode_page(page)
            answer = json.loads(data)
            assert len(msgspec.json.encode(page)) > MAX_RESPONSE_BYTES
            assert 0.8 * MAX_RESPONSE_BYTES < len(data) <= MAX_RESPONSE_BYTES
            assert answer["total_rows"] == 6000
            whole = json.loads(msgspec.json.encode(page))
            assert answer[table] == whole[table][: len(answer[table])]
            assert {k: v for k, v in answer.items() if k != table} == {k: v for k, v in whole.items() if k != table}


def test_rows_of_one_length_are_cut_to_95_percent_of_the_limit_at_once() -> None:
    entry = RunEntry(**dict.fromkeys(RunEntry.__struct_fields__))
    index = RunIndex(plugin_version="1", logdir="", runs=[entry] * 6000, offset=0, total=6000)
    assert 0.94 * MAX_RESPONSE_BYTES < len(encode_page(index)) < 0.95 * MAX_RESPONSE_BYTES + 100


def test_the_rows_that_an_answer_leaves_out_follow_with_an_offset(new_trace, ref: RunRef) -> None:
    view = _many(new_trace)
    page = ops_page(view, ref, view.selection())
    joined: list[object] = []
    while len(joined) < page.total_rows:
        data = encode_page(page, len(joined))
        assert len(data) <= MAX_RESPONSE_BYTES
        rows = json.loads(data)["rows"]
        assert rows
        joined += rows
    assert joined == json.loads(msgspec.json.encode(page))["rows"]
    assert json.loads(encode_page(page, page.total_rows))["rows"] == []


def test_an_index_that_begins_at_its_offset_is_not_cut_there_again() -> None:
    entry = RunEntry(**dict.fromkeys(RunEntry.__struct_fields__))
    index = RunIndex(plugin_version="1", logdir="", runs=[entry, entry], offset=5, total=7)
    assert len(json.loads(encode_page(index, 5))["runs"]) == 2


def test_bundle_files_are_a_fixed_map(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.js").write_text("export function render() {}")
    (tmp_path / "assets" / "page-1a2b.js").write_text("chunk")
    files = bundle_files(tmp_path)
    assert sorted(files) == ["/assets/page-1a2b.js", "/index.js"]
    assert content_of(files, "/index.js") == (b"export function render() {}", "text/javascript")
    assert bundle_files(tmp_path / "missing") == {}


def test_a_bundle_that_is_not_built_says_so() -> None:
    content, kind = content_of({}, "/index.js")
    assert kind == "text/javascript"
    assert b"is not built" in content


def test_all_cycles_are_kept_unless_the_user_says_otherwise() -> None:
    flags = argparse.Namespace(samples_per_plugin={"images": 3})
    Loader().fix_flags(flags)
    assert flags.samples_per_plugin == {"images": 3, "tb_dlprof": 0}
    flags = argparse.Namespace(samples_per_plugin={"tb_dlprof": 5})
    Loader().fix_flags(flags)
    assert flags.samples_per_plugin == {"tb_dlprof": 5}


def test_what_the_browser_has_is_not_sent_again() -> None:
    def answer(text: bytes) -> Answer:
        return Answer(gzip.compress(text), hashlib.blake2s(text).hexdigest(), True)

    first = respond_answer(Request({"REQUEST_METHOD": "GET"}), answer(b'{"runs": []}'))
    assert (first.status_code, first.get_data(), first.content_encoding) == (200, b'{"runs": []}', None)
    again = Request({"HTTP_IF_NONE_MATCH": first.headers["ETag"], "REQUEST_METHOD": "GET"})
    assert respond_answer(again, answer(b'{"runs": []}')).status_code == 304
    assert respond_answer(again, answer(b'{"runs": [1]}')).status_code == 200
    assert respond_error(again, 404, "No.").status_code == 404


def test_an_answer_is_packed_where_the_browser_takes_that() -> None:
    packed = gzip.compress(b'{"runs": []}')
    request = Request({"REQUEST_METHOD": "GET", "HTTP_ACCEPT_ENCODING": "gzip, deflate, br"})
    response = respond_answer(request, Answer(packed, "tag", True))
    assert (response.get_data(), response.content_encoding) == (packed, "gzip")
