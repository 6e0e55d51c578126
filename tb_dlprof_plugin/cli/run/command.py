"""``tb-dlprof run``: profiles an unchanged training script, as ``dlprof python train.py`` did."""

from __future__ import annotations

import secrets
import shlex
import shutil
import tempfile
import time
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.capture.launcher.protocol import RunRequest
from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.fail_on import FAILED, FailOn
from tb_dlprof_plugin.cli.report import BaseName, FormatNames, check_base_name, format_names, report_names
from tb_dlprof_plugin.cli.run.output_dir import output_directory
from tb_dlprof_plugin.cli.run.script import ScriptError, command_line, end_like
from tb_dlprof_plugin.cli.run.session import RunSession
from tb_dlprof_plugin.cli.run.under_nsys import NsysRun
from tb_dlprof_plugin.cli.run.verbosity import Level
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.reports.files import BASE_NAME
from tb_dlprof_plugin.version import __version__

_SIMPLE_REPORT = "kernel"


class Mode(str, Enum):
    """What is recorded."""

    pytorch = "pytorch"
    simple = "simple"


class Verbosity(str, Enum):
    """Verbosity on standard error; the last two are DLProf's words for verbose."""

    quiet = "quiet"
    minimal = "minimal"
    normal = "normal"
    verbose = "verbose"
    detailed = "detailed"
    diagnostic = "diagnostic"

    @property
    def level(self) -> Level:
        """The level for the rest of the command."""
        return Level[self.name] if self.name in Level.__members__ else Level.verbose


def _version(wanted: bool) -> None:
    if wanted:
        say(__version__)
        raise typer.Exit


def run(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT [ARGUMENTS]...",
            help="A Python file with its arguments, or, after --, any command that starts one: "
            "-- torchrun --nproc-per-node 8 train.py",
            show_default=False,
        ),
    ] = None,
    logdir: Annotated[Path, typer.Option(help="TensorBoard's log directory for the run.")] = Path("runs"),
    run_name: Annotated[
        str | None,
        typer.Option(help="Name of the run.  [default: the script's, with a number where it is taken]"),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", "-f", help="Replace the run of the same name, once the new one is written; all other files stay."
        ),
    ] = False,
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode",
            "-m",
            help="pytorch records everything; simple records GPU kernels only: totals and kernel report.",
        ),
    ] = Mode.pytorch,
    delay: Annotated[
        float, typer.Option("--delay", "-y", metavar="SECONDS", help="Record nothing before this time.")
    ] = 0.0,
    duration: Annotated[
        float | None,
        typer.Option(
            "--duration",
            "-d",
            metavar="SECONDS",
            help="Record for this long, then stop the script (SIGTERM, after 10 seconds SIGKILL).",
        ),
    ] = None,
    iter_start: Annotated[
        int | None,
        typer.Option(metavar="N", help="First iteration to record, counted from 0 in optimizer steps.  [default: 8]"),
    ] = None,
    iter_stop: Annotated[
        int | None,
        typer.Option(metavar="N", help="Last iteration to record, inclusive.  [default: 10 are recorded]"),
    ] = None,
    profile_range: Annotated[
        bool,
        typer.Option(
            "--profile-range",
            help="Record only between torch.cuda.profiler.start() and .stop() of the script.",
        ),
    ] = False,
    nsys: Annotated[
        bool,
        typer.Option(
            "--nsys", help="Record any program with your own Nsight Systems, and import the report: C++, TensorRT, JAX."
        ),
    ] = False,
    nsys_opts: Annotated[
        str, typer.Option("--nsys-opts", metavar="OPTIONS", help="With --nsys: further options of nsys profile.")
    ] = "",
    cuda_graph_nodes: Annotated[
        bool,
        typer.Option("--cuda-graph-nodes", help="With --nsys: record each kernel of CUDA graphs, which costs time."),
    ] = False,
    reports: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="DLProf's reports to write at the end, separated by commas; or all."),
    ] = None,
    formats: FormatNames = "csv",
    output_path: Annotated[
        Path, typer.Option(help="Directory for reports and model data; made if missing. Old ones are replaced.")
    ] = Path(),
    base_name: BaseName = None,
    dump_model_data: Annotated[
        bool,
        typer.Option("--dump-model-data", help="Write NAME_model_data.json: every call of every op, and its kernels."),
    ] = False,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            help=f"Exit with {FAILED} if a rank of the job delays the others by more than chance, and the script ended "
            "well."
        ),
    ] = None,
    verbosity: Annotated[
        Verbosity, typer.Option("--verbosity", "-v", help="How much is printed on standard error.")
    ] = Verbosity.normal,
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Profile a training script without changing it.

    Options come before the script; everything from the script on belongs to it. Its output, its exit status and its
    signals are the same as without tb-dlprof. By default its iterations 12 to 21 are recorded.

    \b
    tb-dlprof run train.py --epochs 1
    tb-dlprof run --logdir runs --run-name amp train.py --amp
    tb-dlprof run --delay 60 --duration 30 --reports all train.py
    tb-dlprof run -- python -m package.train
    tb-dlprof run -- torchrun --nproc-per-node 2 train.py
    tb-dlprof run --nsys -- ./server --model resnet.engine
    """
    if not command:
        refuse(
            "name a script, as in `tb-dlprof run train.py`, or a command, as in `tb-dlprof run -- torchrun train.py`"
        )
    _check_range(delay, duration, iter_start, iter_stop, profile_range)
    names = [] if reports is None else report_names(reports)
    if mode is Mode.simple and (dump_model_data or any(name != _SIMPLE_REPORT for name in names)):
        refuse(f"--mode simple has the {_SIMPLE_REPORT} report only; leave out --mode simple for the others")
    kinds = format_names(formats)
    check_base_name(base_name)
    try:
        line = command_line(command)
    except ScriptError as error:
        refuse(str(error))
    if names or dump_model_data:
        _make_folder(output_path, "--output-path")
    if nsys:
        _check_nsys(iter_start is not None or iter_stop is not None, delay, duration, reports, dump_model_data)
        if fail_on is not None:
            refuse("--fail-on is for ranks that the script's own recording finds; leave it out with --nsys")
    elif nsys_opts or cuda_graph_nodes:
        refuse("--nsys-opts and --cuda-graph-nodes are for --nsys; add it, or leave them out")
    with output_directory(logdir, run_name, line, force) as output:
        request = RunRequest(
            run_directory=str(output.directory),
            began_s=time.time(),
            session=f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}",
            first=iter_start,
            last=iter_stop,
            delay_s=delay,
            duration_s=duration,
            between_marks=profile_range,
            simple=mode is Mode.simple,
            under_nsys=nsys,
        )
        folder = Path(tempfile.mkdtemp(prefix="tb_dlprof_run_"))
        try:
            if nsys:
                counted = iter_start is not None or iter_stop is not None
                status = NsysRun(
                    line, output, verbosity.level, mode is Mode.simple, cuda_graph_nodes, delay, duration,
                    profile_range, nsys_opts, request if counted else None, folder if counted else None,
                ).run()  # fmt: skip
            else:
                status = RunSession(
                    line, output, request, folder, verbosity.level, names, kinds, output_path, base_name or BASE_NAME,
                    dump_model_data, fail_on,
                ).run()  # fmt: skip
        except ScriptError as error:
            refuse(str(error))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    raise typer.Exit(end_like(status))


def _check_range(
    delay: float, duration: float | None, first: int | None, last: int | None, between_marks: bool
) -> None:
    if delay < 0:
        refuse(f"--delay is {delay:g}; it must be 0 seconds or more")
    if duration is not None and duration <= 0:
        refuse(f"--duration is {duration:g}; it must be more than 0 seconds")
    for option, number in (("--iter-start", first), ("--iter-stop", last)):
        if number is not None and number < 0:
            refuse(f"{option} is {number}; iterations are counted from 0")
    if first is not None and last is not None and last < first:
        refuse(f"--iter-stop {last} comes before --iter-start {first}; it is the last iteration, inclusive")
    if between_marks and (delay or first is not None or last is not None):
        refuse(
            "--profile-range records between the script's own calls; leave out --delay, --iter-start and --iter-stop"
        )


def _check_nsys(counted: bool, delay: float, duration: float | None, reports: str | None, dump: bool) -> None:
    if counted and (delay or duration is not None):
        refuse("--nsys records iterations or a time; leave out --delay and --duration, or --iter-start and --iter-stop")
    if reports is not None or dump:
        refuse("--nsys writes no reports; leave out --reports and --dump-model-data, and run `tb-dlprof report` then")


def _make_folder(folder: Path, option: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        refuse(f"{shlex.quote(str(folder))} cannot be written ({error.strerror}); choose another {option}")
