from __future__ import annotations

from tb_dlprof_plugin.model.profile import Attribution, Profile, Role, Verdict
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef


def _rows(profile: Profile) -> list[tuple[str, str, str, int | None, int | None]]:
    view = ProfileView(profile)
    page = ops_page(view, RunRef("run", "s", 0, 0), view.selection())
    return sorted((row.op_type, row.module, row.direction, row.calls, row.gpu_ns) for row in page.rows)


def test_an_extension_inside_an_annotation_is_a_row_named_after_it(new_trace) -> None:
    # GIVEN Apex' FusedAdam, which launches without any op
    trace = new_trace()
    trace.gpu()
    trace.step(1, 0, 100)
    trace.op("aten::mm", 0, 10)
    trace.launch("gemm", 2, 110, 30)
    trace.annotation("Optimizer.step#FusedAdam.step", 50, 40)
    trace.op("aten::zero_", 52, 5)
    trace.launch("fill", 53, 150, 7)
    trace.launch("multi_tensor_apply_kernel", 60, 160, 20)
    trace.launch("multi_tensor_apply_kernel", 70, 190, 10)
    profile = trace.profile()
    # THEN its launches are attributed, to it alone, and the op next to them keeps its own
    assert (profile.launches.attribution == Attribution.LINKED).all()
    assert [(name, calls, ns) for name, _, _, calls, ns in _rows(profile)] == [
        ("Optimizer.step#FusedAdam.step", 2, 30_000),
        ("mm", 1, 30_000),
        ("zero_", 1, 7_000),
    ]
    groups = ProfileView(profile).groups
    role = {profile.strings[t]: Role(r) for t, r in zip(groups.op_type.tolist(), groups.role.tolist(), strict=True)}
    assert role["Optimizer.step#FusedAdam.step"] == Role.OPTIMIZER


def test_a_launch_in_a_module_but_in_no_op_belongs_to_the_module(new_trace) -> None:
    trace = new_trace()
    trace.module("fc", 0, 10)
    trace.runtime(2, 3, 44)
    trace.kernel("k", 100, 5, 44)
    rows = _rows(trace.profile())
    assert [(name, module, calls, ns) for name, module, _, calls, ns in rows] == [("cudaLaunchKernel", "fc", 1, 5_000)]


def test_the_kernels_of_a_replayed_graph_belong_to_its_launch(new_trace) -> None:
    # GIVEN a graph of two kernels, replayed outside every op: both have the correlation id of the launch
    trace = new_trace()
    trace.gpu()
    trace.op("aten::mm", 0, 5)
    trace.runtime(10, 3, 44, name="cudaGraphLaunch")
    trace.kernel("first", 100, 5, 44)
    trace.kernel("second", 110, 6, 44)
    profile = trace.profile()
    assert ("cudaGraphLaunch", 1, 11_000) in [(name, calls, ns) for name, _, _, calls, ns in _rows(profile)]
    # What the graph computes is not recorded: it is not called eligible.
    eligible = {profile.strings[profile.ops.op_type[i]]: profile.ops.tensor_core_eligible[i] for i in range(2)}
    assert eligible["cudaGraphLaunch"] == Verdict.NO


def test_the_profilers_own_step_names_nothing(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 100)
    trace.op("aten::mm", 0, 5)
    trace.runtime(10, 3, 44)
    trace.kernel("k", 100, 5, 44)
    assert trace.profile().launches.attribution.tolist() == [Attribution.UNATTRIBUTED]
