"""``tb-dlprof try``: makes the second run itself, and prints what each remedy really gives."""

from __future__ import annotations

import dataclasses
import os
import re
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.advice.engine import advise
from tb_dlprof_plugin.api.rows import rows_table
from tb_dlprof_plugin.capture.launcher.protocol import VARIABLE, ProcessStatus, RunRequest, read_statuses
from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.options import Output, OutputFormat, Printing
from tb_dlprof_plugin.cli.printing import UNKNOWN, check_output, print_page, print_table
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.run.output_dir import script_name
from tb_dlprof_plugin.cli.run.results import wait_for_analyses
from tb_dlprof_plugin.cli.run.script import INJECTED, ScriptError, command_line
from tb_dlprof_plugin.cli.terminal import say, tell
from tb_dlprof_plugin.model.trial_result import BestSet, TrialResult, TriedRemedy
from tb_dlprof_plugin.model.visible import visible
from tb_dlprof_plugin.pages.stored_summary import write_runs
from tb_dlprof_plugin.pages.tried import TriedRow, tried_row
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_folder import RunFolder, RunFolderError
from tb_dlprof_plugin.trial import forecast_record
from tb_dlprof_plugin.trial.baseline_recording import record
from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
from tb_dlprof_plugin.trial.experiment import Bench
from tb_dlprof_plugin.trial.facts import TrialFacts
from tb_dlprof_plugin.trial.inside.remedies import classes, make
from tb_dlprof_plugin.trial.inside.remedy import Remedy
from tb_dlprof_plugin.trial.interruption import MadeFolders, one_interrupt
from tb_dlprof_plugin.trial.isolation import Isolation, IsolationError, IsolationKind, choose
from tb_dlprof_plugin.trial.protocol import Ready
from tb_dlprof_plugin.trial.search import BUDGET_USED, Search
from tb_dlprof_plugin.trial.statistics import Gain
from tb_dlprof_plugin.trial.variant import Laboratory, VariantError, scratch_folder

NOT_TRIED, GAINS, INTERRUPTED = 1, 3, 130
"""Exit statuses: the script cannot be tried; `--fail-on-gain`; Ctrl-C."""
_RECORDING_S = 300.0
_PERHAPS = 2.0
"""Percent: a gain that is likely to be one, even where it is not certain."""
_LARGE_BYTES = 100_000_000
"""A working folder that is copied for each process without a question."""
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?")
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class Record(str, Enum):
    """Which remedies become runs of the logdir."""

    gains = "gains"
    all = "all"
    baseline = "baseline"
    none = "none"


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
        str, typer.Option(metavar="TIME", help="For all measurements, such as 90s, 5m or 1h; recording takes more.")
    ] = "10m",
    precision: Annotated[
        str, typer.Option(metavar="PERCENT", help="Half of the interval at which a measurement ends, such as 1%.")
    ] = "1%",
    remedies: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Only these, separated by commas; --list names all.")
    ] = None,
    without: Annotated[str | None, typer.Option(metavar="NAMES", help="All but these.")] = None,
    logdir: Annotated[Path, typer.Option(help="TensorBoard's log directory for the runs.")] = Path("runs"),
    record_runs: Annotated[
        Record, typer.Option("--record", help="Which remedies become runs of the log directory, next to the baseline.")
    ] = Record.gains,
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
    trial = _Trial(command, line, logdir, record_runs, _isolation(in_place, copy))
    result = trial.run(chosen, budget_s, percent)
    print_page(
        result,
        Printing(output=output),
        text=lambda: _print(result, trial),
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


class _Trial:
    """One trial; its processes and folders are gone at the end, however it ends."""

    def __init__(
        self, command: Sequence[str], line: Sequence[str], logdir: Path, record_runs: Record, isolation: Isolation
    ) -> None:
        self._command, self._record, self._isolation = command, record_runs, isolation
        self.failed = False
        self._script = script_name(line)
        self.directory = logdir / f"{self._script.removesuffix('.py')}_try"
        self._logdir_path = logdir
        self._line = line
        self._logdir = MadeFolders()
        if record_runs is not Record.none:
            try:
                self._logdir.make(self.directory)
            except OSError as error:
                refuse(
                    f"{self.directory} cannot be written ({error.strerror}); choose another --logdir, or --record none"
                )
        self.torch_version = ""

    def run(self, candidates: Sequence[Remedy], budget_s: float, precision: float) -> TrialResult:
        """Measure all; Ctrl-C ends it with what is known by then."""
        began = time.monotonic()
        result = TrialResult(command=list(self._command))
        with one_interrupt() as held:
            laboratory = self._laboratory = Laboratory(self._line, scratch_folder(), INJECTED, self._isolation)
            search = Search(laboratory, Bench(precision), began + budget_s, _Told())
            try:
                self._measure(search, result, candidates)
            except KeyboardInterrupt:
                result.interrupted = True
            except VariantError as error:
                self.failed = True
                search.notes.append(f"{self._script} cannot be tried: {error}.")
            finally:
                held()
                laboratory.close()
                self._logdir.remove_empty()
            measured = [row.before_ms for row in search.rows if row.before_ms is not None]
            result.baseline_ms = sorted(measured)[len(measured) // 2] if measured else result.baseline_ms
            result.rows, result.sets, result.notes = search.rows, search.sets, search.notes
            result.seconds = time.monotonic() - began
            self._write_patch(result.best)
            self._store(result)
            forecast_record.add(result, self.torch_version, time.strftime("%Y-%m-%d"))
        return result

    def _measure(self, search: Search, result: TrialResult, candidates: Sequence[Remedy]) -> None:
        tell(f"tb-dlprof: {self._isolation.sentence}")
        ready = search.start_baseline()
        result.baseline_ms = search.baseline_step_ms
        self.torch_version = ready.torch_version
        result.device = ready.gpu or "CPU"
        recording = time.monotonic()
        view = self._record_run("baseline", ())
        # The budget is for measurements.
        search.deadline_s += time.monotonic() - recording
        search.measure_seed()
        facts = _facts(view, ready)
        tried, left_out = [], []
        for one in candidates:
            why = one.why_not(facts)
            if why is None:
                tried.append(one)
            else:
                left_out.append(TriedRemedy(remedy=one.name, title=one.title, not_tried=why, code=one.code()))
        forecasts = _forecasts(view, tried)
        result.best = search.run(tried, forecasts)
        search.rows += left_out
        search.end()
        self._record_gains(search)

    def _record_run(self, name: str, remedies: Sequence[Remedy]) -> ProfileView | None:
        """Record a run of the logdir; None where that fails, with a message."""
        if self._record is Record.none:
            return None
        run = self._run_of(name)
        # The script cannot write elsewhere; what was recorded is moved once it is whole.
        recorded = self._laboratory.folder / "recorded" / name
        tell(f"tb-dlprof: {name}: recording")
        environment: dict[str, str] = {}
        for one in remedies:
            environment |= one.environment()

        def write_request(folder: Path) -> Mapping[str, str]:
            session = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
            RunRequest(run_directory=str(recorded), began_s=time.time(), session=session).write(folder)
            return {VARIABLE: str(folder)}

        try:
            recorded.mkdir(parents=True)
            record(
                self._laboratory,
                [one.name for one in remedies],
                environment,
                write_request,
                lambda folder: _all_recorded(read_statuses(folder)),
                lambda folder: _finish(folder, recorded),
                _RECORDING_S,
            )
            self._logdir.make(run.path)
            with run.locked(0):
                _, removed = run.replace(lambda: run.take(recorded), run.recorded_files())
                if removed:
                    tell(f"tb-dlprof: {run.path} was replaced; removed: {', '.join(removed)}.")
                stored = [one for file in run.event_files() for one in read_profiles(file.path)]
            return ProfileView(stored[0].profile) if stored else None
        except (VariantError, ProfileError, RunFolderError, OSError) as error:
            tell(f"tb-dlprof: {name} was not recorded: {error}.")
            return None

    def _run_of(self, name: str) -> RunFolder:
        return RunFolder(self._logdir_path, f"{self.directory.name}/{name}")

    def _record_gains(self, search: Search) -> None:
        if self._record in (Record.none, Record.baseline):
            return
        rows = [*search.rows, *search.sets]
        wanted = [row for row in rows if row.is_gain or (self._record is Record.all and row.gain_percent is not None)]
        for row in wanted:
            if self._record_run(row.remedy, [make(name) for name in row.remedy.split("+")]) is not None:
                row.run = f"{self.directory.name}/{row.remedy}"

    def _write_patch(self, best: BestSet) -> None:
        script = next((Path(one) for one in self._command if one.endswith(".py") and Path(one).is_file()), None)
        if script is None or not best.remedies:
            best.by_hand = list(best.remedies)
            return
        try:
            source = ScriptSource.read(script)
        except (OSError, ValueError):
            best.by_hand = list(best.remedies)
            return
        edits: list[Edit] = []
        for name in best.remedies:
            own = make(name).patch(source)
            try:
                if not own:
                    raise ValueError
                # Two remedies may ask for the same argument.
                own = [one for one in own if one not in edits]
                source.diff([*edits, *own])
            except (ValueError, SyntaxError):
                best.by_hand.append(name)
                continue
            edits += own
        best.patch = source.diff(edits) if edits else ""

    def _store(self, result: TrialResult) -> None:
        """The result lies with the profile of the baseline."""
        run = self._run_of("baseline")
        if self._record is Record.none or not run.path.is_dir():
            return
        try:
            with run.locked():
                old = run.event_files()
                stored = [one.profile for file in old for one in read_profiles(file.path)]
                run.replace(
                    lambda: write_runs(run.path, [dataclasses.replace(one, trial=result) for one in stored]),
                    old if stored else [],
                )
        except (ProfileError, RunFolderError, OSError) as error:
            tell(f"tb-dlprof: the result was not stored: {error}.")


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


class _Told:
    """Prints how it goes to standard error."""

    def phase(self, text: str) -> None:
        """Something begins."""
        tell(f"tb-dlprof: {text}")

    def progress(self, remedy: str, gain: Gain) -> None:
        """A quad was measured."""
        if gain.quads > 1 and sys.stderr.isatty():
            tell(
                f"  {gain.percent:+.1f} % ({gain.low:+.1f} to {gain.high:+.1f}) after {gain.quads} rounds  ",
                "",
                over=True,
            )

    def row(self, row: TriedRemedy) -> None:
        """A remedy is done."""
        tell(f"  {row.remedy}: {_outcome(row)}")


def _outcome(row: TriedRemedy) -> str:
    if row.not_tried or row.no_effect or row.error:
        return row.not_tried or f"no effect: {row.no_effect}" * bool(row.no_effect) or f"failed: {row.error}"
    interval = "" if row.low_percent is None else f" ({row.low_percent:+.1f} to {row.high_percent:+.1f})"
    return f"{row.gain_percent:+.1f} %{interval}" + (f", {row.verdict}" if row.verdict else "")


def _print(result: TrialResult, trial: _Trial) -> None:
    if result.baseline_ms is not None:
        say(
            f"{' '.join(result.command)}: {result.baseline_ms:.3g} ms a step on {result.device}, without a profiler.",
            "",
        )
    done = [row for row in (*result.sets, *result.rows) if row.gain_percent is not None]
    if done:
        print_rows(TriedRow, [tried_row(row) for row in done], cells={"gain_percent": _gain, "verdict": _verdict})
        say()
    for row in result.rows:
        if row.error or row.no_effect:
            say(f"{row.remedy}: {_outcome(row)}")
    waiting = [row.remedy for row in result.rows if row.not_tried == BUDGET_USED]
    skipped = [row.remedy for row in result.rows if row.not_tried and row.not_tried != BUDGET_USED]
    if waiting:
        say(f"Without a turn, for which a larger --budget is needed: {', '.join(waiting)}.")
    if skipped:
        say(f"Nothing to change here for: {', '.join(skipped)}; --format json has the reasons.")
    for note in result.notes:
        say(note)
    best = result.best
    if best.remedies:
        say("", f"Best: {' + '.join(best.remedies)}, {best.gain_percent:+.1f} % {_interval(best)}.")
        alone = {row.remedy: row for row in result.rows}
        for name in best.remedies:
            say(f"  {alone[name].title}:", *(f"    {line}" for line in alone[name].code.splitlines()))
        if best.patch:
            say("  --write-patch FILE writes it as a patch of the script.")
    elif any((row.gain_percent or 0.0) > 0 and row.high_percent is None for row in done) or any(
        (row.gain_percent or 0.0) > _PERHAPS and not row.is_gain for row in done
    ):
        say("No gain is certain yet: the rows with ? need a larger --budget.")
    elif done:
        none = f"None of the {len(done)} remedies that ran makes a step shorter."
        say(f"{none} {len(waiting)} more had no turn." if waiting else none)
    if result.interrupted:
        say("Interrupted: this is what was measured by then.")
    kept = forecast_record.kept()
    if kept is not None:
        say(
            f"Forecasts on this machine so far: {kept.count}, median error {kept.median_error:.1f} points, on average "
            f"{abs(kept.bias):.1f} points too {'low' if kept.bias > 0 else 'high'}."
        )


def _interval(best: BestSet) -> str:
    return "" if best.low_percent is None else f"({best.low_percent:+.1f} to {best.high_percent:+.1f})"


def _gain(row: TriedRow) -> str:
    return f"{row.gain_percent:+.1f} %" + ("" if row.is_gain else " ?" if (row.gain_percent or 0) > 0 else "")


def _verdict(row: TriedRow) -> str:
    return (row.verdict or UNKNOWN) + (f": {row.verdict_text}" if row.verdict_text else "")


def _facts(view: ProfileView | None, ready: Ready) -> TrialFacts:
    version = tuple(int(one) for one in re.findall(r"\d+", ready.torch_version.split("+")[0])[:2])
    return TrialFacts(
        view=view,
        torch_version=version,
        cuda=ready.cuda,
        compute_capability=ready.compute_capability,
        world_size=ready.world_size,
        cpu_count=ready.cpu_count,
        free_memory_bytes=ready.free_memory_bytes,
        peak_memory_bytes=ready.peak_bytes,
    )


def _forecasts(view: ProfileView | None, remedies: Sequence[Remedy]) -> dict[str, float]:
    """By name, the percent of the step that the advice on the baseline's recording expects."""
    if view is None:
        return {}
    by_rule: dict[str, float] = {}
    for item in advise(view, view.selection()).findings:
        if item.saving is not None:
            by_rule[item.rule] = max(by_rule.get(item.rule, 0.0), item.saving.percent)
    found = {one.name: max((by_rule[rule] for rule in one.rules if rule in by_rule), default=None) for one in remedies}
    return {name: value for name, value in found.items() if value is not None}


def _all_recorded(statuses: Sequence[ProcessStatus]) -> bool:
    recorded = [one for one in statuses if one.phase == "recorded" and one.analyses]
    return bool(recorded) and len(recorded) >= max(one.world_size for one in recorded)


def _finish(folder: Path, directory: Path) -> None:
    failures = wait_for_analyses(read_statuses(folder), directory, False)
    if failures:
        raise VariantError(failures[0].rstrip("."))


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
