"""The subcommands: the one place where each is registered, with what it prints.

Each is named by text and imported when it is called: a command does not wait for the imports of the others.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand.

    Attributes:
        name: as it is typed.
        function: module below `cli` and function.
        example: what follows the name at the least: RUN and OTHER are runs, RUNS a log directory, TRACE a trace file.
        page: the route (`web.routes`) whose page it prints in all of `--format text|json|csv`.
        prints: what `--format csv` prints, where that is not the page's main table: in words, or the name of a list in
            the JSON. A command with neither page nor this makes files, and has no `--format`.
        former_name: still works; the help does not list it.
        of_dlprof: corresponds to DLProf's command line, whose spellings of options it takes, too.
        starts_another: its options end where another command's begin.
    """

    name: str
    function: str
    example: str = "RUN"
    page: str = ""
    prints: str = ""
    former_name: str = ""
    of_dlprof: bool = False
    starts_another: bool = False

    def load(self) -> Callable[..., None]:
        """The function that `function` names."""
        module, function = self.function.split(":")
        found: Callable[..., None] = getattr(importlib.import_module(f"tb_dlprof_plugin.cli.{module}"), function)
        return found

    @property
    def context(self) -> dict[str, Any]:
        """Click's settings."""
        from tb_dlprof_plugin.cli import dlprof_aliases

        settings: dict[str, Any] = dict(dlprof_aliases.CONTEXT) if self.of_dlprof else {}
        return settings | {"allow_interspersed_args": False} if self.starts_another else settings


_ALL = (
    Command("run", "run.command:run", "SCRIPT.py", of_dlprof=True, starts_another=True),
    Command("summary", "summary:summary", page="overview", prints="one row: the run and its figures"),
    Command("ops", "ops:ops", page="ops"),
    Command("modules", "modules:modules", page="modules"),
    Command("kernels", "kernels:kernels", page="kernels"),
    Command("launches", "launches:launches", page="launches"),
    Command("timeline", "timeline:timeline", page="timeline", prints="every event of the iteration"),
    Command("tensor-cores", "tensor_cores:tensor_cores", page="tensor_cores"),
    Command("roofline", "roofline:roofline", page="roofline"),
    Command(
        "report", "report:report", "RUN --reports op_type", prints="one report, named by `--reports`", of_dlprof=True
    ),
    Command("memory", "memory:memory", "TRACE", page="memory"),
    Command("advise", "advise:advise", prints="`findings`; others: `step`, `combined`, `rules`", former_name="advice"),
    Command("compare", "compare:compare", "RUN OTHER", page="compare"),
    Command("predict", "predict:predict", "RUN --precision bf16", page="forecast"),
    Command("runs", "runs:runs", "RUNS", page="many_runs", prints="a row per run, per model with `--by-model`"),
    Command("sweep", "sweep:sweep", "RUNS", page="sweep"),
    Command("export", "export:export", "RUNS FILE.html --html"),
    Command(
        "import", "import_traces:import_traces", "TRACE --logdir RUNS", prints="a row per profile that was written"
    ),
    Command("pytorch-views", "pytorch_views:pytorch_views", "TRACE"),
    Command("info", "info:info", prints="one row; `--table notes` has the notes"),
)

COMMANDS = {command.name: command for command in _ALL}
"""In the order of the help."""
FORMER_NAMES = {command.former_name: command.name for command in _ALL if command.former_name}
