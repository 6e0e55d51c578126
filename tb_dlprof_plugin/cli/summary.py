"""``tb-dlprof summary``: the Overview page on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import UNKNOWN, percent, print_table, time
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import energy, interval
from tb_dlprof_plugin.pages.common import OpRow, Slice
from tb_dlprof_plugin.pages.gpus import GpuUse
from tb_dlprof_plugin.pages.layers import Layer
from tb_dlprof_plugin.pages.overview import Overview, PerformanceSummary, overview
from tb_dlprof_plugin.pages.quantities import (
    DEVIATION,
    GPU_BUSY,
    JOULES,
    RECORDED_STEP,
    STEP,
    TENSOR_CORE_UTILIZATION,
)
from tb_dlprof_plugin.pages.trust import TrustVerdict
from tb_dlprof_plugin.store.run_ref import RunRef

if TYPE_CHECKING:
    from tb_dlprof_plugin.reports.table import Report

_SHOWN_REGIONS = 3


def _figures(page: Overview) -> Report:
    """One row: the run's identity, and its figures."""
    from tb_dlprof_plugin.api.rows import rows_table
    from tb_dlprof_plugin.reports.table import Report

    named, figures = rows_table(RunRef, [page.ref]), rows_table(PerformanceSummary, [page.summary])
    return Report(named.columns + figures.columns, [named.rows[0] + figures.rows[0]])


@page_command(overview, _figures)
def summary(page: Overview, sums: Sums) -> None:
    """Show where the time of a step goes.

    The step by what it consists of, GPU and Tensor Core utilization, parts of the step, DLProf's time categories, top
    ops. Without a GPU what applies to the CPU alone. What to change says ``tb-dlprof advise``.
    """
    facts = page.summary
    say(page.title, page.headline, "")
    for line in trust_lines(page.trust):
        say(line)
    say()
    print_table(
        (("", "left"), ("", "right")),
        [
            ("Precision", page.precision.label or UNKNOWN),
            *_step_rows(page),
            *(_gpu_rows(facts) if page.has_gpu else [("CPU threads", str(facts.threads))]),
        ],
    )
    if len(page.gpus) > 1:
        say()
        print_rows(GpuUse, page.gpus)
    for line in _precision_lines(page):
        say(line)
    say("", f"{sums.words}")
    # Without a GPU the account has the parts of the step, and DLProf's categories say little.
    others = [("Part of the step", page.parts), ("DLProf's time category", page.resource_usage)] if page.has_gpu else []
    count = facts.aggregated_iterations
    account = [
        Slice(s.key, s.label, None if s.value_ns is None else s.value_ns * count, s.percent) for s in page.account
    ]
    for heading, slices in [("Of a step", account), *others]:
        say()
        print_rows(Slice, [part for part in slices if part.value_ns != 0], sums=sums, headings={"label": heading})
    if page.layers:
        say()
        print_rows(Layer, page.layers, sums=sums)
    say()
    left_out = ("calls", "gpu_percent", "cpu_self_ns", "precision", "shapes")
    print_rows(OpRow, page.top_ops, sums=sums, has_gpu=page.has_gpu, without=left_out, headings={"name": "Top ops"})
    for note in page.notes:
        say("", f"Note: {note.text}" + (f" ({note.count})" if note.count else ""))
    say("", "What to change, and what it saves: tb-dlprof advise")


def _step_rows(page: Overview) -> list[tuple[str, str]]:
    facts = page.summary
    if facts.step_source == "whole":
        return [("Recording", time(facts.recorded_wall_clock_ns)), ("Iterations", "none marked")]
    return [
        (STEP.label, time(facts.average_iteration_ns)),
        ("    95 % interval", interval(facts.step_low_ns, facts.step_high_ns, lambda ns: time(round(ns)))),
        ("        source", page.step_words),
        (RECORDED_STEP.label, time(facts.recorded_iteration_ns)),
        (f"    {DEVIATION.label.lower()}", time(facts.iteration_deviation_ns)),
        ("Iterations", f"{facts.aggregated_iterations} of {facts.total_iterations}"),
    ]


def _gpu_rows(facts: PerformanceSummary) -> list[tuple[str, str]]:
    return [
        (GPU_BUSY.label, percent(facts.gpu_utilization_percent)),
        (TENSOR_CORE_UTILIZATION.label, utilization(facts)),
        *([(JOULES.label, _energy(facts))] if facts.joules_per_step is not None else []),
    ]


def utilization(facts: PerformanceSummary) -> str:
    """The Tensor Core Kernel Utilization, or the range in which it lies."""
    possible = facts.tensor_core_kernel_utilization_possible
    if possible is not None:
        return possible.text
    return percent(facts.tensor_core_kernel_utilization_percent)


def _energy(facts: PerformanceSummary) -> str:
    return f"{energy(facts.joules_per_step or 0.0)} at {facts.watts:,.0f} W"


def _precision_lines(page: Overview) -> list[str]:
    """Evidence of the precision, contradicting settings, and numeric health if known."""
    precision, health = page.precision, page.numeric_health
    lines = ["", *(f"  {sentence}" for sentence in precision.evidence)]
    lines += [f"  But: {sentence}" for sentence in precision.disagreements]
    if precision.regions:
        regions = ", ".join(f"{region.name} in {region.precision}" for region in precision.regions[:_SHOWN_REGIONS])
        more = precision.regions_total - min(_SHOWN_REGIONS, len(precision.regions))
        lines.append(f"  Otherwise: {regions}" + (f" and {more} more." if more else "."))
    if health is not None:
        lines += ["", f"Numeric health: {health.headline}"]
        if health.skipped_iterations:
            noun = "iteration" if len(health.skipped_iterations) == 1 else "iterations"
            lines.append(f"  Skipped in {noun} {', '.join(map(str, health.skipped_iterations))}.")
        if health.loss_scale is not None:
            since = health.steps_since_change
            lines.append(
                f"  Loss scale {health.loss_scale:g}" + ("." if since is None else f", unchanged for {since} steps.")
            )
        if len(health.loss_scales) > 1:
            lines.append(f"  Over cycles: {', '.join(f'{point.scale:g}' for point in health.loss_scales)}.")
    return lines


def trust_lines(trust: TrustVerdict) -> list[str]:
    """The verdict with its first reason, and a line for each other reason."""
    if not trust.reasons:
        return [f"Recording: {trust.verdict}."]
    first, *others = trust.reasons
    return [f"Recording: {trust.verdict}. {first.text}", *(f"  {reason.text}" for reason in others)]
