"""The ``tb-dlprof`` command: the subcommands of `cli.commands`, and nothing else."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tb_dlprof_plugin.cli.commands import COMMANDS, FORMER_NAMES, GROUPS, Command
from tb_dlprof_plugin.cli.dlprof_aliases import FormerSpellings, write_sections
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.version import __version__

HELP_FILE = Path(__file__).with_name("help.json")
"""What each subcommand's help says, for a help that imports none: `make generate` writes it."""
_STYLE: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


class Listed(TyperCommand):
    """A subcommand that is imported when it is called: its help and the list of all wait for no import."""

    def __init__(self, command: Command) -> None:
        # Options of the command itself are unknown here.
        lenient = {"ignore_unknown_options": True, "allow_extra_args": True}
        super().__init__(
            command.name, help=command.summary, context_settings=lenient | command.context, rich_markup_mode=None
        )
        self._command = command

    def loaded(self) -> Any:
        """The subcommand itself."""
        alone = typer.Typer(**_STYLE)
        kind = FormerSpellings
        if self._command.starts_another:
            from tb_dlprof_plugin.cli.options_behind import StartsAnother as kind
        # What is imported stays: to search it for garbage again and again took an eighth of a command's start.
        gc.disable()
        alone.command(self.name, cls=kind, context_settings=self._command.context)(self._command.load())
        gc.freeze()
        gc.enable()
        return typer.main.get_command(alone)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Prints the help and ends where it is asked for; otherwise the context of the subcommand itself."""
        if "--help" in args and not extra.get("resilient_parsing"):
            super().make_context(info_name, list(args), parent, **extra)
        return self.loaded().make_context(info_name, args, parent, **extra)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = self._said()["usage"]
        return pieces

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        self.help = self._said()["text"]
        super().format_help_text(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_sections(self._said()["sections"], formatter)

    def _said(self) -> Any:
        return json.loads(HELP_FILE.read_text(encoding="utf-8"))[self.name]


class _Subcommands(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: Listed(command) for name, command in COMMANDS.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for names in GROUPS.values() for name in names]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        write_sections(
            {heading: {name: COMMANDS[name].summary for name in names} for heading, names in GROUPS.items()}, formatter
        )

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return self.commands.get(FORMER_NAMES.get(cmd_name, cmd_name))


app = typer.Typer(
    cls=_Subcommands,
    help="Profiles of PyTorch training: where the time goes, whether Tensor Cores work, what to change.",
    no_args_is_help=True,
    **{**_STYLE, "add_completion": True},
)


def _version(wanted: bool) -> None:
    if wanted:
        say(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point of the console script."""
    app()


if __name__ == "__main__":
    main()
