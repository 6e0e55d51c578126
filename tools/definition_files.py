"""The definitions of figures in; the frontend's `src/format/definitions.ts` and docs/definitions.md out."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Mapping

import msgspec

from tb_dlprof_plugin.pages.columns import Definition, Quantity, columns_of
from tb_dlprof_plugin.pages.compare_metrics import METRICS
from tb_dlprof_plugin.pages.overview import CATEGORIES
from tb_dlprof_plugin.pages.shared_definitions import DEFINITIONS, SLICES
from tb_dlprof_plugin.web.typescript import answers, reachable

_TYPESCRIPT = """\
// Generated from the structs of the pages and tb_dlprof_plugin/pages/shared_definitions.py by `make generate`.
// Do not edit. One sentence for each number that a page shows: the text behind its label.
"""
_DOCS = """\
# What each label says

The tooltips of all labels (hover, focus or tap), built by `make docs`. [metrics.md](metrics.md) has the formulas.

"""


def definitions() -> dict[str, str]:
    """The sentences by key: those that several fields share, then those at the fields of the pages' structs.

    Raises:
        ValueError: two different sentences have the same key.
    """
    found = dict(DEFINITIONS)
    for one in (one for struct in reachable(answers().values()) for one in at_fields(struct)):
        if found.setdefault(one.key, one.text) != one.text:
            raise ValueError(f"two definitions are named {one.key}; give one of them another key")
    return found


def labels() -> dict[str, str]:
    """The names of the quantities that fields of the pages' structs show, by key."""
    fields = [one for struct in reachable(answers().values()) for one in at_fields(struct)]
    return {one.key: one.label for one in fields if isinstance(one, Quantity)}


def at_fields(struct: type[msgspec.Struct]) -> list[Definition]:
    """The definitions at the fields of a struct."""
    hints = typing.get_type_hints(struct, include_extras=True).values()
    return [one for hint in hints for one in getattr(hint, "__metadata__", ()) if isinstance(one, Definition)]


def typescript() -> str:
    """The whole of definitions.ts."""
    lines = [_TYPESCRIPT, "export const DEFINITIONS = {"]
    lines += [f"  {key}: {json.dumps(text, ensure_ascii=False)}," for key, text in definitions().items()]
    lines += ["} as const;", "", "export type DefinitionKey = keyof typeof DEFINITIONS;", ""]
    lines += ["/** The names of the quantities that several pages show. */", "export const LABELS = {"]
    lines += [f"  {key}: {json.dumps(label, ensure_ascii=False)}," for key, label in labels().items()]
    lines += ["} as const;", "", "export type QuantityKey = keyof typeof LABELS;", ""]
    lines += ["/** What the parts of a figure are, by figure and key. */"]
    lines += ["export const SLICES: Readonly<Record<string, Readonly<Record<string, string>>>> = {"]
    for figure, parts in _slices().items():
        lines += [
            f"  {figure}: {{",
            *(f"    {json.dumps(key)}: {json.dumps(text)}," for key, text in parts.items()),
            "  },",
        ]
    return "\n".join([*lines, "};", ""])


def docs() -> str:
    """The whole of docs/definitions.md."""
    parts = [_DOCS, _table(definitions(), "number")]
    for figure, texts in _slices().items():
        parts += [f"\n## {figure.replace('_', ' ').capitalize()}\n\n", _table(texts, "part")]
    columns = [column for struct in reachable(answers().values()) for column in columns_of(struct)]
    own = {(column.declared.heading, column.definition.text): None for column in columns if not column.definition.key}
    parts += ["\n## Columns of tables\n\n| column | definition |\n|---|---|\n"]
    return "".join(parts + [f"| {heading} | {text} |\n" for heading, text in own])


def _slices() -> dict[str, dict[str, str]]:
    """With the time categories, which are also part of the Overview's data, and the measures of a comparison."""
    measures = {key: metric.quantity.text for key, metric in METRICS.items()}
    return {"resource_usage": {key: text for key, (_, text) in CATEGORIES.items()}} | SLICES | {"compare": measures}


def _table(texts: Mapping[str, str], heading: str) -> str:
    names = {key: re.sub("([A-Z]+)", r" \1", key).replace("_", " ").lower() for key in texts}
    rows = [f"| {names[key]} | {text} |\n" for key, text in texts.items()]
    return "".join([f"| {heading} | definition |\n|---|---|\n", *rows])
