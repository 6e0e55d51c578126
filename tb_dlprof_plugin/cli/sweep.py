"""``tb-dlprof sweep``: runs as lines over the one fact in which they differ."""

from __future__ import annotations

from typing import Annotated

import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.options import Output, OutputFormat, Sources, TableName
from tb_dlprof_plugin.cli.printing import print_page, print_table
from tb_dlprof_plugin.cli.run_list import read_runs, report_failed
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.comparison.run_table import FACTS
from tb_dlprof_plugin.pages.sweep import MEASURES, SweepChoice, SweepError, SweepPage, sweep_page, value_text

_NAMES = 6


def sweep(
    sources: Sources,
    over: Annotated[
        str | None,
        typer.Option(help=f"Fact on the x axis: {', '.join(FACTS)}; by default the one with most lines."),
    ] = None,
    measure: Annotated[str | None, typer.Option(help=f"Figure: {', '.join(MEASURES)}; step_time by default.")] = None,
    op: Annotated[str | None, typer.Option(help="Show the share of this type of op, such as max_pool2d.")] = None,
    direction: Annotated[
        str | None, typer.Option(help="Direction of the op: forward or backward; both by default.")
    ] = None,
    kernel_group: Annotated[
        str | None, typer.Option(help="Show the share of these kernels, such as convolution.winograd or copy.")
    ] = None,
    output: Output = OutputFormat.text,
    table: TableName = None,
) -> None:
    """Show a figure of many runs over batch size, model or GPU.

    Step time, throughput, utilization, memory, or the share of an op or a kernel group, over any fact in which runs
    differ.
    """
    # An op or a kernel group implies the measure "share".
    chosen = measure or ("share" if op or kernel_group else "step_time")
    recorded, failed = read_runs(sources)
    report_failed(failed)
    try:
        page = sweep_page(recorded, SweepChoice(over, chosen, kernel_group, op, direction), failed)
    except SweepError as error:
        refuse(str(error))
    print_page(page, output, table, text=lambda: _print(page))


def _print(page: SweepPage) -> None:
    say(f"{page.headline}", "")
    if page.curves:
        used = sorted({mark.position for curve in page.curves for mark in curve.marks})
        print_table(
            ((page.over_label, "left"), *((curve.label, "right") for curve in page.curves)),
            [(page.positions[at], *(_at(page, line, at) for line in range(len(page.curves)))) for at in used],
        )
        if page.common:
            say("", f"All of them: {', '.join(page.common)}.")
    for note in page.notes:
        say(f"Note: {note}")
    for why in dict.fromkeys(left.why for left in page.left_out):
        names = [left.run for left in page.left_out if left.why == why]
        listed = ", ".join(names[:_NAMES]) + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")
        say(f"Left out, because {why}: {listed}.")


def _at(page: SweepPage, line: int, position: int) -> str:
    mark = next((mark for mark in page.curves[line].marks if mark.position == position), None)
    return "" if mark is None else f"{'~' if mark.estimated else ''}{value_text(mark.value, page.unit)}"
