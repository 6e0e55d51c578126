"""``tb-dlprof op-types``: the Op types page on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import percent, print_table
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.pages.op_types import OpTypesPage, op_types_page

_NONE = "-"


@page_command(op_types_page)
def op_types(page: OpTypesPage, sums: Sums, limit: Limit = 30) -> None:
    """List the types of ops by GPU time.

    With ops, calls, forward and backward time, Tensor Core share and CPU time.
    """
    say(f"{page.headline} {sums.words}", "")
    print_table(
        (
            ("Op type", "left"),
            ("ops", "right"),
            ("calls", "right"),
            ("GPU time", "right"),
            ("share", "right"),
            ("forward", "right"),
            ("backward", "right"),
            ("on Tensor Cores", "right"),
            ("CPU self", "right"),
        ),
        [
            (
                row.op_type,
                str(row.ops),
                sums.count(row.calls),
                sums.time(row.gpu_ns),
                percent(row.percent),
                sums.time(row.forward_ns),
                sums.time(row.backward_ns),
                _NONE if row.eligible_ns == 0 else percent(row.utilization_percent),
                sums.time(row.cpu_self_ns),
            )
            for row in page.rows[:limit]
        ],
    )
    if page.total_rows > limit:
        say("", f"{page.total_rows - limit} more; --limit {page.total_rows} prints all.")
