"""Aliases of options, from DLProf and from earlier versions. They work, but the help does not list them.

So command lines of the DLProf User Guide work for everything that both tools support.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

_FORMER = {"--json": "--format=json", "--csv": "--format=csv"}
_NAMES = {"file-formats": "formats", "report": "reports", "profile-name": "base-name", "out": "output-path"}


def as_ours(option: str) -> str:
    """The option's name here: "key_node" is "key-node", "file_formats" is "formats"."""
    name = option.replace("_", "-")
    return _NAMES.get(name, name)


CONTEXT: dict[str, Any] = {"token_normalize_func": as_ours}
"""Settings of a command whose options may be spelled as DLProf's."""


class FormerSpellings(TyperCommand):
    """A command that takes `--json` and `--csv` for `--format`, where it has that option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if any("--format" in option.opts for option in self.params):
            args = [_FORMER.get(arg, arg) for arg in args]
        return super().parse_args(ctx, args)
