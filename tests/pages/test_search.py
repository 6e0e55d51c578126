"""The search, and what belongs together: the ids of the pages, the best names first, names read once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.pages import search
from tb_dlprof_plugin.pages.kernels import kernels_page
from tb_dlprof_plugin.pages.modules import modules_page
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.pages.related import related
from tb_dlprof_plugin.pages.search import HITS_PER_KIND, search_page
from tb_dlprof_plugin.pages.work_detail import work_detail
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"


@pytest.fixture(scope="module")
def view() -> ProfileView:
    return recorded_view(RECORDED / "resnet50" / "fp32")


def test_whole_parts_of_a_name_come_first_then_the_most_time(view: ProfileView, ref: RunRef) -> None:
    page = search_page(view, ref, view.selection(), "Layer1 conv2")
    ops = [hit for hit in page.hits if hit.kind == "op"]
    assert page.found["op"] > len([hit for hit in ops if hit.fit == 0]) == 6
    assert {hit.label for hit in ops[:6]} == {f"layer1.{block}.conv2/conv2d" for block in range(3)}
    assert [hit.value_ns for hit in ops[:6]] == sorted((hit.value_ns for hit in ops[:6]), reverse=True)
    assert {hit.id for hit in page.hits if hit.kind == "module"} == {f"layer1.{block}.conv2" for block in range(3)}


def test_backward_ops_are_found_by_both_words(view: ProfileView, ref: RunRef) -> None:
    hits = search_page(view, ref, view.selection(), "layer3 conv2 backward").hits
    assert {hit.detail for hit in hits} == {"backward"}
    assert search_page(view, ref, view.selection(), "layer3 conv2 bprop").hits == hits
    assert {hit.detail for hit in search_page(view, ref, view.selection(), "optimizer").hits if hit.kind == "op"} == {
        "optimizer"
    }


def test_hits_carry_the_ids_and_times_of_the_pages(view: ProfileView, ref: RunRef) -> None:
    selection = view.selection(2, 4)
    pages = {
        "op": {row.id: row.gpu_ns for row in ops_page(view, ref, selection).rows},
        "kernel": {row.id: row.total_ns for row in kernels_page(view, ref, selection).rows},
        "module": {row.path: row.gpu_ns for row in modules_page(view, ref, selection).rows},
    }
    page = search_page(view, ref, selection, "conv")
    for kind, rows in pages.items():
        hits = [hit for hit in page.hits if hit.kind == kind]
        assert 0 < len(hits) <= HITS_PER_KIND
        assert all(rows[hit.id] == hit.value_ns for hit in hits), kind


def test_an_op_that_does_not_run_in_the_selection_is_not_found(new_trace: Callable[..., Any], ref: RunRef) -> None:
    trace = new_trace()
    for index, op in enumerate(("aten::conv2d", "aten::conv1d")):
        trace.step(index, 100 * index, 100)
        trace.op(op, 100 * index + 10, 20)
    view = trace.view()
    page = search_page(view, ref, view.selection(1, 1), "conv")
    assert [(hit.kind, hit.label) for hit in page.hits if hit.kind == "op"] == [("op", "conv1d")]


def test_rules_and_reports_are_found_and_nothing_is_made_up(view: ProfileView, ref: RunRef) -> None:
    page = search_page(view, ref, view.selection(), "mixed precision")
    assert "amp_not_used" in {hit.id for hit in page.hits if hit.kind == "rule"}
    assert search_page(view, ref, view.selection(), "copies").hits[-1].kind == "report"
    assert search_page(view, ref, view.selection(), "no such thing").hits == []
    assert search_page(view, ref, view.selection(), "  ").hits == []


@pytest.mark.parametrize("names", [search._op_names, search._kernel_names, search._module_names])
def test_a_second_search_does_not_read_the_names_again(view: ProfileView, names: Callable[..., object]) -> None:
    assert names(view, view.selection()) is names(view, view.selection())


def test_what_belongs_to_an_op_a_kernel_and_a_module_agrees(view: ProfileView, ref: RunRef) -> None:
    selection = view.selection()
    row = ops_page(view, ref, selection).rows[0]
    of_op = related(view, ref, selection, "op", row.id)
    assert (of_op.ops, of_op.modules) == ([row.id], [row.module])
    assert set(of_op.kernels) == {kernel.id for kernel in work_detail(view, ref, selection, "op", row.id).kernels}
    of_kernel = related(view, ref, selection, "kernel", of_op.kernels[0])
    assert row.id in of_kernel.ops
    of_module = related(view, ref, selection, "module", row.module.partition(".")[0])
    assert set(of_op.ops) < set(of_module.ops)
    assert set(of_op.kernels) <= set(of_module.kernels)
    outside = related(view, ref, selection, "module", ":optimizer")
    assert outside.ops
    assert not set(outside.ops) & set(related(view, ref, selection, "module", ".").ops)
    for kind in ("op", "kernel", "module"):
        with pytest.raises(KeyError):
            related(view, ref, selection, kind, "gone")
