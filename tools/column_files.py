"""The declared columns of all row structs as TypeScript: the frontend's `src/api/columns.ts`."""

from __future__ import annotations

import json
import typing
from typing import Any

from tb_dlprof_plugin.pages.columns import TableColumn, columns_of
from tb_dlprof_plugin.pages.common import Verdict
from tb_dlprof_plugin.web.typescript import answers, reachable

_HEADER = """\
// Generated from the row structs of the pages by `make generate`. Do not edit.
import type { Declared } from "../components/table/declared";
import { DEFINITIONS } from "../format/definitions";
import type * as Types from "./types";
"""


def typescript() -> str:
    """The whole of columns.ts."""
    lines = [_HEADER]
    for struct in reachable(answers().values()):
        if columns := columns_of(struct):
            lines += [f"export const {struct.__name__}: readonly Declared<Types.{struct.__name__}>[] = ["]
            lines += [*(f"  {_literal(column)}," for column in columns), "];", ""]
    return "\n".join(lines)


def _literal(column: TableColumn) -> str:
    declared = column.declared
    options: dict[str, Any] = {
        "unit": column.unit,
        "scale": column.scale if column.scale != 1 else None,
        "tasks": declared.tasks.split(),
        "sums": declared.sums,
        "bar": declared.bar,
        "signed": declared.signed,
        "gpu": declared.gpu,
        "verdict": column.values == typing.get_args(Verdict),
        "filter": "choice" if declared.choice or column.values else None,
        "missing": declared.missing if declared.missing != "unknown" else None,
        "absent": declared.absent,
    }
    parts = [f"id: {json.dumps(column.field)}", f"header: {json.dumps(declared.heading, ensure_ascii=False)}"]
    definition = column.definition
    text = f"DEFINITIONS.{definition.key}" if definition.key else json.dumps(definition.text, ensure_ascii=False)
    parts += [f"definition: {text}", f"width: {json.dumps(_width(column))}"]
    parts += [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in options.items() if value]
    return f"{{ {', '.join(parts)} }}"


def _width(column: TableColumn) -> str:
    """Room for the heading and for usual values."""
    declared = column.declared
    least = 110 if declared.bar or column.unit in ("flops_per_second", "flops") else 76 if column.unit else 104
    return f"{declared.width or max(least, 7 * len(declared.heading) + 44)}px"
