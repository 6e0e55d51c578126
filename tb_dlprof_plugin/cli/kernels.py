"""``tb-dlprof kernels``: the Kernels page on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import percent, print_table, time
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.pages.kernels import KernelsPage, kernels_page


@page_command(kernels_page)
def kernels(page: KernelsPage, sums: Sums, limit: Limit = 30) -> None:
    """List kernels, copies and sets by time.

    With the Tensor Core verdict of each and the rule that decided it.
    """
    say(f"{page.headline} {sums.words}", "")
    print_table(
        (
            ("Kernel", "left"),
            ("family", "left"),
            ("calls", "right"),
            ("time", "right"),
            ("share", "right"),
            ("average", "right"),
            ("Tensor Cores", "left"),
            ("precision", "left"),
            ("rule", "left"),
        ),
        [
            (
                row.short_name + (f" [{row.told_by}]" if row.told_by else ""),
                row.family,
                sums.count(row.calls),
                sums.time(row.total_ns),
                percent(row.percent),
                time(row.average_ns),
                row.tensor_core,
                row.precision,
                row.rule,
            )
            for row in page.rows[:limit]
        ],
    )
    if page.total_rows > limit:
        say("", f"{page.total_rows - limit} more; --limit {page.total_rows} prints all.")
