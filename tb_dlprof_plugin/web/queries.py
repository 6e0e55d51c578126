"""The parameters of each route, and how they are read from an address."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec
import msgspec.inspect as mi

from tb_dlprof_plugin.model.decoders import json_decoder
from tb_dlprof_plugin.model.plan_request import PlanRequest
from tb_dlprof_plugin.model.request import Request, request_fields
from tb_dlprof_plugin.web.errors import RequestError

_LONGEST_TEXT = 4_000
"""Far more than module paths and op names have; it ends up in the error that says that there is none of this name."""
_LONGEST_NUMBER = 18
"""Digits: what fits into 64 bits."""
_DECIMAL = re.compile(rf"[0-9]{{1,{_LONGEST_NUMBER}}}(?:\.[0-9]{{1,{_LONGEST_NUMBER}}})?")

_SWITCH = {"true": True, "false": False}

Text = Annotated[str, msgspec.Meta(max_length=_LONGEST_TEXT)]


class AnyQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of every route: ``offset`` is how many rows of its table the page has already."""

    offset: int = 0


class ProfileQuery(AnyQuery, frozen=True, kw_only=True):
    """A profile as it was recorded: by default of the newest session the lowest rank, of that the last cycle."""

    run: str
    session: str | None = None
    rank: int | None = None
    cycle: int | None = None


class RangeQuery(ProfileQuery, frozen=True, kw_only=True):
    """A range of a profile's iterations, by default all: indices ``first`` to ``last``, both inclusive.

    ``key_node`` is an op, annotation or module that cuts the recording into iterations in place of its steps.
    """

    key_node: Text | None = None
    first: int | None = None
    last: int | None = None


class RankLinesQuery(ProfileQuery, frozen=True, kw_only=True):
    """``ranks`` are their numbers, "0,5,9"; ``step`` the number of a recorded step, by default one in the middle."""

    ranks: Text
    step: int | None = None


class OtherJobsQuery(ProfileQuery, frozen=True, kw_only=True):
    """``against`` names other runs, with a line break between them: the first is the base of the comparison."""

    against: Text


class KernelsQuery(RangeQuery, frozen=True, kw_only=True):
    """Of all launches, or of those of one op (an id), one op type (a name) or one module (a key)."""

    op: str | None = None
    op_type: Text | None = None
    module: str | None = None


class TimelineQuery(RangeQuery, frozen=True, kw_only=True):
    """``iteration`` is an index; by default that of median length in the range."""

    iteration: int | None = None


class TimelineEventsQuery(TimelineQuery, frozen=True, kw_only=True):
    """``chunk`` is the number of a part of the events."""

    chunk: int = 0


class TimelineEventQuery(TimelineQuery, frozen=True, kw_only=True):
    """An event by its id."""

    id: str


class TimelineMatchesQuery(TimelineQuery, frozen=True, kw_only=True):
    """What is looked for: a part of a name, an op type, or the id of an op or a kernel."""

    text: Text | None = None
    op: Text | None = None
    op_type: Text | None = None
    kernel: Text | None = None


class MemoryQuery(RangeQuery, frozen=True, kw_only=True):
    """``device`` is "cpu" or a GPU's number; by default the first GPU that was recorded."""

    device: str | None = None


class SearchQuery(RangeQuery, frozen=True, kw_only=True):
    """Words in names."""

    text: Text = ""


class SubjectQuery(RangeQuery, frozen=True, kw_only=True):
    """An op or kernel by its id, an op type by its name or a module by its key."""

    kind: Literal["op", "op_type", "kernel", "module"]
    id: str


class ReportQuery(RangeQuery, frozen=True, kw_only=True):
    """A report by its name, as ``tb-dlprof report`` has it."""

    name: str


class AdviceQuery(RangeQuery, frozen=True, kw_only=True):
    """``set_aside`` names rules, with commas between, that the combined saving leaves out."""

    set_aside: str = ""


def query_of(request: type[Request], name: str) -> type[RangeQuery]:
    """The query of a route that answers a request: a parameter for each of its fields."""
    fields: list[tuple[str, Any, None]] = [
        (item.name, (item.type if item.option.read is None and item.type is not str else Text) | None, None)
        for item in request_fields(request)
    ]
    texts = [f"``{item.name}``: {item.option.help}" for item in request_fields(request) if item.option.read]
    base = {"__doc__": " ".join([request.__doc__ or "", *texts]), "__module__": __name__}
    made = msgspec.defstruct(name, fields, bases=(RangeQuery,), namespace=base, frozen=True, kw_only=True)
    return cast(type[RangeQuery], made)


PlanQuery = query_of(PlanRequest, "PlanQuery")


class EnergyQuery(RangeQuery, frozen=True, kw_only=True):
    """A price in any currency and grams of CO2, each of a kilowatt-hour, and the steps of an epoch."""

    price_per_kwh: float | None = None
    co2_per_kwh: float | None = None
    steps_per_epoch: int | None = None


class ForecastQuery(RangeQuery, frozen=True, kw_only=True):
    """Another precision ("tf32", "fp16" or "bf16"); batch size and GPU are by default the run's own."""

    precision: str
    batch_size: int | None = None
    gpu: str | None = None


class CompareQuery(AnyQuery, frozen=True, kw_only=True):
    """The base and the candidate: parameters "a.run" and so on."""

    a: RangeQuery
    b: RangeQuery


class CompareOpQuery(CompareQuery, frozen=True, kw_only=True):
    """An op of the comparison by its id."""

    id: str


class ManyRunsQuery(AnyQuery, frozen=True, kw_only=True):
    """``base`` is the run that all are compared with; by default each model's own."""

    base: str | None = None


class SweepQuery(AnyQuery, frozen=True, kw_only=True):
    """The fact over which a figure is drawn, and the figure; ``kernel_group`` or ``op`` go with the measure "share"."""

    over: str | None = None
    measure: str = "step_time"
    kernel_group: str | None = None
    op: str | None = None
    direction: str | None = None


class TraceQuery(ProfileQuery, frozen=True, kw_only=True):
    """A trace by its name; ``version`` as it was listed: another one means that it was written over."""

    name: str
    version: Text | None = None


def runs_of(query: AnyQuery) -> tuple[str, ...] | None:
    """The runs that an answer is made of; None for all of them."""
    if isinstance(query, CompareQuery):
        return (query.a.run, query.b.run)
    if isinstance(query, OtherJobsQuery):
        return (query.run, *query.against.split("\n"))
    return (query.run,) if isinstance(query, ProfileQuery) else None


_Query = TypeVar("_Query", bound=AnyQuery)


def read_query(query: type[_Query], args: Mapping[str, str]) -> _Query:
    """The parameters of a request; others than the query has are passed over, an empty one has its default.

    Raises:
        RequestError: one is missing, or is not what it must be; one sentence.
    """
    return msgspec.convert(_values(query, args), query)


def _values(query: type[AnyQuery], args: Mapping[str, str]) -> dict[str, Any]:
    """The parameters that a query has, each checked, as msgspec converts them."""
    values: dict[str, Any] = {}
    for field in _fields(query):
        name = field.encode_name
        if isinstance(field.type, mi.StructType):
            prefix = f"{name}."
            side = {key.removeprefix(prefix): text for key, text in args.items() if key.startswith(prefix)}
            values[name] = _values(cast(type[AnyQuery], field.type.cls), side)
        elif (text := args.get(name)) is None or (text == "" and not field.required):
            if field.required:
                raise RequestError(400, f"The request lacks the parameter {name!r}.")
        else:
            values[name] = _value(query, field, text)
    return values


def _value(query: type[AnyQuery], field: mi.Field, text: str) -> str | int | float | bool:
    name, kinds = field.encode_name, field.type.types if isinstance(field.type, mi.UnionType) else (field.type,)
    for one in kinds:
        if isinstance(one, mi.BoolType):
            if text not in _SWITCH:
                raise RequestError(400, f"The parameter {name!r} must be true or false, not {text!r}.")
            return _SWITCH[text]
        if isinstance(one, mi.IntType):
            if not text.isascii() or not text.isdigit() or len(text) > _LONGEST_NUMBER:
                raise RequestError(400, f"The parameter {name!r} must be a whole number, not {text!r}.")
            return int(text)
        if isinstance(one, mi.FloatType):
            if not _DECIMAL.fullmatch(text):
                raise RequestError(400, f"The parameter {name!r} must be a number such as 0.25, not {text!r}.")
            return float(text)
        if isinstance(one, mi.StrType) and one.max_length is not None and len(text) > one.max_length:
            raise RequestError(
                400, f"The parameter {name!r} has {len(text)} characters; {one.max_length} are the most."
            )
        if isinstance(one, mi.LiteralType) and text not in one.values:
            # msgspec sorts the values; the annotation has them in order.
            hint = get_type_hints(query)[field.name]
            literal = next((part for part in get_args(hint) if get_origin(part) is Literal), hint)
            *first, last = get_args(literal)
            raise RequestError(400, f"The parameter {name!r} must be {', '.join(first)} or {last}, not {text!r}.")
    return text


@functools.cache
def _fields(query: type[AnyQuery]) -> tuple[mi.Field, ...]:
    # Requests come on several threads.
    json_decoder(query)
    info = mi.type_info(query)
    assert isinstance(info, mi.StructType)
    return info.fields
