"""The options of ``tb-dlprof run``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated

from tb_dlprof_plugin.cli.fail_on import CANNOT_BE_SAID, FAILED, FailOn
from tb_dlprof_plugin.cli.report import BaseName, FormatNames
from tb_dlprof_plugin.model.request import Option, Request


class RunMode(str, Enum):
    """What is recorded."""

    pytorch = "pytorch"
    simple = "simple"


class Level(IntEnum):
    """How much is said on standard error. Failures are reported on each of them."""

    quiet = 0
    minimal = 1
    normal = 2
    verbose = 3


class Verbosity(str, Enum):
    """Verbosity on standard error; the last two are DLProf's words for verbose."""

    quiet = "quiet"
    minimal = "minimal"
    normal = "normal"
    verbose = "verbose"
    detailed = "detailed"
    diagnostic = "diagnostic"


@dataclass(frozen=True, kw_only=True)
class RunOptions(Request):
    """What is recorded, and what is written and said of it. Times in seconds."""

    logdir: Annotated[Path, Option("TensorBoard's log directory for the run.")] = Path("runs")
    run_name: Annotated[
        str | None, Option("Name of the run.  [default: the script's, with a number where it is taken]")
    ] = None
    force: Annotated[
        bool,
        Option("Replace the run of the same name, once the new one is written; all other files stay.", short="f"),
    ] = False
    mode: Annotated[
        RunMode,
        Option("pytorch records everything; simple records GPU kernels only: totals and kernel report.", short="m"),
    ] = RunMode.pytorch
    memory: Annotated[
        bool, Option("Record each allocation, for `memory` and `plan`; steps take longer while recorded.")
    ] = False
    oom: Annotated[bool, Option("Explain an out-of-memory error of CUDA that ends the script, for `oom`.")] = False
    delay: Annotated[float, Option("Record nothing before this time.", short="y", metavar="SECONDS")] = 0.0
    duration: Annotated[
        float | None,
        Option(
            "Record for this long, then stop the script (SIGTERM, after 10 seconds SIGKILL).",
            short="d",
            metavar="SECONDS",
        ),
    ] = None
    iter_start: Annotated[
        int | None,
        Option("First iteration to record, counted from 0 in optimizer steps.  [default: 12 of PyTorch]", metavar="N"),
    ] = None
    iter_stop: Annotated[
        int | None, Option("Last iteration to record, inclusive.  [default: 10 are recorded]", metavar="N")
    ] = None
    profile_range: Annotated[
        bool, Option("Record only between torch.cuda.profiler.start() and .stop() of the script.")
    ] = False
    nsys: Annotated[
        bool,
        Option("Record any program with your own Nsight Systems, and import the report: C++, TensorRT, JAX."),
    ] = False
    nsys_opts: Annotated[str, Option("With --nsys: further options of nsys profile.", metavar="OPTIONS")] = ""
    cuda_graph_nodes: Annotated[bool, Option("With --nsys: record each kernel of CUDA graphs, which costs time.")] = (
        False
    )
    reports: Annotated[
        str | None, Option("DLProf's reports to write at the end, separated by commas; or all.", metavar="NAMES")
    ] = None
    formats: FormatNames = "csv"
    output_path: Annotated[
        Path, Option("Directory for reports and model data; made if missing. Old ones are replaced.")
    ] = Path()
    base_name: BaseName = None
    dump_model_data: Annotated[bool, Option("Write NAME_model_data.json: every call of every op, and its kernels.")] = (
        False
    )
    fail_on: Annotated[
        FailOn | None,
        Option(
            f"Exit with {FAILED} if a rank of the job delays the others, with {CANNOT_BE_SAID} if that cannot be said, "
            "and the script ended well."
        ),
    ] = None
    verbosity: Annotated[Verbosity, Option("How much is printed on standard error.", short="v")] = Verbosity.normal

    @property
    def level(self) -> Level:
        """How much is printed."""
        name = self.verbosity.name
        return Level[name] if name in Level.__members__ else Level.verbose

    @property
    def simple(self) -> bool:
        """Whether GPU kernels alone are recorded."""
        return self.mode is RunMode.simple

    @property
    def by_iteration(self) -> bool:
        """Whether iterations are named."""
        return self.iter_start is not None or self.iter_stop is not None
