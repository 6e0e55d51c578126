"""Builds a subcommand from a page and the printer of its text: choice of the recording, options and formats."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_type_hints

import msgspec

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.open_profile import choose
from tb_dlprof_plugin.cli.options import Printing, Source, Total
from tb_dlprof_plugin.cli.printing import print_page
from tb_dlprof_plugin.cli.request_options import made, option_of, with_options
from tb_dlprof_plugin.cli.sums import sums_of
from tb_dlprof_plugin.model.request import request_fields
from tb_dlprof_plugin.model.run_choice import ProfileChoice, RangeChoice

if TYPE_CHECKING:
    from tb_dlprof_plugin.reports.table import Report

Page = TypeVar("Page", bound=msgspec.Struct)


def page_command(
    view: Callable[..., Page],
    main: Callable[[Page], Report] | None = None,
    refuses: type[ValueError] | tuple[()] = (),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn the printer of a page's text into the subcommand that shows the page.

    Args:
        view: builds the page from a view, its ref and, if it takes one, a selection. Its options are the command's.
        main: builds the table that `--format csv` prints without `--table`, if it is not the page's first one.
        refuses: the error of a run or of options for which there is no page; it ends the command.

    The printer takes the page; its further parameters become options, too, and its docstring is the help. One that is
    called ``sums`` becomes ``--total`` and says how sums over the page's iterations are printed.
    """
    of_range = "selection" in inspect.signature(view).parameters
    of_view, choice_of = request_fields(view), RangeChoice if of_range else ProfileChoice
    shared = [*map(option_of, request_fields(choice_of)), *map(option_of, request_fields(Printing))]

    def command_of(print_text: Callable[..., None]) -> Callable[..., None]:
        types = get_type_hints(print_text, include_extras=True)
        _, *after_page = inspect.signature(print_text).parameters.values()
        of_text = {one.name: one.replace(annotation=types[one.name], kind=one.KEYWORD_ONLY) for one in after_page}
        has_sums = of_text.pop("sums", None) is not None

        def command(source: Source, **options: Any) -> None:
            chosen = choose(source, made(choice_of, options))
            opened = (chosen.view, chosen.ref, *([chosen.selection] if of_range else []))
            try:
                page = view(*opened, **{item.name: options[item.name] for item in of_view})
            except refuses as error:
                refuse(f"{source}: {error}")
            printed = {name: options[name] for name in of_text}
            if has_sums:
                printed["sums"] = sums_of(cast(Any, page).range, options["total"])
            text = functools.partial(print_text, page, **printed)
            print_page(page, made(Printing, options), text, functools.partial(main, page) if main else None)

        source = inspect.Parameter("source", inspect.Parameter.KEYWORD_ONLY, annotation=Source)
        own = [source, *map(option_of, of_view), *([_TOTAL] if has_sums else []), *of_text.values(), *shared]
        command.__name__, command.__doc__ = print_text.__name__, print_text.__doc__
        return with_options(command, own)

    return command_of


_TOTAL = inspect.Parameter("total", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Total)
