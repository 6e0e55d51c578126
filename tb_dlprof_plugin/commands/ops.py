"""``tb-dlprof ops``: the Ops page on the terminal."""

from __future__ import annotations

import typer

from tb_dlprof_plugin.commands.options import Cycle, First, Json, Last, Limit, Rank, Source
from tb_dlprof_plugin.commands.printing import percent, print_json, print_table, time
from tb_dlprof_plugin.commands.source import choose
from tb_dlprof_plugin.views.ops import ops_page


def ops(
    source: Source,
    limit: Limit = 30,
    cycle: Cycle = None,
    rank: Rank = None,
    first: First = None,
    last: Last = None,
    as_json: Json = False,
) -> None:
    """The ops of the model by GPU time: calls, times, Tensor Core eligibility and use, precision, shapes."""
    chosen = choose(source, cycle, rank, first, last)
    page = ops_page(chosen.frame, chosen.ref, chosen.selection)
    if as_json:
        print_json(page)
        return
    typer.echo(f"{page.headline}\n")
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
                str(row.calls),
                time(row.gpu_ns),
                percent(row.gpu_percent),
                time(row.cpu_total_ns),
                row.tc_eligible,
                row.using_tc,
                row.precision,
                row.shapes,
            )
            for row in page.rows[:limit]
        ],
    )
    if page.total_rows > limit:
        typer.echo(f"\n{page.total_rows - limit} more; --limit {page.total_rows} prints all.")
