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
    """A command that takes `--json` and `--csv` for `--format`, where it has that option.

    Its help lists the options that few need last.
    """

    def sections(self, ctx: Any) -> dict[str, dict[str, str]]:
        """The arguments and options with their help, by the heading that they stand under."""
        from tb_dlprof_plugin.cli.commands import COMMANDS

        last = COMMANDS[str(self.name)].listed_last
        found: dict[str, dict[str, str]] = {"Arguments": {}, "Options": {}, "More options": {}}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                is_last = not last.isdisjoint(parameter.opts)
                heading = "More options" if is_last else f"{parameter.param_type_name.capitalize()}s"
                found[heading][record[0]] = record[1]
        return {heading: rows for heading, rows in found.items() if rows}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_sections(self.sections(ctx), formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if any("--format" in option.opts for option in self.params):
            args = [_FORMER.get(arg, arg) for arg in args]
        return super().parse_args(ctx, args)


def write_sections(sections: dict[str, dict[str, str]], formatter: Any) -> None:
    """Writes what a help lists, each section under its heading."""
    for heading, rows in sections.items():
        with formatter.section(heading):
            formatter.write_dl(list(rows.items()))
