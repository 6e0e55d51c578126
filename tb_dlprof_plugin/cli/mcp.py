"""``tb-dlprof mcp``: the answers of the pages as tools for coding agents, over standard input and output."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.cli.errors import refuse


def mcp(
    logdir: Annotated[Path, typer.Option(help="The log directory whose runs the tools read.")],
    allow_run: Annotated[
        bool,
        typer.Option("--allow-run", help="Also the tool `measure`, which runs a training script with `tb-dlprof try`."),
    ] = False,
) -> None:
    """Serve the recorded runs to a coding agent (MCP).

    Seven tools read: list_runs, summary, advise, table, explain, compare, what_if. The agent's program starts this
    command itself and talks to it over standard input and output.

    \b
    {"command": "tb-dlprof", "args": ["mcp", "--logdir", "runs"]}
    """
    if not logdir.is_dir():
        refuse(f"{logdir} is no directory; give the log directory with --logdir")
    try:
        from tb_dlprof_plugin.agent_tools.mcp_server import make_server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        refuse("the package mcp, version 2 or newer, is missing: pip install 'mcp>=2'")
    from tb_dlprof_plugin.agent_tools.measure import Measure

    measure = Measure() if allow_run else None
    try:
        make_server(logdir, measure).run("stdio")
    finally:
        if measure is not None:
            measure.end()
