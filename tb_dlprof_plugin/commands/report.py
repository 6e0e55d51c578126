"""``tb-dlprof report``: DLProf's textual reports, and some of ours, as CSV and JSON files from a recorded run."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.commands.options import Cycle, Rank, Source
from tb_dlprof_plugin.commands.refusal import refuse
from tb_dlprof_plugin.commands.source import choose
from tb_dlprof_plugin.frame import Frame
from tb_dlprof_plugin.measures.iteration_range import by_number
from tb_dlprof_plugin.measures.key_node import with_key_node
from tb_dlprof_plugin.views.reports.files import BASE_NAME, write_reports
from tb_dlprof_plugin.views.reports.registry import ALIASES, REPORTS, make_report
from tb_dlprof_plugin.views.reports.table import FORMATS, Report

ReportNames = Annotated[
    str, typer.Option("--reports", help=f"Which, with commas between: {', '.join(REPORTS)}; or all.")
]
FormatNames = Annotated[str, typer.Option("--formats", help="csv, json, or both with a comma between.")]
OutputPath = Annotated[
    Path | None,
    typer.Option("--output-path", help="Folder for NAME_REPORT.FORMAT; made if missing. Files in it are replaced."),
]
BaseName = Annotated[
    str | None,
    typer.Option("--base-name", help=f"NAME in the file names and in the summary.  [default: {BASE_NAME}]"),
]
KeyNode = Annotated[
    str | None,
    typer.Option(
        "--key-node", help="Op that delimits iterations: its Op ID or Op Name in the detail report, or an annotation."
    ),
]
IterStart = Annotated[
    int | None, typer.Option("--iter-start", help="Number of the first iteration to aggregate, as the training counts.")
]
IterStop = Annotated[
    int | None, typer.Option("--iter-stop", help="Number of the last iteration to aggregate, inclusive.")
]


def report(
    source: Source,
    reports: ReportNames = "all",
    formats: FormatNames = "csv",
    output_path: OutputPath = None,
    base_name: BaseName = None,
    key_node: KeyNode = None,
    iter_start: IterStart = None,
    iter_stop: IterStop = None,
    cycle: Cycle = None,
    rank: Rank = None,
) -> None:
    """DLProf's reports, without profiling again.

    `summary`, `detail`, `iteration`, `kernel`, `tensor`, `op_type`, `group_node` and `expert_systems` are DLProf's;
    `averages` is torch's table, `api` has CUDA calls by name, `copies` copies by size, `kernel_groups` kernels by what
    they do.

    One report in one format is printed where neither a folder nor a name is given; else files are written.
    """
    names = report_names(reports)
    kinds = format_names(formats)
    check_base_name(base_name)
    chosen = choose(source, cycle, rank, None, None)
    try:
        frame = chosen.frame if key_node is None else Frame(with_key_node(chosen.frame.profile, key_node))
        selection = by_number(frame, iter_start, iter_stop)
    except ValueError as error:
        refuse(f"{error}.")
    made = {name: make_report(name, frame, chosen.ref, selection, profile_name=base_name) for name in names}
    if output_path is None and base_name is None and len(names) == len(kinds) == 1:
        sys.stdout.write(FORMATS[kinds[0]](made[names[0]]))
    else:
        write(made, kinds, output_path or Path(), base_name or BASE_NAME)
    print_notes(made.items())


def report_names(text: str) -> list[str]:
    """The reports that an option names; ends the command with one sentence where there is none of a name."""
    if "all" in (part.strip() for part in text.split(",")):
        return list(REPORTS)
    return _chosen("report", text, REPORTS, [*REPORTS, *ALIASES])


def format_names(text: str) -> list[str]:
    """The formats that an option names; ends the command with one sentence where there is none of a name."""
    return _chosen("format", text, FORMATS, FORMATS)


def check_base_name(name: str | None) -> None:
    """Ends the command with one sentence where the name cannot begin a file's name."""
    if name is not None and (not name.strip() or Path(name).name != name):
        refuse(f"the base name {name!r} cannot begin a file name; choose the folder with --output-path.")


def write(reports: dict[str, Report], formats: list[str], folder: Path, base_name: str) -> None:
    """Writes the files and prints their paths; ends the command with one sentence where that fails."""
    try:
        for path in write_reports(reports, formats, folder, base_name):
            typer.echo(path)
    except OSError as error:
        refuse(f"{folder} cannot be written: {error}")


def print_notes(reports: Iterable[tuple[str, Report]]) -> None:
    """What could not be had, each sentence once with the reports it is about, on stderr."""
    about: dict[str, list[str]] = {}
    for name, made in reports:
        for note in made.notes:
            about.setdefault(note, []).append(name)
    for note, names in about.items():
        typer.echo(f"Note ({', '.join(names)}): {note}", err=True)


def _chosen(what: str, text: str, shown: Collection[str], known: Collection[str]) -> list[str]:
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        refuse(f"no {what} {', '.join(wrong) or 'was named'}; there is {', '.join(shown)}.")
    return names
