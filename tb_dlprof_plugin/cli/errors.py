"""Ends a command after a usage error: one sentence on standard error, status 2."""

from __future__ import annotations

from typing import NoReturn

import typer

from tb_dlprof_plugin.cli.terminal import tell


def refuse(sentence: object) -> NoReturn:
    """End the command with a sentence that says what is wrong and what to do; a missing full stop is added."""
    text = str(sentence)
    tell(f"tb-dlprof: {text}{'' if text.endswith(('.', '?')) else '.'}")
    raise typer.Exit(2)
