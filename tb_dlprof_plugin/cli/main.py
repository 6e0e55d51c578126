"""The ``tb-dlprof`` command: its subcommands, and nothing else."""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tb_dlprof_plugin.cli import dlprof_aliases
from tb_dlprof_plugin.version import __version__

_SUBCOMMANDS = {
    "run": "run.command:run",
    "summary": "summary:summary",
    "ops": "ops:ops",
    "op-types": "op_types:op_types",
    "modules": "modules:modules",
    "kernels": "kernels:kernels",
    "launches": "launches:launches",
    "timeline": "timeline:timeline",
    "tensor-cores": "tensor_cores:tensor_cores",
    "roofline": "roofline:roofline",
    "report": "report:report",
    "memory": "memory:memory",
    "advise": "advise:advise",
    "compare": "compare:compare",
    "predict": "predict:predict",
    "runs": "runs:runs",
    "sweep": "sweep:sweep",
    "export": "export:export",
    "import": "import_traces:import_traces",
    "pytorch-views": "pytorch_views:pytorch_views",
    "info": "info:info",
}
"""Module and function of each subcommand, in the order of the help."""
_FORMER_NAMES = {"advice": "advise"}
"""Former names of subcommands: they still work, but the help does not list them."""
_SPELLED_AS_DLPROF = ("report", "run")
"""Subcommands that correspond to DLProf's command line."""
_STARTING_OTHERS = ("run",)
"""Subcommands whose options end where another command's begin."""

_STYLE: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


class _Subcommands(TyperGroup):
    """Imports a subcommand when it is called: a command does not wait for the imports of the others."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_SUBCOMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        cmd_name = _FORMER_NAMES.get(cmd_name, cmd_name)
        if cmd_name not in _SUBCOMMANDS:
            return None
        module, function = _SUBCOMMANDS[cmd_name].split(":")
        home = importlib.import_module(f"tb_dlprof_plugin.cli.{module}")
        alone = typer.Typer(**_STYLE)
        settings = dict(dlprof_aliases.CONTEXT) if cmd_name in _SPELLED_AS_DLPROF else {}
        if cmd_name in _STARTING_OTHERS:
            settings["allow_interspersed_args"] = False
        alone.command(cmd_name, cls=dlprof_aliases.FormerSpellings, context_settings=settings)(getattr(home, function))
        return typer.main.get_command(alone)


app = typer.Typer(
    cls=_Subcommands,
    help="Profiles of PyTorch training: where the time goes, whether Tensor Cores work, what to change.",
    no_args_is_help=True,
    **{**_STYLE, "add_completion": True},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
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
