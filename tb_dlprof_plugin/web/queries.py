"""The parameters of the routes, and how they are read from an address."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from tb_dlprof_plugin.model.request import InvalidOption, Option, Request, RequestField, is_request, request_fields
from tb_dlprof_plugin.model.run_choice import ProfileChoice, RangeChoice
from tb_dlprof_plugin.web.errors import RequestError

_LONGEST_TEXT = 4_000
"""Far more than module paths and op names have; it ends up in the error that says that there is none of this name."""
_LONGEST_NUMBER = 18
"""Digits: what fits into 64 bits."""
_DECIMAL = re.compile(rf"[0-9]{{1,{_LONGEST_NUMBER}}}(?:\.[0-9]{{1,{_LONGEST_NUMBER}}})?")

_SWITCH = {"true": True, "false": False}


@dataclass(frozen=True, kw_only=True)
class AnyQuery(Request):
    """Parameters of every route: ``offset`` is how many rows of its table the page has already."""

    offset: Annotated[int, Option("Rows of its table that the page has already.")] = 0


@dataclass(frozen=True, kw_only=True)
class ProfileQuery(ProfileChoice, AnyQuery):
    """A profile as it was recorded: by default of the newest session the lowest rank, of that the last cycle."""

    run: Annotated[str, Option("The run.")]


@dataclass(frozen=True, kw_only=True)
class RangeQuery(RangeChoice, ProfileQuery):
    """A range of a profile's iterations, by default all: indices ``first`` to ``last``, both inclusive.

    ``key_node`` is an op, annotation or module that cuts the recording into iterations in place of its steps.
    """

    key_node: Annotated[str | None, Option("Op that separates iterations.")] = None


@dataclass(frozen=True, kw_only=True)
class CompareQuery(AnyQuery):
    """The base and the candidate: parameters "a.run" and so on."""

    a: Annotated[RangeQuery, Option("The base.")]
    b: Annotated[RangeQuery, Option("The candidate.")]


@functools.cache
def query_of(route: str, page: Callable[..., Any], base: type[AnyQuery]) -> type[AnyQuery]:
    """The query of a route: a parameter for each option that its page takes; None is left to the page."""
    inherited = {item.name for item in request_fields(base)}
    fields: list[tuple[str, Any, Any]] = [
        (item.name, Annotated[item.declared, item.option], dataclasses.field() if item.required else None)
        for item in request_fields(page)
        if item.name not in inherited
    ]
    if not fields:
        return base
    name = "".join(word.capitalize() for word in route.split("_"))
    made = dataclasses.make_dataclass(f"{name}Query", fields, bases=(base,), frozen=True, kw_only=True)
    made.__doc__ = f"Parameters of the route ``{route}``."
    return made


def runs_of(query: AnyQuery) -> tuple[str, ...] | None:
    """The runs that an answer is made of; None for all of them."""
    if isinstance(query, CompareQuery):
        return (query.a.run, query.b.run)
    return (query.run, *getattr(query, "against", ())) if isinstance(query, ProfileQuery) else None


_Query = TypeVar("_Query", bound=AnyQuery)


def read_query(query: type[_Query], args: Mapping[str, str]) -> _Query:
    """The parameters of a request; others than the query has are passed over, an empty one has its default.

    Raises:
        RequestError: one is missing, or is not what it must be; one sentence.
    """
    try:
        return query(**_values(query, args))
    except InvalidOption as error:
        raise RequestError(400, f"The parameter {error.name!r} {error.why}") from None


def _values(query: type[AnyQuery], args: Mapping[str, str]) -> dict[str, Any]:
    """The parameters that a query has, each checked."""
    values: dict[str, Any] = {}
    for item in request_fields(query):
        name = item.name
        if is_request(item.type):
            prefix = f"{name}."
            side = {key.removeprefix(prefix): text for key, text in args.items() if key.startswith(prefix)}
            values[name] = item.type(**_values(item.type, side))
        elif (text := args.get(name)) is None or (text == "" and not item.required):
            if item.required:
                raise RequestError(400, f"The request lacks the parameter {name!r}.")
        else:
            values[name] = _value(item, text)
    return values


def _value(item: RequestField, text: str) -> str | int | float | bool:
    kind, must_be = item.type if item.option.read is None else str, ""
    if kind is bool:
        if text in _SWITCH:
            return _SWITCH[text]
        must_be = "true or false"
    elif kind is int:
        if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER:
            return int(text)
        must_be = "a whole number"
    elif kind is float:
        if _DECIMAL.fullmatch(text):
            return float(text)
        must_be = "a number such as 0.25"
    elif item.literals and text not in item.literals:
        *first, last = item.literals
        must_be = f"{', '.join(first)} or {last}"
    if must_be:
        raise RequestError(400, f"The parameter {item.name!r} must be {must_be}, not {text!r}.")
    if len(text) > _LONGEST_TEXT:
        raise RequestError(
            400, f"The parameter {item.name!r} has {len(text)} characters; {_LONGEST_TEXT} are the most."
        )
    return text
