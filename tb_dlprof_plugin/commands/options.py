"""Arguments and options that several subcommands share."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

Source = Annotated[Path, typer.Argument(help="A run's directory, an event file, or a *.pt.trace.json[.gz] file.")]
Cycle = Annotated[int | None, typer.Option(help="Profiling cycle; the last one by default.")]
Rank = Annotated[int | None, typer.Option(help="Rank; the lowest by default.")]
First = Annotated[int | None, typer.Option(help="Index of the first iteration to aggregate.")]
Last = Annotated[int | None, typer.Option(help="Index of the last iteration to aggregate, inclusive.")]
Limit = Annotated[int, typer.Option(help="Number of rows to print.")]
Json = Annotated[bool, typer.Option("--json", help="Print the page's data as JSON.")]


class Format(str, Enum):
    """What a command prints."""

    text = "text"
    json = "json"
    csv = "csv"


Output = Annotated[Format, typer.Option("--format", help="What to print.")]
