"""The options of requests as TypeScript: writes the frontend's `src/api/requests.ts`, never edited by hand.

A page makes its parameters and controls of them. `make generate` writes it.
"""

from __future__ import annotations

import json
from typing import Any

from tb_dlprof_plugin.model.request import RequestField, request_fields
from tb_dlprof_plugin.web.routes import ROUTES

_HEADER = """\
// Generated from the pages' options in tb_dlprof_plugin/ by `make generate`.
// Do not edit. The options that pages have controls for, in their order.
import type { RequestOption } from "../state/requestParams";
"""


def render() -> str:
    """The whole of requests.ts, ending in a newline."""
    parts = [_HEADER]
    for name, route in ROUTES.items():
        options = [_option(item) for item in request_fields(route.load_page()) if item.option.label]
        if options:
            text = json.dumps(options, indent=2, ensure_ascii=False)
            parts.append(f"export const {name.upper()}_OPTIONS: readonly RequestOption[] = {text};\n")
    return "\n".join(parts)


def _option(item: RequestField) -> dict[str, Any]:
    option = item.option
    words = {**option.choices, **{value: value for value in item.literals if value not in option.choices}}
    return {
        "name": item.name,
        "key": option.key or item.name,
        "label": option.label,
        "kind": {int: "count", float: "number"}.get(item.type, "word" if item.literals else "text"),
        "choices": [[value, text] for value, text in words.items()],
        "needs": option.needs or None,
        "first": option.first,
        "ofRun": option.of_run,
    }
