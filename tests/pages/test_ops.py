"""The Ops page: its headline says what its table's first row does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tb_dlprof_plugin.pages.op_types import op_types_page
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.pages.work_tree import work_tree
from tb_dlprof_plugin.store.run_ref import RunRef


def test_without_a_gpu_an_op_has_the_time_of_the_calls_inside_it(new_trace: Callable[..., Any], ref: RunRef) -> None:
    # GIVEN conv2d, which only calls another, and sqrt, all of whose time is its own
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.op("aten::conv2d", 5, 80)
    trace.op("aten::mkldnn_convolution", 6, 78)
    trace.op("aten::sqrt", 90, 4)
    view = trace.view()
    selection = view.selection()
    # WHEN the pages on ops are made
    ops, types = ops_page(view, ref, selection), op_types_page(view, ref, selection)
    # THEN all of them have conv2d first, and its share is that of the times they show
    share = 100 * 80 / 84
    assert ops.headline == "conv2d takes 95 % of the CPU time; 2 ops ran. conv2d (forward) is the largest op, 95.2 %."
    assert [ops.rows[0].op_type, types.rows[0].op_type, work_tree(view, ref, selection).ops[0].op_type] == [
        "conv2d"
    ] * 3
    assert abs(types.rows[0].percent - share) < 0.01
    assert types.by_type[0].value_ns == types.rows[0].cpu_total_ns == 80_000
