"""The ``tb-dlprof`` command: its subcommands, and nothing else."""

from __future__ import annotations

from typing import Annotated

import typer

from tb_dlprof_plugin.commands.advice import advice
from tb_dlprof_plugin.commands.analyze import analyze
from tb_dlprof_plugin.commands.compare import compare
from tb_dlprof_plugin.commands.kernels import kernels
from tb_dlprof_plugin.commands.modules import modules
from tb_dlprof_plugin.commands.ops import ops
from tb_dlprof_plugin.commands.summary import summary
from tb_dlprof_plugin.commands.tensor_cores import tensor_cores
from tb_dlprof_plugin.version import __version__

app = typer.Typer(
    help="Profiles of PyTorch training: where the time goes, whether Tensor Cores work, what to change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(summary)
app.command()(ops)
app.command()(modules)
app.command()(kernels)
app.command("tensor-cores")(tensor_cores)
app.command()(advice)
app.command()(compare)
app.command()(analyze)


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
