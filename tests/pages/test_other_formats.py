"""Pages of other profilers' recordings: what these do not record is unknown, not 0 and not "no"."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.names.kernel_rules import WHOLE_GRAPH
from tb_dlprof_plugin.pages.ops import op_rows
from tb_dlprof_plugin.profile_view import ProfileView

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def jax() -> ProfileView:
    return ProfileView(analyze_ranks(TESTS / "readers" / "xplane" / "jax_h200.xplane.pb.gz")[0])


def test_ops_in_command_buffers_have_no_cpu_time(jax: ProfileView) -> None:
    products = [row for row in op_rows(jax, jax.selection()) if row.op_type == "dot_general"]
    assert products
    assert {(row.cpu_total_ns, row.cpu_self_ns) for row in products} == {(None, None)}


def test_the_update_of_parameters_is_no_part_of_the_forward_pass(jax: ProfileView) -> None:
    rows = [row for row in op_rows(jax, jax.selection()) if row.op_type == "sub" and "." not in row.module]
    assert rows
    assert {row.direction for row in rows} == {""}


def test_what_a_graph_recorded_whole_computes_is_unknown() -> None:
    view = ProfileView(analyze_ranks(TESTS / "traces" / "nsys" / "cuda_graph_whole.sqlite.gz")[0])
    strings, kernels = view.profile.strings, view.profile.kernels
    assert WHOLE_GRAPH in {strings[rule] for rule in kernels.rule.tolist()}
    whole = [strings[rule] == WHOLE_GRAPH for rule in kernels.rule[view.profile.launches.kernel].tolist()]
    groups = {view.groups.ids[group] for group in view.launch_group[whole].tolist() if group >= 0}
    rows = [row for row in op_rows(view, view.selection()) if row.id in groups]
    assert {(row.tc_eligible, row.using_tc) for row in rows} == {("unknown", "unknown")}
