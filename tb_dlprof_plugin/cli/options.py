"""Arguments and options that several subcommands share."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

_SOURCE_HELP = "A run's directory, an event file, or a recording: a trace of torch.profiler, a database of nsys ..."
Source = Annotated[Path, typer.Argument(help=_SOURCE_HELP)]
OptionalSource = Annotated[Path | None, typer.Argument(help=_SOURCE_HELP, show_default=False)]
Sources = Annotated[
    list[Path], typer.Argument(help="A log directory, or runs: their directories, event files or traces.")
]
Cycle = Annotated[int | None, typer.Option(help="Profiling cycle; the last one by default.")]
Session = Annotated[
    str | None, typer.Option(help="Session: one start of the training; the newest one by default.", metavar="NAME")
]
Rank = Annotated[int | None, typer.Option(help="Rank; the lowest one by default.")]
First = Annotated[int | None, typer.Option(help="Index of the first iteration to aggregate, counted from 0.")]
Last = Annotated[int | None, typer.Option(help="Index of the last iteration to aggregate, inclusive.")]
Total = Annotated[
    bool,
    typer.Option("--total", help="Print sums over the iterations instead of per step; JSON and CSV always hold sums."),
]
Limit = Annotated[int, typer.Option(help="Number of rows of each table in the text; JSON and CSV are not cut.")]


class OutputFormat(str, Enum):
    """Output formats."""

    text = "text"
    json = "json"
    csv = "csv"
    parquet = "parquet"


Output = Annotated[
    OutputFormat,
    typer.Option("--format", help="Text for reading, JSON with all data, or the main table as CSV or Parquet."),
]
TableName = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="Table for --format csv or parquet; the main one by default."),
]
