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
        summary: the first line of its docstring, for the list of all and the shell's completion, which import none.
        example: what follows the name at the least: RUN and OTHER are runs, JOB one of several ranks, RUNS a log
            directory, TRACE a trace file.
        page: the route (`web.routes`) whose page it prints in all of `--format text|json|csv|parquet|markdown`.
        prints: what `--format csv` prints, where that is not the page's main table: in words, or the name of a list in
            the JSON. A command with neither page nor this makes files, and has no `--format`.
        former_name: still works; the help does not list it.
        of_dlprof: corresponds to DLProf's command line, whose spellings of options it takes, too.
        starts_another: its options end where another command's begin.
        serves: runs until it is ended, as a server.
        more: options that the help lists last, separated by blanks, besides those of `CHOICE`.
    """

    name: str
    function: str
    summary: str
    example: str = "RUN"
    page: str = ""
    prints: str = ""
    former_name: str = ""
    of_dlprof: bool = False
    starts_another: bool = False
    serves: bool = False
    more: str = ""

    @property
    def listed_last(self) -> frozenset[str]:
        """The options under "More options"."""
        return CHOICE | {f"--{name}" for name in self.more.split()}

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


CHOICE = frozenset(("--cycle", "--rank", "--session", "--first", "--last", "--table"))
"""Options that choose among recordings, or tables: few need them."""

_ALL = (
    Command(
        "run",
        "run.command:run",
        "Profile a training script without changing it.",
        "SCRIPT.py",
        of_dlprof=True,
        starts_another=True,
        more="mode profile-range nsys-opts cuda-graph-nodes formats output-path base-name dump-model-data fail-on "
        "verbosity version",
    ),
    Command(
        "try",
        "try_remedies:try_remedies",
        "Try remedies on an unchanged training script.",
        "SCRIPT.py",
        prints="a row per remedy",
        starts_another=True,
        more="write-patch in-place copy",
    ),
    Command(
        "power",
        "power:power",
        "Show how small a slow-down a test of a step finds.",
        "TEST",
        prints="`slowdowns`",
        starts_another=True,
    ),
    Command(
        "summary",
        "summary:summary",
        "Show where the time of a step goes.",
        page="overview",
        prints="one row: the run and its figures",
    ),
    Command("ops", "ops:ops", "List the ops of the model by GPU time.", page="ops"),
    Command("op-types", "ops:op_types", "List the types of ops by GPU time.", page="op_types"),
    Command("modules", "modules:modules", "Show the module tree by GPU time.", page="modules"),
    Command("kernels", "kernels:kernels", "List kernels, copies and sets by time.", page="kernels"),
    Command("launches", "launches:launches", "Show whether the CPU or the GPU sets the pace.", page="launches"),
    Command(
        "loader",
        "loader:loader",
        "Show what limits the DataLoader and how many workers it needs.",
        page="loader",
        prints="the step with each number of workers",
    ),
    Command(
        "timeline",
        "timeline:timeline",
        "Show one iteration: its parts and what takes longest.",
        page="timeline",
        prints="every event of the iteration",
    ),
    Command(
        "tensor-cores", "tensor_cores:tensor_cores", "List the ops that can use Tensor Cores.", page="tensor_cores"
    ),
    Command("roofline", "roofline:roofline", "Compare matrix ops with the ceilings of the GPU.", page="roofline"),
    Command("compiled", "compiled:compiled", "Show what the kernels of torch.compile compute.", page="compiled"),
    Command(
        "report",
        "report:report",
        "Write DLProf's reports from a recorded run.",
        "RUN --reports op_type",
        prints="one report, named by `--reports`",
        of_dlprof=True,
    ),
    Command("memory", "memory:memory", "Show what fills the memory at its peak.", "TRACE", page="memory"),
    Command(
        "oom",
        "oom:oom",
        "Explain a CUDA out-of-memory error.",
        "FILE",
        prints="`rows`; others: `changes`, `activations`, `stacks`, `sizes`",
    ),
    Command(
        "advise",
        "advise:advise",
        "Show what to change and the estimated savings.",
        prints="`findings`; others: `step`, `combined`, `rules`",
        former_name="advice",
    ),
    Command(
        "compare",
        "compare:compare",
        "Compare two runs: the step time and what changed it.",
        "RUN OTHER",
        page="compare",
    ),
    Command(
        "predict",
        "predict:predict",
        "Forecast the step time in another precision.",
        "RUN --precision bf16",
        page="forecast",
    ),
    Command(
        "plan",
        "plan:plan",
        "Plan the memory of another configuration.",
        "RUN --batch-size 64",
        page="plan",
        prints="`batches`; others: `gpus`, `checkpoints`, `shards`, `stages`",
        more="sequence-length image-size layers accumulate offload relu set-to-none expandable-segments "
        "tensor-parallel",
    ),
    Command(
        "distributed",
        "distributed:distributed",
        "Show which ranks of a job delay the others.",
        "RUN",
        prints="`account`; others: `delays`, `what_if`, `collective_rows`",
    ),
    Command(
        "scaling",
        "scaling:scaling",
        "Show how a training scales with its GPUs.",
        "RUN JOB",
        prints="`jobs`",
    ),
    Command(
        "energy",
        "energy:energy",
        "Show the energy of a step and where it goes.",
        "RUN --price-per-kwh 0.3",
        page="energy",
        prints="the step's energy as recorded, in other precisions and with other batch sizes",
    ),
    Command(
        "tried",
        "tried:tried",
        "Show what `tb-dlprof try` measured on a run.",
        page="tried",
        prints="a row per remedy that was measured",
    ),
    Command(
        "runs",
        "runs:runs",
        "List runs in one table, each compared with its base.",
        "RUNS",
        page="many_runs",
        prints="a row per run, per model with `--by-model`",
    ),
    Command("sweep", "sweep:sweep", "Show a figure of many runs over batch size, model or GPU.", "RUNS", page="sweep"),
    Command("view", "view:view", "Open the pages in the browser, without TensorBoard.", "RUNS", serves=True),
    Command("mcp", "mcp:mcp", "Serve the recorded runs to a coding agent (MCP).", "--logdir RUNS", serves=True),
    Command("export", "export:export", "Write runs as one HTML file that needs no server.", "RUNS FILE.html --html"),
    Command(
        "import",
        "import_traces:import_traces",
        "Convert existing recordings to runs.",
        "TRACE --logdir RUNS",
        prints="a row per profile that was written",
        more="markers torch-trace engine workers scheduler",
    ),
    Command(
        "pytorch-views", "pytorch_views:pytorch_views", "Write traces that the PyTorch Profiler tab can read.", "TRACE"
    ),
    Command(
        "info",
        "info:info",
        "Show what a recording contains and what is missing.",
        prints="one row; `--table notes` has the notes",
    ),
)

COMMANDS = {command.name: command for command in _ALL}
GROUPS = {
    "Record": ("run", "try", "import"),
    "Look": (
        "view", "summary", "advise", "modules", "op-types", "ops", "kernels", "launches", "loader", "timeline",
        "tensor-cores", "roofline", "compiled", "memory", "oom", "energy", "tried", "info", "mcp",
    ),
    "Compare": ("compare", "runs", "sweep", "power"),
    "Plan": ("predict", "plan"),
    "Job of several ranks": ("distributed", "scaling"),
    "Files": ("export", "report", "pytorch-views"),
}  # fmt: skip
"""The commands as the help lists them."""
FORMER_NAMES = {command.former_name: command.name for command in _ALL if command.former_name}
