"""The structs that routes answer with as TypeScript data: what each holds where a test of the frontend does not say."""

from __future__ import annotations

import json

import msgspec
import msgspec.inspect as mi

from tb_dlprof_plugin.web.typescript import answers, reachable

_HEADER = """\
// Generated from the routes in tb_dlprof_plugin/web/routes.py by `make generate`. Do not edit.
// What each interface of api/types.ts holds where a test does not say: see filled.ts.
import type * as types from "../api/types";

export interface Shape {
  /** The values of fields that are no interfaces: nothing, zero, null, the first of several words. */
  readonly blank: Readonly<Record<string, unknown>>;
  /** The interfaces of other fields; where `blank` has null there may be none, where it has [] several. */
  readonly parts: Readonly<Record<string, keyof Interfaces>>;
}
"""


def shapes() -> str:
    """The whole of shapes.ts, ending in a newline."""
    structs = reachable(answers().values())
    lines = [_HEADER, "export interface Interfaces {"]
    lines += [f"  {struct.__name__}: types.{struct.__name__};" for struct in structs]
    lines += ["}", "", "export const SHAPES: Readonly<Record<keyof Interfaces, Shape>> = {"]
    lines += [line for struct in structs for line in _shape(struct)]
    return "\n".join([*lines, "};", ""])


def _shape(struct: type[msgspec.Struct]) -> list[str]:
    info = mi.type_info(struct)
    assert isinstance(info, mi.StructType)
    blank = {field.encode_name: _blank(field.type) for field in info.fields if not _is_part(field.type)}
    parts = {field.encode_name: part for field in info.fields if (part := _part(field.type)) is not None}
    lines = [f"  {struct.__name__}: {{", "    blank: {"]
    lines += [f"      {name}: {json.dumps(value)}," for name, value in blank.items()]
    lines += ["    },", "    parts: {", *(f'      {name}: "{part}",' for name, part in parts.items()), "    },", "  },"]
    return lines


def _blank(kind: mi.Type) -> object:
    """The least value of a type."""
    if isinstance(kind, mi.UnionType):
        return None if any(isinstance(part, mi.NoneType) for part in kind.types) else _blank(kind.types[0])
    if isinstance(kind, mi.LiteralType):
        return kind.values[0]
    if isinstance(kind, mi.BoolType):
        return False
    if isinstance(kind, mi.IntType | mi.FloatType):
        return 0
    if isinstance(kind, mi.StrType):
        return ""
    if isinstance(kind, mi.ListType):
        return []
    assert isinstance(kind, mi.DictType), kind
    assert not isinstance(kind.value_type, mi.StructType), "filled.ts fills structs alone and in lists"
    return {}


def _is_part(kind: mi.Type) -> bool:
    return isinstance(kind, mi.StructType)


def _part(kind: mi.Type) -> str | None:
    """The struct that a field holds, alone or in a list, or that it may hold."""
    if isinstance(kind, mi.StructType):
        return kind.cls.__name__
    if isinstance(kind, mi.ListType):
        return _part(kind.item_type)
    if isinstance(kind, mi.UnionType):
        return next((part for one in kind.types if (part := _part(one)) is not None), None)
    return None
