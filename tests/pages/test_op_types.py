"""The Op types page: the ops of the Ops page, added up."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.metrics.op_types import op_types
from tb_dlprof_plugin.pages.op_types import op_types_page
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

REF = RunRef("run", "", 0, 0)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_types_add_up_to_the_ops(training, precision: str) -> None:
    view = ProfileView(training(precision).profile())
    selection = view.selection()
    page, ops = op_types_page(view, REF, selection), ops_page(view, REF, selection).rows

    assert sum(row.gpu_ns or 0 for row in page.rows) == sum(op.gpu_ns or 0 for op in ops)
    assert sum(row.ops for row in page.rows) == len(ops)
    assert sum(part.value_ns or 0 for part in page.by_type) == sum(row.gpu_ns or 0 for row in page.rows)
    for row in page.rows:
        assert row.forward_ns + row.backward_ns + row.rest_ns == row.gpu_ns
        assert (row.tc_ns or 0) <= (row.eligible_ns or 0) <= (row.gpu_ns or 0)
    times = [row.gpu_ns or 0 for row in page.rows]
    assert times == sorted(times, reverse=True)
    assert page.headline.startswith(f"{page.rows[0].op_type} takes {page.rows[0].percent:.0f} % of the GPU time")


def test_types_have_the_calls_of_the_report(training) -> None:
    view = ProfileView(training("fp32").profile())
    found = op_types(view, view.selection())
    calls = {name: int(found.statistics.instances[at]) for at, name in enumerate(found.names)}
    for row in op_types_page(view, REF, view.selection()).rows:
        assert row.calls == calls[row.op_type]


def test_without_a_gpu_the_time_is_that_of_the_cpu(cpu_trace) -> None:
    view = ProfileView(cpu_trace.profile())
    page = op_types_page(view, REF, view.selection())
    assert all(row.gpu_ns is None and row.utilization_percent is None for row in page.rows)
    assert sum(part.value_ns or 0 for part in page.by_type) == sum(row.cpu_total_ns for row in page.rows) > 0
    assert "of the CPU time" in page.headline
