"""Options of a command from the fields of a request."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.model.request import InvalidOption, Request, RequestField, request_fields


def takes(request: type[Request]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turns a function with a parameter ``request`` into a command with an option for each field of the request."""
    fields = request_fields(request)

    def command_of(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(**options: Any) -> None:
            given = {item.name: options.pop(item.name) for item in fields}
            texts = {name: ",".join(value) if isinstance(value, list) else value for name, value in given.items()}
            try:
                made = request(**{name: value for name, value in texts.items() if value is not None})
            except InvalidOption as error:
                (flag,) = (item.flag for item in fields if item.name == error.name)
                refuse(f"--{flag} {error.why}")
            function(request=made, **options)

        # Typer reads names, types and defaults of the options from the signature.
        types = get_type_hints(function, include_extras=True)
        parameters: list[inspect.Parameter] = []
        for own in inspect.signature(function).parameters.values():
            if own.name == "request":
                parameters += [_parameter(item) for item in fields]
            else:
                parameters.append(own.replace(annotation=types[own.name], kind=own.KEYWORD_ONLY))
        shown: Any = command
        shown.__signature__ = inspect.Signature(parameters)
        shown.__annotations__ = {own.name: own.annotation for own in parameters}
        return command

    return command_of


def _parameter(item: RequestField) -> inspect.Parameter:
    option = item.option
    kind: Any = item.type if option.read is None else list[str] if option.repeats else str
    default = None if option.read is not None else item.default
    flags = [f"--{item.flag}/--no-{item.flag}" if kind is bool else f"--{item.flag}"]
    info = typer.Option(*flags, help=option.help, metavar=option.metavar)
    optional: Any = kind | None if default is None else kind
    return inspect.Parameter(
        item.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[optional, info]
    )
