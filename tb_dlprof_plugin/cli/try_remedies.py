"""``tb-dlprof try``: makes the second run itself, and prints what each remedy really gives."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.api.rows import rows_table
from tb_dlprof_plugin.capture.launcher.protocol import ProcessStatus
from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.options import Output, OutputFormat, Printing
from tb_dlprof_plugin.cli.printing import UNKNOWN, check_output, print_page, print_table
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.run.output_dir import script_name
from tb_dlprof_plugin.cli.run.results import wait_for_analyses
from tb_dlprof_plugin.cli.run.script import ScriptError, command_line
from tb_dlprof_plugin.cli.terminal import say, tell
from tb_dlprof_plugin.model.trial_result import INSIDE, OTHER_TRAININGS, BestSet, TrialResult, TriedRemedy
from tb_dlprof_plugin.model.visible import visible
from tb_dlprof_plugin.pages.tried import TriedRow, tried_row, without_best, without_figures
from tb_dlprof_plugin.trial import forecast_record, kept_result
from tb_dlprof_plugin.trial.inside.remedies import classes, make
from tb_dlprof_plugin.trial.inside.remedy import Remedy
from tb_dlprof_plugin.trial.isolation import Isolation, IsolationError, IsolationKind, choose
from tb_dlprof_plugin.trial.statistics import Gain
from tb_dlprof_plugin.trial.trial import Trial, TrialError
from tb_dlprof_plugin.trial.trial_runs import Record

NOT_TRIED, GAINS, INTERRUPTED = 1, 3, 130
"""Exit statuses: the script cannot be tried; `--fail-on-gain`; Ctrl-C."""
_LONG_START_S = 10.0
_LARGE_BYTES = 100_000_000
"""A working folder that is copied for each process without a question."""
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?")
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@takes_requests
def try_remedies(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT [ARGUMENTS]...",
            help="A Python file with its arguments, or, after --, a command that starts one: -- torchrun train.py",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="From the script's first step to the result, such as 60s, 5m or 1h.")
    ] = "2m",
    precision: Annotated[
        str, typer.Option(metavar="PERCENT", help="Half of the interval at which a measurement ends, such as 1%.")
    ] = "1%",
    remedies: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Only these, separated by commas; --list names all.")
    ] = None,
    without: Annotated[str | None, typer.Option(metavar="NAMES", help="All but these.")] = None,
    logdir: Annotated[Path, typer.Option(help="TensorBoard's log directory for the runs.")] = Path("runs"),
    record_runs: Annotated[
        Record | None,
        typer.Option(
            "--record",
            help="Which remedies become runs of the log directory, next to the baseline, after the budget too; "
            "by default gains, as far as it lasts.",
            show_default=False,
        ),
    ] = None,
    go_on: Annotated[bool, typer.Option("--continue", help="Go on where the last try of this command ended.")] = False,
    write_patch: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the best set as a patch of the script into a new file; it is not applied."
        ),
    ] = None,
    fail_on_gain: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT", help=f"Exit with {GAINS} if the best set saves at least this much for certain."
        ),
    ] = None,
    in_place: Annotated[
        bool,
        typer.Option("--in-place", help="Do not isolate the script: what it writes, changes and removes stays so."),
    ] = False,
    copy: Annotated[
        bool, typer.Option("--copy", help="Do not ask before a large working folder is copied, where that is needed.")
    ] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List all remedies, and end.")] = False,
    output: Output = OutputFormat.text,
) -> None:
    """Try remedies on an unchanged training script.

    Each remedy is switched on from outside and runs in turns with the unchanged script, without a profiler; its first
    steps are compared with the script's. What the script writes is thrown away: its files stay as they are.

    \b
    tb-dlprof try train.py --epochs 1
    tb-dlprof try --budget 5m --remedies tf32,bf16_autocast --write-patch faster.patch train.py
    tb-dlprof try -- torchrun --nproc-per-node 2 train.py
    """
    check_output(output)
    if list_all:
        _list()
        return
    if not command:
        refuse(
            "name a script, as in `tb-dlprof try train.py`, or a command, as in `tb-dlprof try -- torchrun train.py`"
        )
    if sys.platform == "win32":
        refuse("try does not run on Windows: it freezes one process while another one runs")
    if write_patch is not None and os.path.lexists(write_patch):
        refuse(f"{write_patch} exists already; name a new file with --write-patch")
    chosen = _chosen(remedies, without)
    budget_s, percent = _seconds(budget), _percent(precision)
    try:
        line = command_line(command)
    except ScriptError as error:
        refuse(str(error))
    isolation = _isolation(in_place, copy)
    try:
        earlier = kept_result.kept(command, isolation.folder) if go_on else None
    except kept_result.NothingKeptError as error:
        refuse(error)
    progress = ProgressPrinter()
    try:
        trial = Trial(command, line, script_name(line), logdir, record_runs, isolation, progress, _wait_for_analyses)
    except TrialError as error:
        refuse(error)
    result = trial.run(chosen, budget_s, percent, earlier)
    progress.end()
    print_page(
        result,
        Printing(output=output),
        text=lambda: _print(result),
        main=lambda: rows_table(TriedRemedy, result.rows),
    )
    if write_patch is not None and result.best.patch:
        _write_new(write_patch, result.best.patch)
    elif write_patch is not None:
        tell("tb-dlprof: there is nothing to write as a patch.")
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)
    if trial.failed:
        raise typer.Exit(NOT_TRIED)
    if fail_on_gain is not None and (result.best.gain_percent or 0.0) >= fail_on_gain and result.best.remedies:
        raise typer.Exit(GAINS)


def _write_new(path: Path, patch: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(patch)
    except OSError as error:
        refuse(f"{path} cannot be written ({error.strerror}); the patch is in the result of `tb-dlprof tried`")
    tell(f"tb-dlprof: {path} has the patch; `git apply {path}` or `patch -p1 < {path}`.")


def _isolation(in_place: bool, copy: bool) -> Isolation:
    """What the machine allows; the user is asked before a large folder is copied."""
    try:
        isolation = choose(os.getcwd(), in_place)
    except IsolationError as error:
        refuse(error)
    if isolation.kind is IsolationKind.copy and isolation.copied_bytes > _LARGE_BYTES and not copy:
        question = f"{isolation.sentence} Copy it?"
        if not sys.stdin.isatty():
            refuse(f"{isolation.sentence} Give --copy to allow that, or --in-place to run the script where it is")
        if not typer.confirm(visible(question), err=True):
            raise typer.Exit(NOT_TRIED)
    return isolation


def _wait_for_analyses(processes: list[ProcessStatus], directory: Path) -> list[str]:
    return wait_for_analyses(processes, directory, False)


class ProgressPrinter:
    """Prints how it goes to standard error: one line with a bar on a terminal, else a line for each set."""

    def __init__(self) -> None:
        self._on_terminal = sys.stderr.isatty()
        self._budget_s = self._ends_s = 0.0
        self._best: TriedRemedy | None = None
        self._now = ""

    def started(self, budget_s: float, left_s: float) -> None:
        """The budget runs."""
        self._budget_s, self._ends_s = budget_s, time.monotonic() + left_s

    def phase(self, text: str) -> None:
        """Something begins."""
        self._now = text
        if self._on_terminal and self._budget_s:
            self._bar()
        else:
            tell(f"tb-dlprof: {text}")

    def progress(self, remedy: str, gain: Gain) -> None:
        """A quad was measured."""
        if self._on_terminal and self._budget_s:
            self._bar()

    def row(self, row: TriedRemedy) -> None:
        """A remedy or a set is done."""
        gain = row.gain_percent or 0.0
        if gain > 0 and row.verdict not in OTHER_TRAININGS and gain > ((self._best and self._best.gain_percent) or 0.0):
            self._best = row
        if self._on_terminal and self._budget_s:
            self._bar()
        else:
            tell(f"  {row.remedy}: {_outcome(row)}")

    def end(self) -> None:
        """The line of the terminal is free."""
        if self._on_terminal and self._budget_s:
            tell(" " * _width(), "\r", over=True)

    def _bar(self) -> None:
        done_s = min(self._budget_s - (self._ends_s - time.monotonic()), self._budget_s)
        filled = round(_BAR * max(done_s, 0.0) / self._budget_s)
        best = "" if self._best is None else f"  best so far {self._best.gain_percent:+.1f} % {self._best.remedy}"
        line = f"[{'#' * filled}{'.' * (_BAR - filled)}] {done_s:.0f} of {self._budget_s:.0f} s{best}  now {self._now}"
        width = _width()
        tell(visible(line)[:width].ljust(width), "", over=True)


_BAR = 20
"""Characters of the bar."""


def _width() -> int:
    return max(shutil.get_terminal_size().columns - 1, 20)


def _outcome(row: TriedRemedy) -> str:
    if row.gain_percent is None:
        return row.not_tried or f"no effect: {row.no_effect}" * bool(row.no_effect) or f"failed: {row.error}"
    interval = "" if row.low_percent is None else f" ({row.low_percent:+.1f} to {row.high_percent:+.1f})"
    return f"{row.gain_percent:+.1f} %{interval}" + (f", {row.verdict}" if row.verdict else "")


def _print(result: TrialResult) -> None:
    if result.baseline_ms is not None:
        say(f"{' '.join(result.command)}: {result.baseline_ms:.3g} ms a step on {result.device}, without a profiler.")
    done = [row for row in (*result.sets, *result.rows) if row.gain_percent is not None]
    _print_best(result, done)
    if done:
        say()
        print_rows(TriedRow, [tried_row(row) for row in done], cells={"gain_percent": _gain, "verdict": _verdict})
        say()
    for line in without_figures(result):
        say(line)
    for note in result.notes:
        say(note)
    if result.interrupted:
        say("Interrupted: this is what was measured by then.")
    kept = forecast_record.kept()
    if kept is not None:
        say(
            f"Forecasts on this machine so far: {kept.count}, median error {kept.median_error:.1f} points, on average "
            f"{abs(kept.bias):.1f} points too {'low' if kept.bias > 0 else 'high'}."
        )


def _print_best(result: TrialResult, done: Sequence[TriedRemedy]) -> None:
    """The best set, and the lines to change for it."""
    best = result.best
    if best.remedies:
        row = next((one for one in done if one.names == set(best.remedies)), None)
        so_far = "" if row is None or row.is_gain else " so far"
        inside = "" if best.confirmed else f", {INSIDE}"
        say(f"Best{so_far}: {' + '.join(best.remedies)}, {best.gain_percent:+.1f} % {_interval(best)}{inside}.")
        if row is not None and row.start_s is not None and row.start_s > _LONG_START_S:
            say(f"Its start takes {row.start_s:.0f} s, compilation included.")
        if best.patch:
            say("", *best.patch.splitlines())
        for name in best.by_hand:
            remedy = make(name)
            found = next((one for one in result.rows if one.remedy == name), None)
            code = remedy.code() if found is None or not found.code else found.code
            say("", f"  {remedy.title}:", *(f"    {line}" for line in code.splitlines()))
    elif likely := [row for row in done if (row.low_percent or 0.0) > 0 and row.verdict not in OTHER_TRAININGS]:
        row = max(likely, key=lambda one: one.gain_percent or 0.0)
        say(
            f"Best so far, not certain yet: {' + '.join(row.remedy.split('+'))}, {row.gain_percent:+.1f} % "
            f"({row.low_percent:+.1f} to {row.high_percent:+.1f}). Give a larger --budget, or --continue."
        )
    elif done:
        said = without_best(result)
        say(f"{said} Give a larger --budget, or --continue." if said.startswith("No gain") else said)


def _interval(best: BestSet) -> str:
    return "" if best.low_percent is None else f"({best.low_percent:+.1f} to {best.high_percent:+.1f})"


def _gain(row: TriedRow) -> str:
    return f"{row.gain_percent:+.1f} %" + ("" if row.is_gain else " ?" if (row.gain_percent or 0) > 0 else "")


def _verdict(row: TriedRow) -> str:
    return (row.verdict or UNKNOWN) + (f": {row.verdict_text}" if row.verdict_text else "")


def _chosen(names: str | None, without: str | None) -> list[Remedy]:
    known = classes()
    asked = list(known) if names is None else _names(names)
    left_out = _names(without or "")
    for name in (*asked, *left_out):
        if name not in known:
            refuse(f"there is no remedy {name!r}; `tb-dlprof try --list` lists all")
    return [make(name) for name in asked if name not in left_out]


def _names(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _list() -> None:
    rows = [[name, one.title, one.may_change or "nothing"] for name, one in classes().items()]
    print_table([("Remedy", "left"), ("what", "left"), ("what it may change", "left")], rows)


def _seconds(text: str) -> float:
    match = _TIME.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if seconds <= 0:
        refuse(f"--budget is {text!r}; give a time such as 90s, 5m or 1h")
    return seconds


def _percent(text: str) -> float:
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = 0.0
    if not 0 < value < 100:
        refuse(f"--precision is {text!r}; give percent such as 1%")
    return value
