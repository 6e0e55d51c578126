"""``tb-dlprof run``: profiles an unchanged training script, as ``dlprof python train.py`` did."""

from __future__ import annotations

import secrets
import shlex
import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.capture.launcher.protocol import RunRequest
from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.report import check_base_name, format_names, report_names
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.run.options import RunOptions
from tb_dlprof_plugin.cli.run.output_dir import output_directory
from tb_dlprof_plugin.cli.run.script import ScriptError, command_line, end_like
from tb_dlprof_plugin.cli.run.session import RunSession
from tb_dlprof_plugin.cli.run.under_nsys import NsysRun
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.version import __version__

_SIMPLE_REPORT = "kernel"


def _version(wanted: bool) -> None:
    if wanted:
        say(__version__)
        raise typer.Exit


@takes_requests
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
    *,
    options: RunOptions,
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
    _check_range(options)
    names = [] if options.reports is None else report_names(options.reports)
    if options.simple and (options.dump_model_data or any(name != _SIMPLE_REPORT for name in names)):
        refuse(f"--mode simple has the {_SIMPLE_REPORT} report only; leave out --mode simple for the others")
    if options.memory and (options.simple or options.nsys):
        refuse("--memory is for recordings of torch.profiler with ops; leave out --mode simple and --nsys")
    kinds = format_names(options.formats)
    check_base_name(options.base_name)
    try:
        line = command_line(command)
    except ScriptError as error:
        refuse(str(error))
    if names or options.dump_model_data:
        _make_folder(options.output_path, "--output-path")
    _check_nsys(options)
    raise typer.Exit(end_like(_recorded(line, options, names, kinds)))


def _recorded(command: list[str], options: RunOptions, reports: list[str], formats: list[str]) -> int:
    """Runs and records the command; its exit status."""
    with output_directory(options.logdir, options.run_name, command, options.force) as output:
        request = RunRequest(
            run_directory=str(output.directory),
            began_s=time.time(),
            session=f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}",
            first=options.iter_start,
            last=options.iter_stop,
            delay_s=options.delay,
            duration_s=options.duration,
            between_marks=options.profile_range,
            simple=options.simple,
            memory=options.memory,
            oom=options.oom,
            under_nsys=options.nsys,
        )
        folder = Path(tempfile.mkdtemp(prefix="tb_dlprof_run_"))
        try:
            if options.nsys:
                return NsysRun(command, output, options, request, folder).run()
            return RunSession(command, output, options, request, folder, reports, formats).run()
        except ScriptError as error:
            refuse(str(error))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _check_range(options: RunOptions) -> None:
    delay, duration, first, last = options.delay, options.duration, options.iter_start, options.iter_stop
    if delay < 0:
        refuse(f"--delay is {delay:g}; it must be 0 seconds or more")
    if duration is not None and duration <= 0:
        refuse(f"--duration is {duration:g}; it must be more than 0 seconds")
    for option, number in (("--iter-start", first), ("--iter-stop", last)):
        if number is not None and number < 0:
            refuse(f"{option} is {number}; iterations are counted from 0")
    if first is not None and last is not None and last < first:
        refuse(f"--iter-stop {last} comes before --iter-start {first}; it is the last iteration, inclusive")
    if options.profile_range and (delay or options.by_iteration):
        refuse(
            "--profile-range records between the script's own calls; leave out --delay, --iter-start and --iter-stop"
        )


def _check_nsys(options: RunOptions) -> None:
    if not options.nsys:
        if options.nsys_opts or options.cuda_graph_nodes:
            refuse("--nsys-opts and --cuda-graph-nodes are for --nsys; add it, or leave them out")
        return
    if options.by_iteration and (options.delay or options.duration is not None):
        refuse("--nsys records iterations or a time; leave out --delay and --duration, or --iter-start and --iter-stop")
    if options.reports is not None or options.dump_model_data:
        refuse("--nsys writes no reports; leave out --reports and --dump-model-data, and run `tb-dlprof report` then")
    if options.fail_on is not None:
        refuse("--fail-on is for ranks that the script's own recording finds; leave it out with --nsys")


def _make_folder(folder: Path, option: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        refuse(f"{shlex.quote(str(folder))} cannot be written ({error.strerror}); choose another {option}")
