"""The file from which `tb-dlprof COMMAND --help` prints what the subcommand itself would say."""

from __future__ import annotations

import json
from typing import Any

from tb_dlprof_plugin.cli.commands import COMMANDS
from tb_dlprof_plugin.cli.main import HELP_FILE, Listed

__all__ = ["HELP_FILE", "text"]


def text() -> str:
    """Usage, text and options of every subcommand, as JSON."""
    return json.dumps({name: _help_of(Listed(COMMANDS[name]).loaded()) for name in COMMANDS}, indent=1) + "\n"


def _help_of(command: Any) -> dict[str, Any]:
    context = command.make_context(command.name, [], resilient_parsing=True)
    return {"usage": command.collect_usage_pieces(context), "text": command.help, "sections": command.sections(context)}
