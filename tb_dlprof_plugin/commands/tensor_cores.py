"""``tb-dlprof tensor-cores``: the Tensor Cores page on the terminal."""

from __future__ import annotations

import typer

from tb_dlprof_plugin.commands.options import Cycle, First, Json, Last, Limit, Rank, Source
from tb_dlprof_plugin.commands.printing import percent, print_json, print_table, time
from tb_dlprof_plugin.commands.source import choose
from tb_dlprof_plugin.views.tensor_cores import tensor_cores_page


def tensor_cores(
    source: Source,
    limit: Limit = 30,
    cycle: Cycle = None,
    rank: Rank = None,
    first: First = None,
    last: Last = None,
    as_json: Json = False,
) -> None:
    """The ops that can use Tensor Cores: whether they do, at which precision, and why not."""
    chosen = choose(source, cycle, rank, first, last)
    page = tensor_cores_page(chosen.frame, chosen.ref, chosen.selection)
    if as_json:
        print_json(page)
        return
    typer.echo(f"{page.headline}\n")
    if page.by_precision:
        print_table(
            (("Eligible kernel time", "left"), ("time", "right"), ("share", "right")),
            [(s.label, time(s.value_ns), percent(s.percent)) for s in page.by_precision],
        )
        typer.echo("")
    print_table(
        (
            ("Op", "left"),
            ("direction", "left"),
            ("using TC", "left"),
            ("precision", "left"),
            ("kernel time", "right"),
            ("on Tensor Cores", "right"),
            ("reason", "left"),
        ),
        [
            (
                op.name,
                op.direction,
                op.using_tc,
                op.precision,
                time(op.gpu_ns),
                percent(op.utilization_percent),
                op.reason,
            )
            for op in page.ops[:limit]
        ],
    )
    if page.total_rows > limit:
        typer.echo(f"\n{page.total_rows - limit} more; --limit {page.total_rows} prints all.")
