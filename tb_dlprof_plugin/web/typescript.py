"""The table of routes as TypeScript: writes the frontend's `src/api/types.ts`, never edited by hand.

Every struct that a route's answer is made of becomes an interface, and every ``Literal`` with a public name in their
modules a type alias; docstrings become TSDoc comments. ``Routes`` has the answer of each route, ``Queries`` its
parameters, ``RunPage`` the names of the pages of one run.

`make generate` writes it.
"""

from __future__ import annotations

import inspect
import json
import sys
import typing
from collections.abc import Iterable
from typing import Any

import msgspec
import msgspec.inspect as mi

from tb_dlprof_plugin.model.request import is_request, request_fields
from tb_dlprof_plugin.web.queries import AnyQuery
from tb_dlprof_plugin.web.routes import PAGES, ROUTES, Route

_PREFIXED = """\
export type Prefixed<Prefix extends string, Query> = {
  [Name in keyof Query as `${Prefix}.${Name & string}`]: Query[Name];
};
"""

_HEADER = """\
// Generated from the routes in tb_dlprof_plugin/web/routes.py by `make generate`.
// Do not edit. What the routes answer: one interface per struct, field for field.
"""


def render() -> str:
    """The whole of types.ts, ending in a newline."""
    structs = reachable(answers().values())
    aliases = _named_literals(structs)
    names = {frozenset(values): name for name, values in aliases.items()}
    parts = [_HEADER]
    parts += [f"export type {name} = {_union(values)};\n" for name, values in aliases.items()]
    parts += [_interface(struct, names) for struct in structs]
    parts += [_routes(), _queries(names), _run_pages()]
    return "\n".join(parts)


def answers() -> dict[str, type[msgspec.Struct]]:
    """The struct that each route answers with, by the route's name; `trace` answers with a part of a file."""
    found = {name: _answer(route) for name, route in ROUTES.items()}
    return {name: answer for name, answer in found.items() if issubclass(answer, msgspec.Struct)}


def _answer(route: Route) -> Any:
    return typing.get_type_hints(route.load_page())["return"]


def _routes() -> str:
    lines = ["/** The answer of each route. */", "export interface Routes {"]
    for name, answer in answers().items():
        lines += [f"  /** {_sentence(ROUTES[name].title)} */", f"  {name}: {answer.__name__};"]
    return "\n".join([*lines, "}", ""])


def _queries(names: dict[frozenset[str], str]) -> str:
    by_route = {name: route.load_query() for name, route in ROUTES.items()}
    bases = [base for query in by_route.values() for base in reversed(query.__mro__) if issubclass(base, AnyQuery)]
    parts = [f'/** Parameters with a prefix, as in "a.run". */\n{_PREFIXED}']
    parts += [_query(query, names) for query in dict.fromkeys(bases)]
    lines = ["/** The parameters of each route; what is left out or null is left to the server. */"]
    lines += ["export interface Queries {", *(f"  {name}: {query.__name__};" for name, query in by_route.items())]
    return "\n".join([*parts, *lines, "}", ""])


def _query(query: type[AnyQuery], names: dict[frozenset[str], str]) -> str:
    """One exported interface, which extends that of the class it is derived from."""
    above = [base for base in query.__bases__ if issubclass(base, AnyQuery)]
    inherited = {item.name for base in above for item in request_fields(base)}
    own = [item for item in request_fields(query) if item.name not in inherited]
    extended = [base.__name__ for base in above]
    extended += [f'Prefixed<"{item.name}", {item.type.__name__}>' for item in own if is_request(item.type)]
    extends = f" extends {', '.join(extended)}" if extended else ""
    lines = [*_tsdoc(inspect.getdoc(query) or ""), f"export interface {query.__name__}{extends} {{"]
    for item in own:
        if not is_request(item.type):
            kind = _type(mi.type_info(str if item.option.read else item.type), names)
            lines += [f"  /** {item.option.help} */"]
            lines += [f"  {item.name}: {kind};" if item.required else f"  {item.name}?: {kind} | null;"]
    return "\n".join([*lines, "}", ""])


def _run_pages() -> str:
    comment = "/** The pages of one run and a range, by their names in the address. */"
    return f"{comment}\nexport type RunPage = {_union(PAGES)};\n"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _named_literals(structs: Iterable[type[msgspec.Struct]]) -> dict[str, tuple[str, ...]]:
    """Public module-level ``Name = Literal[...]`` of the modules that define ``structs``, by name."""
    found: dict[str, tuple[str, ...]] = {}
    for module in {struct.__module__ for struct in structs}:
        for name, value in vars(sys.modules[module]).items():
            if not name.startswith("_") and typing.get_origin(value) is typing.Literal:
                found[name] = typing.get_args(value)
    return dict(sorted(found.items()))


def reachable(roots: Iterable[type[msgspec.Struct]]) -> list[type[msgspec.Struct]]:
    """The structs that ``roots`` mention at any depth, each after those it is made of."""
    done: dict[type[msgspec.Struct], None] = {}

    def visit(kind: mi.Type) -> None:
        if isinstance(kind, mi.StructType):
            if kind.cls not in done:
                for field in kind.fields:
                    visit(field.type)
                done[kind.cls] = None
        elif isinstance(kind, mi.ListType):
            visit(kind.item_type)
        elif isinstance(kind, mi.DictType):
            visit(kind.value_type)
        elif isinstance(kind, mi.UnionType):
            for part in kind.types:
                visit(part)

    for root in roots:
        visit(mi.type_info(root))
    return list(done)


def _interface(struct: type[msgspec.Struct], names: dict[frozenset[str], str]) -> str:
    """One exported interface with its docstring."""
    info = mi.type_info(struct)
    assert isinstance(info, mi.StructType)
    lines = [*_tsdoc(inspect.getdoc(struct) or ""), f"export interface {struct.__name__} {{"]
    lines += [f"  {field.encode_name}: {_type(field.type, names)};" for field in info.fields]
    return "\n".join([*lines, "}", ""])


def _type(kind: mi.Type, names: dict[frozenset[str], str]) -> str:
    """The TypeScript form of a msgspec type; raises TypeError for an unsupported one."""
    if isinstance(kind, mi.StructType):
        return kind.cls.__name__
    if isinstance(kind, mi.StrType):
        return "string"
    if isinstance(kind, mi.IntType | mi.FloatType):
        return "number"
    if isinstance(kind, mi.BoolType):
        return "boolean"
    if isinstance(kind, mi.NoneType):
        return "null"
    if isinstance(kind, mi.LiteralType):
        # msgspec sorts the values, so names are looked up by set.
        return names.get(frozenset(str(value) for value in kind.values)) or _union(kind.values)
    if isinstance(kind, mi.ListType):
        item = _type(kind.item_type, names)
        return f"({item})[]" if "|" in item else f"{item}[]"
    if isinstance(kind, mi.DictType) and isinstance(kind.key_type, mi.StrType):
        return f"Record<string, {_type(kind.value_type, names)}>"
    if isinstance(kind, mi.UnionType):
        parts = sorted((_type(part, names) for part in kind.types), key=lambda part: part == "null")
        return " | ".join(dict.fromkeys(parts))
    raise TypeError(f"no TypeScript type for {kind!r}: use strings, numbers, booleans, None, lists, dicts and structs")


def _union(values: Iterable[str | int | bool | None]) -> str:
    return " | ".join(json.dumps(value) for value in values)


def _tsdoc(text: str) -> list[str]:
    """A docstring as a TSDoc block; reST's double backticks become Markdown's single ones."""
    lines = text.replace("``", "`").replace("*/", "*\\/").strip().splitlines()
    if len(lines) <= 1:
        return [f"/** {lines[0]} */"] if lines else []
    return ["/**", *(f" * {line}".rstrip() for line in lines), " */"]
