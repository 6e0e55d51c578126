"""``tb-dlprof report``: DLProf's textual reports as CSV and JSON files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.commands.options import Cycle, First, Last, Rank, Source
from tb_dlprof_plugin.commands.source import choose
from tb_dlprof_plugin.measures import Frame, Selection
from tb_dlprof_plugin.views.common import RunRef
from tb_dlprof_plugin.views.reports.expert_systems import expert_systems_report
from tb_dlprof_plugin.views.reports.table import FORMATS, Report
from tb_dlprof_plugin.views.reports.tensor import tensor_report

REPORTS: dict[str, Callable[[Frame, RunRef, Selection], Report]] = {
    "tensor": tensor_report,
    "expert_systems": expert_systems_report,
}
"""Each report by DLProf's name for it."""


def report(
    source: Source,
    reports: Annotated[str, typer.Option(help=f"Which, with commas between: {', '.join(REPORTS)}; or all.")] = "all",
    formats: Annotated[str, typer.Option(help="csv, json, or both with a comma between.")] = "csv",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for dlprof_REPORT.FORMAT. One report in one format is printed where it is left out."),
    ] = None,
    cycle: Cycle = None,
    rank: Rank = None,
    first: First = None,
    last: Last = None,
) -> None:
    """DLProf's reports.

    `tensor` lists the eligible ops, their kernels on and off the Tensor Cores, and the reason; `expert_systems` the
    problems found, each with what to do and what that should save.
    """
    names = list(REPORTS) if reports.strip() == "all" else _chosen("report", reports, REPORTS)
    kinds = _chosen("format", formats, FORMATS)
    chosen = choose(source, cycle, rank, first, last)
    made = {name: REPORTS[name](chosen.frame, chosen.ref, chosen.selection) for name in names}
    if out is None and len(names) == len(kinds) == 1:
        sys.stdout.write(FORMATS[kinds[0]](made[names[0]]))
        return
    folder = out or Path()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in made.items():
            for kind in kinds:
                path = folder / f"dlprof_{name}.{kind}"
                path.write_text(FORMATS[kind](table), encoding="utf-8")
                typer.echo(path)
    except OSError as error:
        typer.echo(f"tb-dlprof: {folder} cannot be written: {error}", err=True)
        raise typer.Exit(2) from None


def _chosen(what: str, text: str, known: Collection[str]) -> list[str]:
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        typer.echo(f"tb-dlprof: no {what} {', '.join(wrong) or 'was named'}; there is {', '.join(known)}.", err=True)
        raise typer.Exit(2)
    return names
