"""The largest modules are rows of the module tree, apart from each other, with the times that the tree has for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.metrics.largest_modules import largest_modules
from tb_dlprof_plugin.metrics.module_tree import module_tree
from tb_dlprof_plugin.metrics.modules import module_totals
from tb_dlprof_plugin.pages.layers import top_layers
from tb_dlprof_plugin.pages.modules import modules_page
from tb_dlprof_plugin.pages.op_types import op_types_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

ROOT = Path(__file__).resolve().parents[2]
RECORDED, TRACES = ROOT / "demo" / "recorded", ROOT / "tests" / "traces"


@pytest.mark.parametrize("run", ["resnet50/fp32", "custom/amp-fp16", "mlp/fp32"])
def test_they_have_the_times_of_the_tree_and_none_lies_in_another(run: str) -> None:
    view = recorded_view(RECORDED / run)
    for selection in (view.selection(), view.selection(3, 5)):
        tree, totals = module_tree(view), module_totals(view, selection)
        assert tree is not None
        assert totals is not None
        found = largest_modules(view, selection, 5)
        assert len(found) == 5
        assert [one.percent for one in found] == sorted((one.percent for one in found), reverse=True)
        for one in found:
            node = tree.path.index(one.path)
            assert one.total_ns == totals.inside.gpu.total[node]
            assert one.forward_ns == totals.forward_gpu_ns[node]
            assert one.backward_ns == totals.backward_gpu_ns[node]
            assert not any(other.path.startswith(f"{one.path}.") for other in found)


def test_a_module_that_holds_most_of_the_model_gives_way_to_those_in_it() -> None:
    view = recorded_view(RECORDED / "custom" / "fp32")
    paths = [one.path for one in largest_modules(view, view.selection(), 5)]
    assert paths[0] == "stem"
    assert all(path.startswith("blocks.") for path in paths[1:])


def test_without_a_gpu_they_have_the_cpu_time_of_the_tree() -> None:
    cpu_view = ProfileView(analyze_trace(TRACES / "cpu_hook.pt.trace.json.gz"))
    tree, totals = module_tree(cpu_view), module_totals(cpu_view, cpu_view.selection())
    assert tree is not None
    assert totals is not None
    found = largest_modules(cpu_view, cpu_view.selection(), 5)
    assert found
    for one in found:
        node = tree.path.index(one.path)
        assert one.total_ns == one.forward_ns + one.backward_ns == totals.inside.cpu.total[node]
        assert one.backward_ns == totals.backward_cpu_ns[node]


def test_the_summary_has_the_share_that_the_page_of_all_modules_has(ref: RunRef) -> None:
    view = recorded_view(RECORDED / "resnet50" / "fp32")
    rows = {row.path: row for row in modules_page(view, ref, view.selection()).rows if row.role is None}
    layers = top_layers(view, view.selection())
    assert [(one.kind, one.percent, one.total_ns, one.holds) for one in layers] == [
        ("module", rows[one.id].gpu_percent, rows[one.id].gpu_ns, rows[one.id].children) for one in layers
    ]


def test_without_modules_the_summary_has_op_types(ref: RunRef) -> None:
    view = ProfileView(analyze_trace(TRACES / "cpu_plain.pt.trace.json.gz"))
    assert module_tree(view) is None
    layers = top_layers(view, view.selection())
    rows = op_types_page(view, ref, view.selection()).rows
    assert layers
    assert [(one.kind, one.id, one.percent) for one in layers] == [
        ("op_type", row.op_type, row.percent) for row in rows[:5] if row.percent
    ]
