"""Every page can be made of every recording, and says nothing that cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from invariants.conftest import Recording

from tb_dlprof_plugin.measures import Frame, Selection
from tb_dlprof_plugin.views.advice import advice_page
from tb_dlprof_plugin.views.common import RunRef
from tb_dlprof_plugin.views.compare import CompareInput, compare_page
from tb_dlprof_plugin.views.kernels import kernels_page
from tb_dlprof_plugin.views.launches import launches_page
from tb_dlprof_plugin.views.memory import memory_page
from tb_dlprof_plugin.views.modules import modules_page
from tb_dlprof_plugin.views.ops import ops_page
from tb_dlprof_plugin.views.overview import overview
from tb_dlprof_plugin.views.roofline import roofline_page
from tb_dlprof_plugin.views.tensor_cores import tensor_cores_page
from tb_dlprof_plugin.web.respond import MAX_RESPONSE_BYTES, encode_page

REF = RunRef("run", "trace", 0, 0)
Page = Callable[[Frame, RunRef, Selection], msgspec.Struct]
PAGES: list[Page] = [
    advice_page,
    kernels_page,
    launches_page,
    memory_page,
    modules_page,
    ops_page,
    overview,
    roofline_page,
    tensor_cores_page,
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)
def test_a_page_is_valid_json_of_at_most_a_megabyte(recording: Recording, page: Page) -> None:
    data = encode_page(page(recording.frame, REF, recording.frame.selection()))
    assert len(data) <= MAX_RESPONSE_BYTES
    json.loads(data, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)
def test_no_time_is_negative_and_no_share_is_over_the_whole(recording: Recording, page: Page) -> None:
    content = msgspec.to_builtins(page(recording.frame, REF, recording.frame.selection()))
    # A saving that may as well be a loss says so.
    wrong = [
        (path, value)
        for path, value in _numbers(content)
        if not path.endswith("saving.low_ns")
        if (path.endswith(("_ns", "calls")) and "start" not in path and "time_ns" not in path and value < 0)
        or (path.endswith("percent") and "saving" not in path and not 0 <= value <= 100.000001)
    ]
    assert not wrong


def test_a_run_compared_with_itself_is_the_same(recording: Recording) -> None:
    side = CompareInput(recording.frame, REF, recording.frame.selection())
    page = compare_page(side, side)
    assert page.speedup in (None, 1.0)
    # What no recorded op launched finds no partner.
    assert (page.shares.base.unmatched, page.shares.candidate.compiled) in ((None, None), (0, 0))
    assert sum(bucket.base_ns for bucket in page.buckets) == round(page.base_step_ms * 1e6)
    assert {bucket.difference_ns for bucket in page.buckets} == {0}
    assert all(op.a_ns == op.b_ns for op in page.ops)
    assert all(family.a_ns == family.b_ns for family in page.families)
    assert all(metric.a == metric.b for metric in page.metrics)


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
