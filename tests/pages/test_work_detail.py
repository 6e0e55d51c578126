"""What the side panel shows of an op, op type, kernel or module, and the icicle of op types: all add up to the rows."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.metrics.idle_gaps import idle_gaps
from tb_dlprof_plugin.pages.kernels import kernels_page
from tb_dlprof_plugin.pages.op_types import op_types_page
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.pages.related import related
from tb_dlprof_plugin.pages.timeline.event import timeline_event
from tb_dlprof_plugin.pages.work_detail import work_detail
from tb_dlprof_plugin.pages.work_tree import work_tree
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

REF = RunRef("run", "", 0, 0)


@pytest.fixture(params=["fp32", "fp16"])
def view(training, request) -> ProfileView:
    return ProfileView(training(request.param).profile())


def test_an_op_type_adds_up_to_its_row(view: ProfileView) -> None:
    selection = view.selection()
    for row in op_types_page(view, REF, selection).rows:
        detail = work_detail(view, REF, selection, "op_type", row.op_type)
        assert sum(kernel.total_ns for kernel in detail.kernels) == row.gpu_ns
        assert sum(shape.calls for shape in detail.shapes) >= row.calls
        assert sum(shape.cpu_total_ns for shape in detail.shapes) == row.cpu_total_ns
        assert sum(step.gpu_ns or 0 for step in detail.iterations) == row.gpu_ns
        assert sum(op.time_ns for op in detail.ops) == row.gpu_ns
        assert detail.launches.launches == row.kernel_calls
        cores = detail.tensor_cores
        assert cores is not None
        assert (cores.eligible_ns, cores.tc_ns, cores.utilization_percent) == (
            row.eligible_ns,
            row.tc_ns,
            row.utilization_percent,
        )
        assert detail.row is None
        assert detail.name == row.op_type


def test_a_kernel_has_its_launches_by_iteration_and_the_ops_that_launched_it(view: ProfileView) -> None:
    selection = view.selection()
    for row in kernels_page(view, REF, selection).rows:
        detail = work_detail(view, REF, selection, "kernel", row.id)
        assert sum(step.gpu_ns or 0 for step in detail.iterations) == row.total_ns
        assert sum(step.calls for step in detail.iterations) == row.calls
        assert {step.cpu_total_ns for step in detail.iterations} == {None}
        assert [(op.id, op.time_ns) for op in detail.ops[:5]] == [(op.id, op.total_ns) for op in row.ops]
        assert detail.longest is not None
        assert detail.longest.duration_ns == row.max_ns
        assert (detail.rate, detail.memory, detail.kernels, detail.shapes) == (None, None, [], [])
        assert detail.tensor_cores is not None
        assert detail.tensor_cores.using == row.tensor_core
        assert detail.tensor_cores.reason.startswith("Decided by the kernel's name")


def test_a_module_is_what_its_ops_are_together(view: ProfileView) -> None:
    selection = view.selection()
    ops = [op for op in ops_page(view, REF, selection).rows if op.module == "conv1"]
    detail = work_detail(view, REF, selection, "module", "conv1")
    assert {op.id for op in detail.ops} <= {op.id for op in ops}
    assert sum(op.time_ns for op in detail.ops) == sum(op.gpu_ns or 0 for op in ops) > 0
    assert detail.launches.launches == sum(op.kernel_calls for op in ops)
    whole = work_detail(view, REF, selection, "module", ".")
    assert whole.total_ops >= detail.total_ops
    assert [(step.gpu_ns or 0) > 0 for step in whole.iterations] == [True] * len(view.profile.iterations)


def test_the_longest_launch_is_an_event_of_the_timeline(view: ProfileView) -> None:
    selection = view.selection(1, 1)
    op = ops_page(view, REF, selection).rows[0]
    longest = work_detail(view, REF, selection, "op", op.id).longest
    assert longest is not None
    assert longest.index == 1
    event = timeline_event(view, REF, selection, longest.index, longest.event)
    assert event.spot.duration_ns == longest.duration_ns


def test_waits_before_all_ops_and_what_no_op_launched_are_all_gaps_that_work_ended(view: ProfileView) -> None:
    selection = view.selection()
    gaps = idle_gaps(view, selection)
    by_kernel = [
        work_detail(view, REF, selection, "kernel", row.id).launches for row in kernels_page(view, REF, selection).rows
    ]
    assert sum(one.waited_ns for one in by_kernel) == int(gaps.duration_ns[gaps.next >= 0].sum()) > 0
    assert sum(one.waits for one in by_kernel) == int((gaps.next >= 0).sum())


def test_without_a_gpu_there_is_cpu_time_alone(cpu_view: ProfileView) -> None:
    selection = cpu_view.selection()
    row = op_types_page(cpu_view, REF, selection).rows[0]
    detail = work_detail(cpu_view, REF, selection, "op_type", row.op_type)
    assert (detail.tensor_cores, detail.rate, detail.kernels) == (None, None, [])
    assert sum(op.time_ns for op in detail.ops) == row.cpu_total_ns
    assert detail.longest is not None
    assert detail.longest.event.startswith("c")
    assert {step.gpu_ns for step in detail.iterations} == {None}


@pytest.mark.parametrize(("kind", "subject"), [("op", "x"), ("op_type", "x"), ("kernel", "x"), ("module", "x")])
def test_what_did_not_run_is_not_there(view: ProfileView, kind, subject: str) -> None:
    with pytest.raises(KeyError):
        work_detail(view, REF, view.selection(), kind, subject)


def test_what_belongs_to_an_op_type_is_what_belongs_to_its_ops(view: ProfileView) -> None:
    selection = view.selection()
    of_type = related(view, REF, selection, "op_type", "conv2d")
    ops = [op for op in ops_page(view, REF, selection).rows if op.op_type == "conv2d"]
    assert set(of_type.ops) == {op.id for op in ops}
    each = [related(view, REF, selection, "op", op.id) for op in ops]
    assert set(of_type.kernels) == {kernel for one in each for kernel in one.kernels}
    assert set(of_type.modules) == {module for one in each for module in one.modules}


def test_the_tree_has_the_time_of_each_op_and_of_its_kernels(view: ProfileView) -> None:
    selection = view.selection()
    tree = work_tree(view, REF, selection)
    rows = {op.id: op for op in ops_page(view, REF, selection).rows if op.gpu_ns}
    assert {op.id: op.time_ns for op in tree.ops} == {id: op.gpu_ns for id, op in rows.items()}
    for op in tree.ops:
        detail = work_detail(view, REF, selection, "op", op.id)
        assert {tree.kernels[k].id: ns for k, ns in zip(op.kernels, op.kernel_ns, strict=True)} == {
            kernel.id: kernel.total_ns for kernel in detail.kernels
        }


def test_the_tree_of_a_run_without_a_gpu_has_no_kernels(cpu_view: ProfileView) -> None:
    tree = work_tree(cpu_view, REF, cpu_view.selection())
    assert tree.kernels == []
    assert sum(op.time_ns for op in tree.ops) == sum(
        op.cpu_total_ns for op in ops_page(cpu_view, REF, cpu_view.selection()).rows
    )
