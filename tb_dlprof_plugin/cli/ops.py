"""``tb-dlprof ops``: the Ops page on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import percent, print_table
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.pages.ops import OpsPage, ops_page


@page_command(ops_page)
def ops(page: OpsPage, sums: Sums, limit: Limit = 30) -> None:
    """List the ops of the model by GPU time.

    With calls, times, Tensor Core eligibility and use, precision and shapes.
    """
    say(f"{page.headline} {sums.words}", "")
    print_table(
        (
            ("Op", "left"),
            ("direction", "left"),
            ("calls", "right"),
            ("GPU time", "right"),
            ("share", "right"),
            ("CPU time", "right"),
            ("eligible", "left"),
            ("using TC", "left"),
            ("precision", "left"),
            ("shapes", "left"),
        ),
        [
            (
                row.name,
                row.direction,
                sums.count(row.calls),
                sums.time(row.gpu_ns),
                percent(row.gpu_percent),
                sums.time(row.cpu_total_ns),
                row.tc_eligible,
                row.using_tc,
                row.precision,
                row.shapes,
            )
            for row in page.rows[:limit]
        ],
    )
    if page.total_rows > limit:
        say("", f"{page.total_rows - limit} more; --limit {page.total_rows} prints all.")
