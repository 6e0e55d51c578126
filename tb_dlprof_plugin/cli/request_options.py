"""Options of a command from the requests that its function takes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_type_hints

import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.model.request import InvalidOption, RequestField, is_request, request_fields


def takes_requests(function: Callable[..., None]) -> Callable[..., None]:
    """Turns a function into a command with its options and, in place of each request, those of its fields."""
    types = get_type_hints(function, include_extras=True)
    fields = {item.name: item for item in request_fields(function)}
    parameters: list[inspect.Parameter] = []
    for own in inspect.signature(function).parameters.values():
        kind = types[own.name]
        if is_request(kind):
            parameters += map(option_of, request_fields(kind))
        elif own.name in fields:
            parameters.append(option_of(fields[own.name]))
        else:
            parameters.append(own.replace(annotation=kind, kind=own.KEYWORD_ONLY))

    @functools.wraps(function)
    def command(**options: Any) -> None:
        given = {
            name: made(kind, options) if is_request(kind) else options[name]
            for name, kind in types.items()
            if name != "return"
        }
        function(**given)

    return with_options(command, parameters)


def with_options(command: Callable[..., None], options: list[inspect.Parameter]) -> Callable[..., None]:
    """The command with these options: typer reads their names, types and defaults from the signature."""
    shown: Any = command
    shown.__signature__ = inspect.Signature(options)
    shown.__annotations__ = {option.name: option.annotation for option in options}
    return command


def made(request: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """What a request, or a function that takes options, makes of those of a command; the others are left out.

    Ends the command with one sentence where an option has not the form that it takes.
    """
    fields = request_fields(request)
    given = {item.name: options[item.name] for item in fields if options[item.name] is not None}
    try:
        return request(**{name: ",".join(value) if isinstance(value, list) else value for name, value in given.items()})
    except InvalidOption as error:
        (flag,) = (item.flag for item in fields if item.name == error.name)
        refuse(f"--{flag} {error.why}")


def option_of(item: RequestField) -> inspect.Parameter:
    """A field as typer takes an option."""
    option = item.option
    kind: Any = item.type if option.read is None else list[str] if option.repeats else str
    default = None if option.read is not None and not item.required else item.default
    pair = kind is bool and default is None
    flags = [f"--{item.flag}/--no-{item.flag}" if pair else f"--{item.flag}", *(f"-{one}" for one in option.short)]
    info = typer.Option(*flags, help=option.help, metavar=option.metavar, min=option.least)
    optional: Any = kind | None if default is None else kind
    return inspect.Parameter(
        item.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[optional, info]
    )
