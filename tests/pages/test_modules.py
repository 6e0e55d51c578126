"""The Modules page: rows that form a tree, unknown where nothing was recorded, and room for ten thousand modules."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.model.profile import Note
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.pages.modules import NOTE_FROM_STACKS, ModuleRow, modules_page
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.pages.tensor_cores import tensor_cores_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.respond import MAX_RESPONSE_BYTES, encode_page

ROOT = Path(__file__).resolve().parents[2]
RECORDED, TRACES = ROOT / "demo" / "recorded", ROOT / "tests" / "traces"


@pytest.fixture(scope="module", params=["resnet50/fp32", "resnet50/amp-fp16", "custom/amp-bf16"])
def view(request: pytest.FixtureRequest) -> ProfileView:
    return recorded_view(RECORDED / request.param)


def _is_a_tree(paths: list[str]) -> bool:
    """Whether each module comes after the one that holds it."""
    return all(path.rpartition(".")[0] in paths[:index] for index, path in enumerate(paths) if path)


def test_modules_and_the_rest_are_all_of_the_time(view: ProfileView, ref: RunRef) -> None:
    page = modules_page(view, ref, view.selection())
    root = page.rows[0]
    assert root.path == ""
    assert sum(row.gpu_percent or 0 for row in (root, *page.outside)) == pytest.approx(100)
    assert sum(row.cpu_percent or 0 for row in (root, *page.outside)) == pytest.approx(100)
    ops = ops_page(view, ref, view.selection()).rows
    assert sum(row.gpu_sum_ns or 0 for row in (root, *page.outside)) == sum(row.gpu_ns or 0 for row in ops)


def test_a_module_shows_what_its_ops_do(view: ProfileView, ref: RunRef) -> None:
    """A leaf's numbers are those of the Ops page's rows with its path."""
    ops = ops_page(view, ref, view.selection()).rows
    leaves = [row for row in modules_page(view, ref, view.selection()).rows if row.path and not row.children]
    assert len(leaves) > 50
    for row in leaves:
        mine = [op for op in ops if op.module == row.path]
        assert row.gpu_sum_ns == sum(op.gpu_ns or 0 for op in mine)
        assert row.kernel_calls == sum(op.kernel_calls for op in mine)
        assert row.op_calls == sum(op.calls for op in mine)
        assert row.ops == len(mine)
        assert row.tc_eligible_ops == sum(op.tc_eligible == "yes" for op in mine)
        assert row.tc_using_ops == sum(op.using_tc == "yes" for op in mine)


def test_the_model_uses_tensor_cores_as_the_run_does(view: ProfileView, ref: RunRef) -> None:
    root = modules_page(view, ref, view.selection()).rows[0]
    cores = tensor_cores_page(view, ref, view.selection())
    assert (root.utilization_percent, root.eligible_ns) == (cores.utilization_percent, cores.eligible_ns)


def test_rows_fall_in_time_and_each_prefix_is_a_tree(view: ProfileView, ref: RunRef) -> None:
    rows = modules_page(view, ref, view.selection()).rows
    times = [row.gpu_ns or 0 for row in rows]
    assert times == sorted(times, reverse=True)
    assert _is_a_tree([row.path for row in rows])
    for row in rows:
        assert row.children == sum(r.path != "" and r.path.rpartition(".")[0] == row.path for r in rows)
    assert sorted(row.order for row in rows) == list(range(len(rows)))


def test_a_shared_relu_runs_three_times_a_step(ref: RunRef) -> None:
    view = recorded_view(RECORDED / "resnet50" / "fp32")
    by_path = {row.path: row for row in modules_page(view, ref, view.selection()).rows}
    assert by_path["layer1.0.relu"].calls_per_iteration == 3
    assert by_path[""].type == "ResNet50"
    assert by_path["conv1"].type == ""


def test_without_a_gpu_its_numbers_are_unknown(cpu_view: ProfileView, ref: RunRef) -> None:
    page = modules_page(cpu_view, ref, cpu_view.selection())
    assert page.headline == "fc takes 67.5 % of the CPU time; 1 module ran and took 67.5 %."
    fc = next(row for row in page.rows if row.path == "fc")
    known = {name for name in ModuleRow.__struct_fields__ if getattr(fc, name) is not None}
    assert {name for name in ModuleRow.__struct_fields__ if name not in known} == {
        "role", "kernel_calls", "tc_eligible_ops", "tc_using_ops", "eligible_ns", "tc_ns", "utilization_percent",
        *(name for name in ModuleRow.__struct_fields__ if name.startswith("gpu_")),
    }  # fmt: skip
    assert (fc.cpu_ns, fc.cpu_forward_ns, fc.cpu_backward_ns) == (104_000, 64_000, 40_000)
    assert [row.role for row in page.outside] == ["optimizer", "dataloader"]
    assert page.outside[0].cpu_forward_ns is None


def test_without_modules_there_are_no_rows(new_trace: Callable[..., Any], ref: RunRef) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.op("aten::add", 10, 10)
    view = trace.view()
    page = modules_page(view, ref, view.selection())
    assert (page.rows, page.outside, page.total_rows) == ([], [], 0)
    assert "not recorded" in page.headline


def test_modules_of_python_stacks_have_types(new_trace: Callable[..., Any], ref: RunRef) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.module("ResNet_0", 5, 50)
    trace.module("ResNet_0.Conv2d_12", 10, 20)
    trace.op("aten::add", 11, 10)
    profile = trace.profile(facts=RunFacts(model="ResNet"))
    profile = dataclasses.replace(profile, notes=[*profile.notes, Note(NOTE_FROM_STACKS, "From stacks.")])
    view = ProfileView(profile)
    page = modules_page(view, ref, view.selection())
    assert page.from_stacks
    assert page.model == "all modules"
    assert {row.path: row.type for row in page.rows} == {"": "", "ResNet_0": "ResNet", "ResNet_0.Conv2d_12": "Conv2d"}


def test_a_recording_with_stacks_has_modules(ref: RunRef) -> None:
    view = ProfileView(analyze_trace(TRACES / "with_stack.pt.trace.json.gz"))
    page = modules_page(view, ref, view.selection())
    assert page.from_stacks
    assert page.rows[0].calls is None
    assert (page.rows[1].path, page.rows[1].type, page.rows[1].calls) == ("SmallNet_0", "SmallNet", 1)
    assert {row.type for row in page.rows[2:]} == {"Conv2d", "BatchNorm2d", "Linear"}
    assert sum(row.gpu_percent or 0 for row in (page.rows[0], *page.outside)) == pytest.approx(100)
    assert all((row.gpu_forward_ns or 0) > 0 and (row.gpu_backward_ns or 0) > 0 for row in page.rows)


def test_ten_thousand_modules_are_cut_to_those_with_most_time(new_trace: Callable[..., Any], ref: RunRef) -> None:
    trace = new_trace()
    trace.step(0, 0, 200_000)
    for index in range(9_900):
        trace.module(f"layers.{index // 100}.parts.{index % 100}", 10 + 10 * index, 5 + index % 4)
        trace.op("aten::add", 11 + 10 * index, 2)
    view = trace.view()
    page = modules_page(view, ref, view.selection())
    assert page.total_rows == len(page.rows) == 9_900 + 2 * 99 + 2
    data = encode_page(page)
    assert len(data) <= MAX_RESPONSE_BYTES
    sent = json.loads(data)
    assert sent["total_rows"] == page.total_rows
    assert 1_000 < len(sent["rows"]) < page.total_rows
    assert _is_a_tree([row["path"] for row in sent["rows"]])
    assert sent["rows"][-1]["cpu_ns"] >= page.rows[len(sent["rows"])].cpu_ns
