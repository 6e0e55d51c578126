"""The ``tb-dlprof`` command: the subcommands of `cli.commands`, and nothing else."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tb_dlprof_plugin.cli.commands import COMMANDS, FORMER_NAMES, Command
from tb_dlprof_plugin.cli.dlprof_aliases import FormerSpellings
from tb_dlprof_plugin.cli.options_behind import StartsAnother
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.version import __version__

_STYLE: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


class _Subcommands(TyperGroup):
    """Imports a subcommand when it is called: neither the list of all nor another one waits for its imports."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Name and summary of a subcommand, which is all that lists need."""
        command = COMMANDS.get(FORMER_NAMES.get(cmd_name, cmd_name))
        return command and TyperCommand(command.name, help=command.summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The subcommand itself, to be called."""
        typed, listed, rest = super().resolve_command(ctx, args)
        return typed, listed and self._load(COMMANDS[str(listed.name)]), rest

    def _load(self, command: Command) -> Any:
        alone = typer.Typer(**_STYLE)
        kind = StartsAnother if command.starts_another else FormerSpellings
        alone.command(command.name, cls=kind, context_settings=command.context)(command.load())
        return typer.main.get_command(alone)


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
