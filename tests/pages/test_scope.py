"""The kernels of one op or module, and what the details of an op have of its launches and its rate."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.pages.kernels import kernels_of, kernels_page
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.pages.roofline import roofline_page
from tb_dlprof_plugin.pages.timeline.matches import timeline_matches
from tb_dlprof_plugin.pages.work_detail import work_detail
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

REF = RunRef("run", "", 0, 0)


@pytest.fixture
def view(training) -> ProfileView:
    return ProfileView(training("fp32").profile())


def test_the_kernels_of_an_op_have_its_own_calls_and_times(view: ProfileView) -> None:
    selection = view.selection()
    whole = {row.id: row.total_ns for row in kernels_page(view, REF, selection).rows}
    shared = 0
    for op in ops_page(view, REF, selection).rows:
        page = kernels_of(view, REF, selection, "op", op.id)
        assert sum(row.total_ns for row in page.rows) == op.gpu_ns
        assert sum(row.calls for row in page.rows) == op.kernel_calls
        assert [(row.id, row.total_ns, row.calls) for row in page.rows] == [
            (kernel.id, kernel.total_ns, kernel.calls)
            for kernel in work_detail(view, REF, selection, "op", op.id).kernels
        ]
        assert page.scope is not None
        assert page.scope.name.startswith(op.name)
        shared += sum(row.total_ns < whole[row.id] for row in page.rows)
    assert shared > 0
    assert kernels_page(view, REF, selection).scope is None


def test_the_kernels_of_a_module_are_those_of_its_ops(view: ProfileView) -> None:
    selection = view.selection()
    page = kernels_of(view, REF, selection, "module", "conv1")
    ops = [op for op in ops_page(view, REF, selection).rows if op.module == "conv1"]
    assert sum(row.total_ns for row in page.rows) == sum(op.gpu_ns or 0 for op in ops) > 0
    assert page.headline.startswith("Of conv1 alone: ")


@pytest.mark.parametrize(("kind", "subject"), [("op", "nothing"), ("module", "no.such")])
def test_what_is_not_there_has_no_kernels(view: ProfileView, kind, subject: str) -> None:
    with pytest.raises(KeyError):
        kernels_of(view, REF, view.selection(), kind, subject)


def test_the_details_of_an_op_have_its_row_of_the_roofline_and_its_launches(view: ProfileView) -> None:
    selection = view.selection()
    rows = {row.id: row for row in roofline_page(view, REF, selection).ops}
    for op in ops_page(view, REF, selection).rows:
        detail = work_detail(view, REF, selection, "op", op.id)
        assert detail.launches.launches == op.kernel_calls
        assert (detail.rate is None) == (op.id not in rows)
        if detail.rate is not None:
            assert detail.rate.flops_per_second == rows[op.id].flops_per_second
            assert detail.rate.percent_of_ceiling == rows[op.id].percent_of_ceiling


def test_the_timeline_goes_to_the_longest_work_of_an_op(view: ProfileView) -> None:
    op = ops_page(view, REF, view.selection()).rows[0]
    first = timeline_matches(view, view.selection(), None, op=op.id).first
    assert first is not None
    assert first.id.startswith("g")
