"""The definitions in; the frontend's `src/format/definitions.ts` and docs/definitions.md out, which `make docs` builds.

python -m tb_dlprof_plugin.pages.definition_files --write
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tb_dlprof_plugin.pages.definitions import DEFINITIONS, SLICES
from tb_dlprof_plugin.pages.overview import CATEGORIES

_ROOT = Path(__file__).resolve().parents[2]
TARGETS = {
    "typescript": _ROOT / "frontend" / "src" / "format" / "definitions.ts",
    "docs": _ROOT / "docs" / "definitions.md",
}

_TYPESCRIPT = """\
// Generated from tb_dlprof_plugin/pages/definitions.py by `python -m tb_dlprof_plugin.pages.definition_files --write`.
// Do not edit. One sentence for each number that a page shows: the text behind its label.
"""
_DOCS = """\
# What each label says

The text that hovering over a label, its focus or a tap on it brings up, made by `python -m
tb_dlprof_plugin.pages.definition_files --write`. [metrics.md](metrics.md) has the formulas.

"""


def typescript() -> str:
    """The whole of definitions.ts."""
    lines = [_TYPESCRIPT, "export const DEFINITIONS = {"]
    lines += [f"  {key}: {json.dumps(text, ensure_ascii=False)}," for key, text in DEFINITIONS.items()]
    lines += ["} as const;", "", "export type DefinitionKey = keyof typeof DEFINITIONS;", ""]
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
    parts = [_DOCS, _table(DEFINITIONS, "number")]
    for figure, texts in _slices().items():
        parts += [f"\n## {figure.replace('_', ' ').capitalize()}\n\n", _table(texts, "part")]
    return "".join(parts)


def _slices() -> dict[str, dict[str, str]]:
    """With the time categories, which the Overview's data brings for other readers, too."""
    return {"resource_usage": {key: text for key, (_, text) in CATEGORIES.items()}} | SLICES


def _table(texts: Mapping[str, str], heading: str) -> str:
    names = {key: re.sub("([A-Z]+)", r" \1", key).replace("_", " ").lower() for key in texts}
    rows = [f"| {names[key]} | {text} |\n" for key, text in texts.items()]
    return "".join([f"| {heading} | definition |\n|---|---|\n", *rows])


def stale() -> list[Path]:
    """The generated files of the repository that do not say what the table says; the docs' page is not among them."""
    path = TARGETS["typescript"]
    return [] if path.is_file() and path.read_text(encoding="utf-8") == typescript() else [path]


def write() -> None:
    """Writes both files."""
    TARGETS["typescript"].write_text(typescript(), encoding="utf-8")
    TARGETS["docs"].write_text(docs(), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tb_dlprof_plugin.pages.definition_files --write")
    write()
