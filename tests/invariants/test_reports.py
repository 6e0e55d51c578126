"""The reports agree with each other to the nanosecond: for all iterations, a part of them, and with a key node."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from invariants.conftest import Recording
from invariants.properties import Check, NotRecorded, Properties

from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.metrics.kernels import kernel_totals
from tb_dlprof_plugin.metrics.key_node import key_node_candidates, with_key_node
from tb_dlprof_plugin.metrics.modules import module_totals
from tb_dlprof_plugin.metrics.tensor_cores import tensor_core_totals
from tb_dlprof_plugin.model.profile import Attribution
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.registry import REPORTS, make_report
from tb_dlprof_plugin.store.run_ref import RunRef

PROPERTIES = Properties()
REF = RunRef("run", "trace", 0, 0)
Rows = list[dict[str, Any]]
FIGURES = ("CPU", "GPU", "CPU Overhead", "GPU Idle")


class Chosen(NamedTuple):
    """A frame and a selection of it; ``name`` says which."""

    name: str
    view: ProfileView
    selection: Selection

    def __repr__(self) -> str:
        return self.name


@functools.lru_cache(maxsize=1)
def choices(recording: Recording) -> list[Chosen]:
    """All iterations, the later half, the first, and what a key node makes of the recording; each of them once."""
    view = recording.view
    count = len(view.profile.iterations)
    found = [Chosen("all iterations", view, view.selection(0, count - 1))]
    if count > 1:
        found.append(Chosen("the later half", view, view.selection(count // 2, count - 1)))
        found.append(Chosen("the first", view, view.selection(0, 0)))
    if candidates := key_node_candidates(view):
        cut = ProfileView(with_key_node(view.profile, candidates[0][0]))
        found.append(Chosen("with a key node", cut, cut.selection()))
    return found


def for_each_choice(check: Callable[[Chosen], None]) -> Check:
    """The property of a recording that each choice of its iterations has this one.

    It passes over a recording if the property passes over every choice.
    """

    @functools.wraps(check)
    def of_recording(recording: Recording) -> None:
        reasons = []
        for chosen in choices(recording):
            try:
                check(chosen)
            except NotRecorded as reason:
                reasons.append(str(reason))
        if len(reasons) == len(choices(recording)):
            raise NotRecorded("; ".join(sorted(set(reasons))))

    return of_recording


@functools.lru_cache(maxsize=64)
def rows_of(name: str, chosen: Chosen) -> Rows:
    report = make_report(name, chosen.view, REF, chosen.selection)
    return [dict(zip(report.columns, row, strict=True)) for row in report.rows]


@functools.lru_cache(maxsize=4)
def summary_of(chosen: Chosen) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(make_report("summary", chosen.view, REF, chosen.selection).to_json())
    return found


def total(rows: Rows, column: str) -> int:
    return sum(row[column] or 0 for row in rows)


@PROPERTIES.of_every_recording
@for_each_choice
def every_gpu_report_has_the_same_gpu_time(chosen: Chosen) -> None:
    summary = summary_of(chosen)
    kernels = rows_of("kernel", chosen)
    gpu_ns = total(kernels, "Total GPU Time (ns)")
    assert total(rows_of("detail", chosen), "Total GPU Time (ns)") == gpu_ns
    assert total(rows_of("op_type", chosen), "Total GPU Time (ns)") == gpu_ns
    assert total(rows_of("iteration", chosen), "GPU Time (ns)") == gpu_ns
    assert total(rows_of("kernel_groups", chosen), "Total GPU Time (ns)") == gpu_ns
    assert (summary["all_ops"]["all_op"]["gpu_time_ns"] or 0) == gpu_ns
    assert (summary["all_kernels"]["all_kernels"]["gpu_time_ns"] or 0) == gpu_ns
    memory = (summary["all_kernels"]["memory"]["gpu_time_ns"]) or 0
    assert total(rows_of("copies", chosen), "Total Time (ns)") == memory
    assert sum(row["Total GPU Time (ns)"] for row in kernels if row["Kind"] != "kernel") == memory


@PROPERTIES.of_every_recording
@for_each_choice
def it_is_that_of_the_kernels_page_and_of_what_has_no_recorded_launch(chosen: Chosen) -> None:
    view, selection = chosen.view, chosen.selection
    launches = view.profile.launches
    linked = int(kernel_totals(view, selection).total_ns.sum())
    rest = total(rows_of("kernel", chosen), "Total GPU Time (ns)") - linked
    assert 0 <= rest <= int(launches.duration_ns[launches.call < 0].sum())
    if view.profile.iterations.found_by == "key_node":
        # The intervals cover the whole recording; only what begins at its very end lies in none.
        end = int(view.profile.iterations.stop_ns[-1])
        late = (launches.start_ns >= end).any() or (view.profile.calls.start_ns >= end).any()
        assert late or linked + rest == int(launches.duration_ns.sum())


@PROPERTIES.of_every_recording
@for_each_choice
def op_types_have_the_times_and_calls_of_their_ops(chosen: Chosen) -> None:
    ops, types = rows_of("detail", chosen), rows_of("op_type", chosen)
    assert total(ops, "No. Calls") == total(types, "No. Calls")
    assert len(ops) == total(types, "No. Nodes")
    by_type: dict[str, Rows] = {}
    for op in ops:
        by_type.setdefault(op["Op Type"], []).append(op)
    assert set(by_type) == {row["Op Name"] for row in types}
    for figure in FIGURES:
        for row in types:
            mine = by_type[row["Op Name"]]
            known = [op for op in mine if op[f"Min {figure} Time (ns)"] is not None]
            assert (row[f"Total {figure} Time (ns)"] or 0) == total(mine, f"Total {figure} Time (ns)")
            if known:
                assert row[f"Min {figure} Time (ns)"] == min(op[f"Min {figure} Time (ns)"] for op in known)
                assert row[f"Max {figure} Time (ns)"] == max(op[f"Max {figure} Time (ns)"] for op in known)


@PROPERTIES.of_every_recording
@for_each_choice
def no_figure_contradicts_itself(chosen: Chosen) -> None:
    for name in ("detail", "op_type", "group_node"):
        for row in rows_of(name, chosen):
            for figure in FIGURES:
                low, mean, high, whole = (row[f"{what} {figure} Time (ns)"] for what in ("Min", "Avg.", "Max", "Total"))
                if mean is not None:
                    assert 0 <= low <= mean <= high <= whole, (name, row)
            if row["Total CPU Overhead Time (ns)"] is not None:
                assert row["Total CPU Overhead Time (ns)"] <= row["Total CPU Time (ns)"]


@PROPERTIES.of_every_recording
@for_each_choice
def the_summary_counts_each_op_and_each_kernel_once(chosen: Chosen) -> None:
    summary = summary_of(chosen)
    for table, first, number, report in (
        ("all_ops", "all_op", "number_of_ops", "detail"),
        ("all_kernels", "all_kernels", "number_of_kernels", "kernel"),
    ):
        whole = summary[table][first]
        for key in whole:
            parts = [row[key] or 0 for name, row in summary[table].items() if name != first]
            assert (whole[key] or 0) == sum(parts), (table, key)
        rows = rows_of(report, chosen)
        assert whole[number] == len(rows) or (report == "kernel" and whole[number] <= len(rows))
    ops = rows_of("detail", chosen)
    assert total(ops, "Total CPU Time (ns)") == summary_of(chosen)["all_ops"]["all_op"]["cpu_time_ns"]
    assert len({op["Op ID"] for op in ops}) == len(ops)


@PROPERTIES.of_every_recording
@for_each_choice
def kernels_of_an_op_sum_to_it_and_its_eligible_part_is_no_more(chosen: Chosen) -> None:
    of_op: dict[str, int] = {}
    calls: dict[str, int] = {}
    for row in rows_of("kernel", chosen):
        of_op[row["Op ID"]] = of_op.get(row["Op ID"], 0) + row["Total GPU Time (ns)"]
        calls[row["Op ID"]] = calls.get(row["Op ID"], 0) + row["No. Calls"]
    ops = {row["Op ID"]: row for row in rows_of("detail", chosen)}
    for op_id, row in ops.items():
        assert of_op.get(op_id, 0) == (row["Total GPU Time (ns)"] or 0)
        assert calls.get(op_id, 0) == row["No. Kernel Calls"]
    eligible = rows_of("tensor", chosen)
    for row in eligible:
        assert row["Op GPU Time"] == ops[row["Op ID"]]["Total GPU Time (ns)"] >= row["Total GPU Time"]
        parts = row["TC GPU Time"] + row["Non-TC GPU Time"] + row["Unknown GPU Time"]
        assert parts == row["Total GPU Time"]
    # Kernels around which no op was recorded are in no row.
    totals = tensor_core_totals(chosen.view, chosen.selection)
    assert total(eligible, "Total GPU Time") == totals.eligible_ns - totals.without_op_ns
    utilization = summary_of(chosen)["summary_report"]["tensor_core_kernel_utilization_percent"]
    if utilization is not None and not totals.without_op_ns:
        share = 100 * total(eligible, "TC GPU Time") / total(eligible, "Total GPU Time")
        assert utilization == pytest.approx(share)


@PROPERTIES.of_every_recording
@for_each_choice
def api_times_of_kernels_are_those_of_their_launches(chosen: Chosen) -> None:
    launches, kernels = rows_of("iteration", chosen), rows_of("kernel", chosen)
    assert total(launches, "API Call Time (ns)") == total(kernels, "Total API Time (ns)")
    assert (summary_of(chosen)["all_kernels"]["all_kernels"]["cpu_time_ns"] or 0) == total(
        kernels, "Total API Time (ns)"
    )
    assert total(kernels, "No. Calls") == len(launches)
    # A call that launched many, such as that of a CUDA graph, counts once.
    assert total(kernels, "Total API Time (ns)") <= total(rows_of("api", chosen), "Total Time (ns)")


@PROPERTIES.of_every_recording
@for_each_choice
def iterations_are_those_selected(chosen: Chosen) -> None:
    view, selection = chosen.view, chosen.selection
    numbers = view.profile.iterations.number[selection.first : selection.last + 1].tolist()
    assert {row["Iteration"] for row in rows_of("iteration", chosen)} <= set(numbers)
    summary = summary_of(chosen)
    assert (summary["iterations"]["start_iteration"], summary["iterations"]["stop_iteration"]) == (
        numbers[0],
        numbers[-1],
    )
    wall = summary["summary_report"]["wall_clock_time_ns"]
    assert wall == step_totals(view, selection).wall_ns
    shares = [value for key, value in summary["summary_report"].items() if key.endswith("duration_percent")]
    if wall:
        assert sum(share or 0 for share in shares) == pytest.approx(100)


@PROPERTIES.seen_in("hook_amp_bf16", "lenet-amp-fp16")
@for_each_choice
def the_whole_model_holds_what_its_ops_do(chosen: Chosen) -> None:
    rows = rows_of("group_node", chosen)
    totals = module_totals(chosen.view, chosen.selection)
    if not rows or totals is None:
        raise NotRecorded("no modules were recorded")
    outside = totals.outside
    ops = [row for row in rows_of("detail", chosen) if not row["Op Name"].startswith("unassociated_")]
    assert rows[0]["No. Calls Aggregated"] + int(outside.op_calls.sum()) == total(ops, "No. Calls")
    accumulated = (rows[0]["Accumulated GPU Time (ns)"] or 0) + int(outside.gpu_sum_ns.sum())
    assert accumulated == total(ops, "Total GPU Time (ns)")
    for row in rows:
        assert (row["Total GPU Time (ns)"] or 0) <= (row["Accumulated GPU Time (ns)"] or 0)
        assert (row["Total GPU Idle Time (ns)"] or 0) <= (rows[0]["Total GPU Idle Time (ns)"] or 0)


@PROPERTIES.seen_in("hook_amp_bf16", "lenet-amp-fp16")
@for_each_choice
def ops_are_idle_no_longer_than_the_gpu(chosen: Chosen) -> None:
    rows = rows_of("group_node", chosen)
    view = chosen.view
    launches = view.profile.launches
    if not rows or not len(launches):
        raise NotRecorded("no modules or no GPU")
    span = int((launches.start_ns + launches.duration_ns).max() - launches.start_ns.min())
    assert rows[0]["Total GPU Idle Time (ns)"] <= span * max(1, len(view.profile.iterations.gpu_ids))
    assert rows[0]["Total GPU Idle Time (ns)"] <= total(rows_of("detail", chosen), "Total GPU Idle Time (ns)")


@PROPERTIES.of_every_recording
@for_each_choice
def cuda_calls_sum_to_their_time(chosen: Chosen) -> None:
    rows = rows_of("api", chosen)
    if rows and total(rows, "Self Time (ns)"):
        assert sum(row["Time (%)"] for row in rows) == pytest.approx(100)
    for row in rows:
        assert row["Self Time (ns)"] <= row["Total Time (ns)"]


@PROPERTIES.of_every_recording
@for_each_choice
def both_formats_hold_every_row(chosen: Chosen) -> None:
    for name in REPORTS:
        if name == "expert_systems" and chosen.selection != chosen.view.selection():
            continue  # The advice is that of the whole recording.
        report = make_report(name, chosen.view, REF, chosen.selection)
        document = json.loads(report.to_json(), parse_constant=_no_json)
        lines = list(csv.reader(io.StringIO(report.to_csv())))
        if name != "summary":
            assert len(document) == len(report.rows) == len(lines) - 1
            assert tuple(lines[0]) == report.columns
            assert all(len(line) == len(report.columns) for line in lines)


def _no_json(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


@PROPERTIES.seen_in("cuda_training", "torch_2_8_cpu_training")
def a_key_node_keeps_everything_but_the_iterations(recording: Recording) -> None:
    candidates = key_node_candidates(recording.view)
    if not candidates:
        raise NotRecorded("no op was recorded")
    profile = recording.profile
    id_, _, calls = candidates[0]
    cut = with_key_node(profile, id_)
    iterations = cut.iterations
    assert len(iterations) == calls + 1
    assert iterations.number.tolist() == list(range(calls + 1))
    for start, stop in (
        (iterations.start_ns, iterations.stop_ns),
        (iterations.host_start_ns, iterations.host_stop_ns),
    ):
        assert (stop >= start).all()
        assert (start[1:] == stop[:-1]).all()
    wall = np.broadcast_to(iterations.duration_ns[:, None], iterations.category_ns.shape[:2])
    assert (iterations.category_ns.sum(axis=2) == wall).all()
    assert (iterations.category_ns >= 0).all()
    assert cut.calls is profile.calls
    assert cut.launches is profile.launches
    assert (cut.launches.attribution == Attribution.ORPHAN).sum() == (
        profile.launches.attribution == Attribution.ORPHAN
    ).sum()


def test_reports(recording: Recording) -> None:
    PROPERTIES.assert_hold(recording)
