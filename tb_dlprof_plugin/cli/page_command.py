"""Builds a subcommand from a page and the printer of its text: choice of the recording, options and formats."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast, get_type_hints

import msgspec

from tb_dlprof_plugin.cli.open_profile import choose
from tb_dlprof_plugin.cli.options import (
    Cycle,
    First,
    Last,
    Output,
    OutputFormat,
    Rank,
    Session,
    Source,
    TableName,
    Total,
)
from tb_dlprof_plugin.cli.printing import print_page
from tb_dlprof_plugin.cli.sums import sums_of
from tb_dlprof_plugin.reports.table import Report

Page = TypeVar("Page", bound=msgspec.Struct)


def page_command(
    view: Callable[..., Page], main: Callable[[Page], Report] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn the printer of a page's text into the subcommand that shows the page.

    Args:
        view: builds the page from a view, its ref and a selection. Further parameters become options.
        main: builds the table that `--format csv` prints without `--table`, if it is not the page's first one.

    The printer takes the page; its further parameters become options, too, and its docstring is the help. One that is
    called ``sums`` becomes ``--total`` and says how sums over the page's iterations are printed.
    """

    def command_of(print_text: Callable[..., None]) -> Callable[..., None]:
        of_view, of_text = _options(view, after=3), _options(print_text, after=1)
        has_sums = of_text.pop("sums", None) is not None
        of_sums = {"total": _TOTAL} if has_sums else {}

        def command(
            source: Source,
            cycle: Cycle = None,
            rank: Rank = None,
            session: Session = None,
            first: First = None,
            last: Last = None,
            output: Output = OutputFormat.text,
            table: TableName = None,
            **own: Any,
        ) -> None:
            chosen = choose(source, cycle, rank, first, last, session)
            page = view(chosen.view, chosen.ref, chosen.selection, **{name: own[name] for name in of_view})
            printed = {name: own[name] for name in of_text}
            if has_sums:
                printed["sums"] = sums_of(cast(Any, page).range, own["total"])
            text = functools.partial(print_text, page, **printed)
            print_page(page, output, table, text, functools.partial(main, page) if main else None)

        # Typer reads names, types and defaults of the options from the signature.
        source, *shared = _options(command, after=0).values()
        options = [source, *{**of_view, **of_sums, **of_text}.values(), *shared]
        shown: Any = command
        shown.__signature__ = inspect.Signature(options)
        shown.__annotations__ = {option.name: option.annotation for option in options}
        shown.__name__, shown.__doc__ = print_text.__name__, print_text.__doc__
        return command

    return command_of


_TOTAL = inspect.Parameter("total", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Total)


def _options(function: Callable[..., Any], after: int) -> dict[str, inspect.Parameter]:
    """The parameters after the first ones, with their types resolved; without ``**kwargs``."""
    types = get_type_hints(function, include_extras=True)
    named = [one for one in inspect.signature(function).parameters.values() if one.kind is not one.VAR_KEYWORD]
    return {one.name: one.replace(annotation=types[one.name], kind=one.KEYWORD_ONLY) for one in named[after:]}
