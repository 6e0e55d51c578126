"""``tb-dlprof compare``: the Compare page on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.commands.options import Json, Limit
from tb_dlprof_plugin.commands.printing import UNKNOWN, percent, print_json, print_table, time
from tb_dlprof_plugin.commands.source import choose
from tb_dlprof_plugin.views.compare import CompareInput, CompareMetric, compare_page


def compare(
    base: Annotated[Path, typer.Argument(help="The base run: its directory, event file or trace.")],
    candidate: Annotated[Path, typer.Argument(help="The run to hold against it.")],
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """Two runs side by side, per iteration: step time, categories, kernels, Tensor Core time, ops."""
    sides = [choose(path, None, None, None, None) for path in (base, candidate)]
    page = compare_page(*(CompareInput(side.frame, side.ref, side.selection) for side in sides))
    if as_json:
        print_json(page)
        return
    typer.echo(f"Base: {page.a.title}\nCandidate: {page.b.title}\n{page.headline}\n")
    print_table(
        (("per iteration", "left"), ("base", "right"), ("candidate", "right"), ("gain", "right")),
        [(m.label, _value(m, m.a), _value(m, m.b), "-" if m.gain is None else f"{m.gain:.2f}") for m in page.metrics],
    )
    typer.echo("")
    print_table(
        (
            (f"Op ({page.basis.upper()} time)", "left"),
            ("direction", "left"),
            ("base", "right"),
            ("candidate", "right"),
            ("speedup", "right"),
            ("precision", "left"),
        ),
        [
            (
                op.name,
                op.direction,
                "absent" if op.a_ns is None else time(op.a_ns),
                "absent" if op.b_ns is None else time(op.b_ns),
                "-" if op.speedup is None else f"{op.speedup:.2f}",
                f"{op.a_precision or UNKNOWN} -> {op.b_precision or UNKNOWN}",
            )
            for op in page.ops[:limit]
        ],
    )
    for warning in page.warnings:
        typer.echo(f"\nNote: {warning}")


def _value(metric: CompareMetric, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if metric.unit == "ns":
        return time(value)
    if metric.unit == "percent":
        return percent(value)
    if metric.unit == "bytes":
        return f"{value / 2**30:.2f} GiB"
    return f"{value:,.1f}" if metric.unit == "per_second" else f"{value:,.0f}"
