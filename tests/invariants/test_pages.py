"""Every page can be made of every recording, and shows no figure that is impossible."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from invariants.conftest import Recording
from invariants.properties import Properties

from tb_dlprof_plugin.pages.advice import advice_page
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.pages.kernels import kernels_of_any
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.pages.overview import overview
from tb_dlprof_plugin.pages.timeline.page import timeline_page
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web import routes
from tb_dlprof_plugin.web.respond import MAX_RESPONSE_BYTES, encode_page

PROPERTIES = Properties()
REF = RunRef("run", "trace", 0, 0)
Page = Callable[[ProfileView, RunRef, Selection], msgspec.Struct]
PAGES: list[Page] = [route.load_page() for route in routes.PAGES.values()]


@PROPERTIES.of_every_recording
def a_page_is_valid_json_of_at_most_a_megabyte(recording: Recording) -> None:
    for page in PAGES:
        data = encode_page(page(recording.view, REF, recording.view.selection()))
        assert len(data) <= MAX_RESPONSE_BYTES
        json.loads(data, parse_constant=_no_json)


def _no_json(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


@PROPERTIES.of_every_recording
def no_time_is_negative_and_no_share_is_over_the_whole(recording: Recording) -> None:
    for page in PAGES:
        content = msgspec.to_builtins(page(recording.view, REF, recording.view.selection()))
        # A saving that may as well be a loss says so.
        wrong = [
            (path, value)
            for path, value in _numbers(content)
            if not path.endswith("saving.low_ns")
            if (path.endswith(("_ns", "calls")) and "start" not in path and "time_ns" not in path and value < 0)
            or (path.endswith("percent") and "saving" not in path and not 0 <= value <= 100.000001)
        ]
        assert not wrong
        if "headline" not in content:
            continue
        assert_a_sentence(content["headline"])
        parts = content.get("headline_parts")
        assert parts is None or "".join(part["text"] for part in parts) == content["headline"]
        # Its shares are those on the page; a finding's title has its own, and the timeline draws parts of a time.
        if page not in (advice_page, timeline_page):
            shares = [value for path, value in _numbers(content) if "percent" in path]
            if page in (kernels_of_any, ops_page):
                shares += _shares_of_rows(content["rows"])
            if page is overview:
                recorded_ns = content["summary"]["recorded_wall_clock_ns"]
                shares += [100 * op["cpu_total_ns"] / recorded_ns for op in content["top_ops"] if recorded_ns]
            told = re.findall(r"(?<!under )(?<!over )(?<![\d.])(\d+(?:\.\d+)?) %", content["headline"])
            assert set(told) <= {f"{share:.{digits}f}" for share in shares for digits in (0, 1)}


def assert_a_sentence(text: str) -> None:
    """What stands in the first line of a page: words, and no trace of a number that could not be had."""
    assert re.fullmatch(r"\S.*\S[.]", text, re.DOTALL)
    assert not re.search(r"\b(nan|None|inf|null)\b|-0\b|  |%%|\{|\}", text)


def _shares_of_rows(rows: list[dict[str, Any]]) -> list[float]:
    """Of the kernels' time, that of each verdict; of the ops', that of each op and type; and of the ten largest."""
    if any("tensor_core" in row for row in rows):
        parts = [
            sum(row["total_ns"] for row in rows if row["tensor_core"] == kind) for kind in ("yes", "no", "unknown")
        ]
    else:
        on_gpu = any(row["gpu_ns"] for row in rows)
        parts = sorted((row["gpu_ns"] if on_gpu else row["cpu_total_ns"] for row in rows), reverse=True)
        types: dict[str, int] = {}
        for row in rows:
            types[row["op_type"]] = types.get(row["op_type"], 0) + (row["gpu_ns"] if on_gpu else row["cpu_total_ns"])
        parts += types.values()
        whole = sum(types.values())
        return [100 * part / whole for part in (*parts, sum(parts[:10]))] if whole else []
    whole = sum(parts)
    parts += [sum(sorted((row["total_ns"] for row in rows), reverse=True)[:10])]
    return [100 * part / whole for part in parts if whole]


@PROPERTIES.of_every_recording
def a_run_compared_with_itself_is_the_same(recording: Recording) -> None:
    side = CompareInput(recording.view, REF, recording.view.selection())
    page = compare_page(side, side)
    assert page.speedup in (None, 1.0)
    assert_a_sentence(page.headline)
    same = ("Both runs take about the same, ", "Cannot tell whether the candidate is faster: ")
    # How well the step is known decides which.
    assert page.speedup is None or page.headline.startswith(same)
    # What no recorded op launched finds no partner.
    assert (page.shares.base.unmatched, page.shares.candidate.compiled) in ((None, None), (0, 0))
    assert sum(bucket.base_ns for bucket in page.buckets) == round(page.base_ms * 1e6)
    assert {bucket.difference_ns for bucket in page.buckets} == {0}
    assert all(op.a_ns == op.b_ns for op in page.ops)
    assert all(family.a_ns == family.b_ns for family in page.families)
    assert all(metric.a == metric.b for metric in page.metrics)


def test_pages(recording: Recording) -> None:
    PROPERTIES.assert_hold(recording)


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """All numbers in a page, each with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _numbers(item, f"{path}.{index}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value
