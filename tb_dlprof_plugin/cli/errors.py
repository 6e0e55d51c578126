"""Ends a command after a usage error: one sentence on standard error, status 2."""

from __future__ import annotations

import contextlib
import sys
from typing import NoReturn

import typer


def refuse(sentence: object) -> NoReturn:
    """End the command with a sentence that says what is wrong and what to do; a missing full stop is added."""
    text = str(sentence)
    # A closed terminal must not raise another error.
    with contextlib.suppress(OSError, ValueError):
        print(f"tb-dlprof: {text}{'' if text.endswith(('.', '?')) else '.'}", file=sys.stderr, flush=True)
    raise typer.Exit(2)
