"""Request parameters, checked."""

from __future__ import annotations

from collections.abc import Mapping

from tb_dlprof_plugin.web.errors import RequestError

_LONGEST_TEXT = 4_000
"""Far longer than module paths and op names; the text is repeated in an error message."""


def required(args: Mapping[str, str], name: str) -> str:
    """A parameter's text.

    Raises:
        RequestError: it is missing.
    """
    value = args.get(name)
    if value is None:
        raise RequestError(400, f"The request lacks the parameter {name!r}.")
    return value


def optional(args: Mapping[str, str], name: str) -> str | None:
    """A parameter's text; None where it is missing or empty.

    Raises:
        RequestError: it is longer than any name.
    """
    text = args.get(name) or None
    if text is not None and len(text) > _LONGEST_TEXT:
        raise RequestError(400, f"The parameter {name!r} has {len(text)} characters; {_LONGEST_TEXT} are the most.")
    return text


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
