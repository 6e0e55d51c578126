"""``tb-dlprof kernels``: the Kernels page on the terminal."""

from __future__ import annotations

import typer

from tb_dlprof_plugin.commands.options import Cycle, First, Json, Last, Limit, Rank, Source
from tb_dlprof_plugin.commands.printing import percent, print_json, print_table, time
from tb_dlprof_plugin.commands.source import choose
from tb_dlprof_plugin.views.kernels import kernels_page


def kernels(
    source: Source,
    limit: Limit = 30,
    cycle: Cycle = None,
    rank: Rank = None,
    first: First = None,
    last: Last = None,
    as_json: Json = False,
) -> None:
    """Every kernel, copy and set by time, with its Tensor Core verdict and the rule that decided it."""
    chosen = choose(source, cycle, rank, first, last)
    page = kernels_page(chosen.frame, chosen.ref, chosen.selection)
    if as_json:
        print_json(page)
        return
    typer.echo(f"{page.headline}\n")
    print_table(
        (
            ("Kernel", "left"),
            ("family", "left"),
            ("calls", "right"),
            ("total", "right"),
            ("share", "right"),
            ("average", "right"),
            ("Tensor Cores", "left"),
            ("precision", "left"),
            ("rule", "left"),
        ),
        [
            (
                row.short_name,
                row.family,
                str(row.calls),
                time(row.total_ns),
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
        typer.echo(f"\n{page.total_rows - limit} more; --limit {page.total_rows} prints all.")
