"""Arguments and options that several subcommands share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.model.request import Option, Request

_SOURCE_HELP = "A run's directory, an event file, or a recording: a trace of torch.profiler, a database of nsys ..."
Source = Annotated[Path, typer.Argument(help=_SOURCE_HELP)]
OptionalSource = Annotated[Path | None, typer.Argument(help=_SOURCE_HELP, show_default=False)]
Sources = Annotated[
    list[Path], typer.Argument(help="A log directory, or runs: their directories, event files or traces.")
]
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
    markdown = "markdown"

    @property
    def is_text(self) -> bool:
        """Whether it is read by people."""
        return self in (OutputFormat.text, OutputFormat.markdown)


Output = Annotated[
    OutputFormat,
    Option(
        "Text for reading, the same in Markdown, JSON with all data, or the main table as CSV or Parquet.",
        flag="format",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Printing(Request):
    """How a page is printed."""

    output: Output = OutputFormat.text
    table: Annotated[
        str | None, Option("Table for --format csv or parquet; the main one by default.", metavar="NAME")
    ] = None
