"""Request parameters, checked."""

from __future__ import annotations

from collections.abc import Mapping

from tb_dlprof_plugin.web.errors import RequestError


def required(args: Mapping[str, str], name: str) -> str:
    """A parameter's text.

    Raises:
        RequestError: it is missing.
    """
    value = args.get(name)
    if value is None:
        raise RequestError(400, f"The request lacks the parameter {name!r}.")
    return value


def integer(args: Mapping[str, str], name: str) -> int | None:
    """A parameter's number; None where it is missing.

    Raises:
        RequestError: it is not a number, or is negative.
    """
    text = args.get(name)
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise RequestError(400, f"The parameter {name!r} must be a whole number, not {text!r}.")
    return int(text)
