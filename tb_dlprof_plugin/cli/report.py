"""``tb-dlprof report``: DLProf's reports, and additional ones, as CSV and JSON files from a recorded run."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from enum import Enum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.open_profile import open_profile
from tb_dlprof_plugin.cli.options import OptionalSource, OutputFormat
from tb_dlprof_plugin.cli.printing import check_output, print_json, print_table
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.terminal import as_markdown, say, write_bytes
from tb_dlprof_plugin.metrics.iteration_range import by_number
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.model.run_choice import ProfileChoice
from tb_dlprof_plugin.pages.report_titles import TITLES
from tb_dlprof_plugin.readers.options import Markers
from tb_dlprof_plugin.reports.parquet import MISSING, has_pyarrow
from tb_dlprof_plugin.reports.registry import ALIASES, BASE_NAME, REPORTS, make_report, write_reports
from tb_dlprof_plugin.reports.table import FORMATS, Report, csv_cells

_PIPED_WIDTH = 100_000
"""Width in characters: reports have many columns and long names, which are not cut in a pipe."""
ReportNames = Annotated[
    str, typer.Option("--reports", help=f"Reports, separated by commas: {', '.join(REPORTS)}; or all.")
]
FormatNames = Annotated[str, Option(f"Formats of the files, separated by commas: {', '.join(FORMATS)}.")]
OutputPath = Annotated[
    Path | None,
    typer.Option(
        "--output-path", help="Directory for the files NAME_REPORT.FORMAT; made if missing. Old ones are replaced."
    ),
]
BaseName = Annotated[str | None, Option(f"NAME in the file names and in the summary.  [default: {BASE_NAME}]")]
KeyNode = Annotated[
    str | None,
    typer.Option(
        "--key-node", help="Op that separates iterations: its Op ID or Op Name in the detail report, or an annotation."
    ),
]
IterStart = Annotated[
    int | None, typer.Option("--iter-start", help="Number of the first iteration to aggregate, as in the training.")
]
Printed = Annotated[
    OutputFormat | None,
    typer.Option("--format", help="Print the reports instead of writing files; CSV and Parquet print one report."),
]
IterStop = Annotated[
    int | None, typer.Option("--iter-stop", help="Number of the last iteration to aggregate, inclusive.")
]


class ReportMode(str, Enum):
    """DLProf's modes: what the ranges of a recording are."""

    auto = "auto"
    simple = "simple"
    pytorch = "pytorch"
    tensorflow = "tensorflow"
    tensorflow1 = "tensorflow1"
    tensorflow2 = "tensorflow2"
    tensorrt = "tensorrt"
    jax = "jax"


_MARKERS = {
    ReportMode.auto: Markers.AUTO,
    ReportMode.simple: Markers.NONE,
    ReportMode.pytorch: Markers.PYPROF,
    ReportMode.tensorflow: Markers.TENSORFLOW,
    ReportMode.tensorflow1: Markers.TENSORFLOW,
    ReportMode.tensorflow2: Markers.TENSORFLOW,
    ReportMode.tensorrt: Markers.TENSORRT,
    ReportMode.jax: Markers.XLA,
}


@takes_requests
def report(
    source: OptionalSource = None,
    reports: ReportNames = "all",
    formats: FormatNames = "csv",
    output_path: OutputPath = None,
    base_name: BaseName = None,
    key_node: KeyNode = None,
    iter_start: IterStart = None,
    iter_stop: IterStop = None,
    output: Printed = None,
    database: Annotated[
        Path | None,
        typer.Option(help="A recording in place of RUN, as dlprof had it: a database of Nsight Systems or nvprof."),
    ] = None,
    mode: Annotated[
        ReportMode | None,
        typer.Option("--mode", "-m", help="What the ranges of a recording are; auto by default, simple ignores them."),
    ] = None,
    *,
    choice: ProfileChoice,
) -> None:
    """Write DLProf's reports from a recorded run.

    `summary`, `detail`, `iteration`, `kernel`, `tensor`, `op_type`, `group_node` and `expert_systems` are DLProf's;
    `averages` is torch's table, `api` lists CUDA calls by name, `copies` copies by size, `kernel_groups` kernels by
    purpose.

    One report in one format is printed if neither a directory nor a name is given; else files are written.
    """
    if (source is None) == (database is None):
        refuse("name a run or a recording, or --database FILE, and not both")
    recording = source or database
    assert recording is not None
    names = report_names(reports)
    kinds = format_names(formats)
    check_base_name(base_name)
    _check_printed(output, names, kinds, output_path)
    try:
        view, ref = open_profile(recording, choice, key_node, None if mode is None else _MARKERS[mode])
        selection = by_number(view, iter_start, iter_stop)
    except ValueError as error:
        refuse(f"{error}.")
    made = {name: make_report(name, view, ref, selection, profile_name=base_name) for name in names}
    if output is not None:
        print_reports(made, output)
    elif output_path is None and base_name is None and len(names) == len(kinds) == 1:
        check_output(OutputFormat(kinds[0]))
        write_bytes(FORMATS[kinds[0]](made[names[0]]))
    else:
        write(made, kinds, output_path or Path(), base_name or BASE_NAME)
    print_notes(made.items())


def report_names(text: str) -> list[str]:
    """The reports that an option names; ends the command with one sentence if one does not exist."""
    if "all" in (part.strip() for part in text.split(",")):
        return list(REPORTS)
    return _chosen("report", text, REPORTS, [*REPORTS, *ALIASES])


def format_names(text: str) -> list[str]:
    """The formats that an option names; ends the command with one sentence if one does not exist."""
    kinds = _chosen("format", text, FORMATS, FORMATS)
    if "parquet" in kinds and not has_pyarrow():
        refuse(MISSING)
    return kinds


def check_base_name(name: str | None) -> None:
    """Ends the command with one sentence if a file name cannot begin with the name."""
    if name is not None and (not name.strip() or Path(name).name != name):
        refuse(f"the base name {name!r} cannot begin a file name; choose the folder with --output-path.")


def write(reports: dict[str, Report], formats: list[str], folder: Path, base_name: str) -> None:
    """Writes the files and prints their paths; ends the command with one sentence if that fails."""
    try:
        for path in write_reports(reports, formats, folder, base_name):
            say(path)
    except OSError as error:
        refuse(f"{folder} cannot be written: {error}")


def print_reports(reports: dict[str, Report], output: OutputFormat) -> None:
    """Reports on standard output; several in JSON are one object with an entry for each."""
    if output.is_text:
        with as_markdown() if output is OutputFormat.markdown else contextlib.nullcontext():
            for name, made in reports.items():
                say(f"{TITLES[ALIASES.get(name, name)][0]}", "")
                columns = [(column, "left") for column in made.columns]
                print_table(columns, [csv_cells(row) for row in made.rows], _PIPED_WIDTH)
                say()
    elif output is OutputFormat.json and len(reports) > 1:
        print_json({name: msgspec.Raw(made.to_json().encode()) for name, made in reports.items()})
    else:
        for made in reports.values():
            write_bytes(FORMATS[output.value](made))


def print_notes(reports: Iterable[tuple[str, Report]]) -> None:
    """The notes on missing data, each once with its reports, on stderr."""
    about: dict[str, list[str]] = {}
    for name, made in reports:
        for note in made.notes:
            about.setdefault(note, []).append(name)
    for note, names in about.items():
        say(f"Note ({', '.join(names)}): {note}", err=True)


def _check_printed(output: OutputFormat | None, names: list[str], kinds: list[str], folder: Path | None) -> None:
    if output is None:
        return
    if folder is not None or kinds != ["csv"]:
        refuse("--format prints and writes no file; leave it out, or leave out --formats and --output-path")
    if output in (OutputFormat.csv, OutputFormat.parquet) and len(names) > 1:
        refuse(f"--format {output.value} prints one report; name it with --reports")
    check_output(output)


def _chosen(what: str, text: str, shown: Collection[str], known: Collection[str]) -> list[str]:
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        refuse(f"no {what} {', '.join(wrong) or 'was named'}; there is {', '.join(shown)}.")
    return names
