"""Requests: options that are declared once, with what commands, routes, Python and pages show of them.

An option is ``Annotated[type, Option("What it is.")]``, with a default for "as recorded": a parameter of the function
that answers, or, where several functions take the same options, a field of a frozen dataclass derived from `Request`,
which they take as one parameter. Derived from it are the options of a command (`cli.request_options`), the query of a
route (`web.queries.query_of`), the keywords of a Python function (`keywords_of`) and the controls of a page
(`web.typescript_requests`).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import (
    Annotated,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

_UNITS = {"B": 1, "MB": 10**6, "GB": 10**9, "MIB": 2**20, "GIB": 2**30}


class InvalidOption(ValueError):
    """An option's text has not the form that the option takes; ``why`` says which form it takes, after its name."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name} {why}")
        self.name, self.why = name, why


@dataclass(frozen=True, slots=True)
class Option:
    """What is said of a field of a request besides its type and default.

    Attributes:
        help: one sentence: the help of the command's option and the docs of the Python keyword.
        read: makes the value of its text, for types that are no number, word or switch; raises ValueError with the form
            that it takes. A field with it takes texts in all places.
        flag: the command's option, without dashes; the field's name by default.
        short: a letter for it.
        metavar: what the command's help shows as its value.
        least: the smallest number that a command takes.
        repeats: whether a command takes it several times; the texts are joined by commas.
        label: of its control on the page; "" for none.
        key: in the page's address; the field's name by default.
        choices: words of the control for values, "" for the default; other values of a Literal are their own words.
        needs: another field of the request, without which this one is not shown.
        first: a number that the control starts with once ``needs`` is given.
        of_run: whether it is about what one run has, such that the page drops it for another run.
    """

    help: str
    read: Callable[[str], Any] | None = None
    flag: str = ""
    short: str = ""
    metavar: str | None = None
    least: float | None = None
    repeats: bool = False
    label: str = ""
    key: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    needs: str = ""
    first: int | None = None
    of_run: bool = False


@dataclass(frozen=True, slots=True)
class RequestField:
    """A field of a request: its name, its type without None and as declared, its default and its option."""

    name: str
    type: Any
    declared: Any
    default: Any
    option: Option

    @property
    def required(self) -> bool:
        """Whether it must be given: it has no default, and may not be None."""
        return self.default is inspect.Parameter.empty and self.declared == self.type

    @property
    def flag(self) -> str:
        """The command's option, without dashes."""
        return self.option.flag or self.name.replace("_", "-")

    @property
    def literals(self) -> tuple[str, ...]:
        """The words of a Literal; () for another type."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()


class Request:
    """Base of requests. Texts of fields with `Option.read` are read when the request is made.

    Raises:
        InvalidOption: a text has not the form that its option takes.
    """

    def __post_init__(self) -> None:
        for item in request_fields(type(self)):
            value = getattr(self, item.name)
            if item.option.read is None:
                continue
            if isinstance(value, str):
                try:
                    value = item.option.read(value)
                except ValueError as error:
                    raise InvalidOption(item.name, str(error)) from None
            elif isinstance(value, list):
                value = tuple(value)
            object.__setattr__(self, item.name, value)


_Request = TypeVar("_Request", bound=Request)
_Owner = TypeVar("_Owner")
_Result = TypeVar("_Result")
_Options = ParamSpec("_Options")


def request_fields(declaring: Callable[..., Any]) -> tuple[RequestField, ...]:
    """The options of a request, or of a function that takes options and requests, in their order."""
    return _fields_of(declaring)


@functools.cache
def _fields_of(declaring: Any) -> tuple[RequestField, ...]:
    result: list[RequestField] = []
    for name, (kind, option, default) in _declared(declaring).items():
        if option is not None:
            result.append(RequestField(name, _without_none(kind), kind, default, option))
        elif is_request(kind):
            result += request_fields(kind)
    return tuple(result)


@functools.cache
def _declared(declaring: Any) -> dict[str, tuple[Any, Option | None, Any]]:
    """Type, option and default of each field or parameter."""
    types = get_type_hints(declaring, include_extras=True)
    if dataclasses.is_dataclass(declaring):
        missing, empty = dataclasses.MISSING, inspect.Parameter.empty
        defaults = {
            item.name: item.default_factory()
            if item.default_factory is not missing
            else (empty if item.default is missing else item.default)
            for item in dataclasses.fields(declaring)
        }
    else:
        defaults = {name: item.default for name, item in inspect.signature(declaring).parameters.items()}
    result = {}
    for name, default in defaults.items():
        kind, *more = get_args(types[name]) if get_origin(types[name]) is Annotated else (types.get(name),)
        result[name] = kind, next((one for one in more if isinstance(one, Option)), None), default
    return result


def is_request(kind: Any) -> bool:
    """Whether a type is that of a request."""
    return isinstance(kind, type) and issubclass(kind, Request)


def arguments_of(function: Callable[..., Any], values: object) -> dict[str, Any]:
    """The options and requests that a function takes, from the attributes of an object that are not None.

    Raises:
        InvalidOption: a text has not the form that its option takes.
    """
    result: dict[str, Any] = {}
    for name, (kind, option, default) in _declared(function).items():
        if is_request(kind):
            result[name] = request_of(kind, values)
        elif option is not None and (getattr(values, name) is not None or default is inspect.Parameter.empty):
            result[name] = getattr(values, name)
    return result


def request_of(request: type[_Request], values: object) -> _Request:
    """The request with the attributes of an object that are not None; others have their defaults.

    Raises:
        InvalidOption: a text has not the form that its option takes.
    """
    given = {item.name: getattr(values, item.name) for item in request_fields(request)}
    return request(**{name: value for name, value in given.items() if value is not None})


def keywords_of(
    request: Callable[_Options, _Request],
) -> Callable[[Callable[[_Owner, _Request], _Result]], Callable[Concatenate[_Owner, _Options], _Result]]:
    """Turns a function of an object and a request into one that takes the request's fields, and documents them."""

    def function_of(method: Callable[[_Owner, _Request], _Result]) -> Callable[Concatenate[_Owner, _Options], _Result]:
        owner, _ = inspect.signature(method).parameters.values()
        fields = request_fields(request)
        by_place = inspect.signature(request).parameters
        keywords = [by_place[item.name].replace(default=item.default, annotation=item.declared) for item in fields]
        signature = inspect.signature(method).replace(parameters=[owner, *keywords])

        @functools.wraps(method)
        def with_keywords(*args: Any, **options: Any) -> _Result:
            try:
                given = signature.bind(*args, **options).arguments
            except TypeError as error:
                raise TypeError(f"{method.__name__}() {error}") from None
            return method(given.pop(owner.name), request(**given))  # type: ignore[call-arg]

        lines = [f"    {item.name}: {item.option.help}" for item in fields]
        head, _, tail = (inspect.getdoc(method) or "").partition("\n\n")
        with_keywords.__doc__ = "\n".join([head, "", "Args:", *lines, "", tail])
        shown: Any = with_keywords
        shown.__signature__ = signature
        return shown  # type: ignore[no-any-return]

    return function_of


def names(text: str) -> tuple[str, ...]:
    """Names with commas between; none of "none"."""
    return () if text == "none" else tuple(name for part in text.split(",") if (name := part.strip()))


def counts_by_name(text: str) -> dict[str, int]:
    """Numbers of names, such as "blocks.0=2", with commas between."""
    result = {}
    for part in names(text):
        matched = re.fullmatch(r"(.+)=\+?(\d{1,18})", part)
        if matched is None:
            raise ValueError(f"takes NAME=N, not {part!r}.")
        result[matched[1]] = int(matched[2])
    return result


def byte_count(text: str) -> int:
    """Bytes of a size with its unit."""
    matched = re.fullmatch(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z]*)\s*", text)
    if matched is None or matched[2].upper() not in _UNITS:
        raise ValueError(f"takes a size with its unit, such as 24GiB or 80GB, not {text!r}.")
    return round(float(matched[1]) * _UNITS[matched[2].upper()])


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        (rest,) = (part for part in get_args(kind) if part is not type(None))
        return rest
    return kind
