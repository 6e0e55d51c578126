"""``tb-dlprof sweep``: runs as lines over the one fact in which they differ."""

from __future__ import annotations

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.options import Printing, Sources
from tb_dlprof_plugin.cli.printing import print_page, print_table
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.run_list import read_runs, report_failed
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.pages.sweep import SweepError, SweepPage, SweepRequest, sweep_page, value_text

_NAMES = 6


@takes_requests
def sweep(sources: Sources, request: SweepRequest, printing: Printing) -> None:
    """Show a figure of many runs over batch size, model or GPU.

    Step time, throughput, utilization, memory, or the share of an op or a kernel group, over any fact in which runs
    differ.
    """
    recorded, failed = read_runs(sources)
    report_failed(failed)
    try:
        page = sweep_page(recorded, request, failed)
    except SweepError as error:
        refuse(str(error))
    print_page(page, printing, text=lambda: _print(page))


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
