"""``tb-dlprof export``: runs as one HTML file that opens from disk, without TensorBoard, a server or a network."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.export_runs import exported_run
from tb_dlprof_plugin.cli.progress import Progress
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.run_list import places_of
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import byte_size
from tb_dlprof_plugin.model.run_choice import ProfileChoice
from tb_dlprof_plugin.model.whole_file import whole_file
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.web.export import AnsweredRuns, ExportedRun, Made, PageExportError, answer_all, html_file

_ENDINGS = (".html", ".htm")
_MOST_RUNS = 50
"""A file with more runs takes minutes to write, and long to open in a browser."""


@takes_requests
def export(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="A log directory, or runs: their directories, event files or traces."),
    ],
    html: Annotated[
        bool,
        typer.Option(
            "--html",
            help="Write one HTML file: the NAME.html among the arguments, or one here that is named after the runs.",
        ),
    ] = False,
    title: Annotated[str | None, typer.Option(help="Title of the file; the names of the runs by default.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    *,
    choice: ProfileChoice,
) -> None:
    """Write runs as one HTML file that needs no server.

    It opens from disk, loads nothing from the network and has every page of the DLProf tab for all iterations of each
    run, and the comparison of two runs. What the pages compute on demand (other iterations, another key node) is not
    included, as the file states.
    """
    if not html:
        refuse(
            "choose an output: --html NAME.html writes one HTML file; for tables there is tb-dlprof report, "
            "--formats csv,json,parquet"
        )
    named = [source for source in sources if source.suffix.lower() in _ENDINGS]
    given = [source for source in sources if source not in named]
    if len(named) > 1:
        refuse(f"{len(named)} HTML files are named; name one")
    if not given:
        refuse("no run is named: give its directory, event file or trace")
    places = places_of(given)
    if not places:
        refuse(f"{', '.join(map(str, given))} holds no profile; record one with tb_dlprof_plugin.profile(...)")
    if len(places) > _MOST_RUNS:
        refuse(f"{len(places)} runs are too many for one file, {_MOST_RUNS} are the most; name some of them")
    target = named[0] if named else Path(f"{_file_name(list(places))}.html")
    _check_target(target, force)
    runs: list[ExportedRun] = []
    left_out: dict[str, str] = {}
    try:
        for name, files in places.items():
            run, without = exported_run(name, files, choice)
            runs.append(run)
            left_out[name] = without
        with Progress(target, "computing the pages for") as progress:
            answered = answer_all(runs, progress.update)
        made = html_file(answered, title or answered.title, datetime.now().astimezone())
        with whole_file(target) as file:
            file.write(made.text.encode())
    except (ProfileError, TraceError, PageExportError) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{target} cannot be written ({error.strerror})")
    _report(target, made, answered, left_out)


def _check_target(html: Path, force: bool) -> None:
    if html.is_dir():
        refuse(f"{html} is a directory; name the file to write")
    if html.exists() and not force:
        refuse(f"{html} exists already; give --force to replace it")
    if not html.parent.is_dir():
        refuse(f"there is no directory {html.parent}; make it first")


def _file_name(names: list[str]) -> str:
    return re.sub(r"[^\w.-]+", "-", "-".join(names)).strip("-.") if len(names) <= 2 else "runs"


def _report(html: Path, made: Made, answered: AnsweredRuns, left_out: dict[str, str]) -> None:
    """The parts of the file with their sizes."""
    say(f"{html}: {byte_size(len(made.text.encode()))}; open it in a browser, it needs no server.")
    counted: dict[tuple[str, ...], dict[str, int]] = {}
    for block in answered.blocks:
        counted.setdefault(block.runs, {})[block.route] = block.answers
    for runs, size in made.answer_bytes.items():
        if runs:
            say(f"  {' against '.join(runs)}: {byte_size(size)} ({_content(counted[runs])})")
    shared = made.answer_bytes.get((), 0)
    say(f"  list of runs: {byte_size(shared)}")
    say(f"  the page itself: {byte_size(made.code_bytes)}")
    for name, without in left_out.items():
        if without:
            say(f"Not included of {name}: {without}.")


def _content(answers: dict[str, int]) -> str:
    details = {"work_detail": "details", "compare_op": "ops", "report": "reports", "forecast": "forecasts"}
    pages = sum(1 for route in answers if route not in details and route != "related")
    parts = [f"{answers[route]} {name}" for route, name in details.items() if route in answers]
    return ", ".join([f"{pages} page{'' if pages == 1 else 's'}", *parts])
