"""One trial of a script: measures remedies within a budget, writes the best set as a patch, and records runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tb_dlprof_plugin.advice.engine import advise
from tb_dlprof_plugin.capture.launcher.protocol import INJECTED
from tb_dlprof_plugin.metrics.loader.forecast import loader_forecast
from tb_dlprof_plugin.model.trial_result import OTHER_TRAININGS, BestSet, TrialResult, TriedRemedy
from tb_dlprof_plugin.model.visible import VisibleMessage
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.trial import forecast_record, kept_result
from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
from tb_dlprof_plugin.trial.experiment import Bench
from tb_dlprof_plugin.trial.facts import facts_of
from tb_dlprof_plugin.trial.inside.remedies import make
from tb_dlprof_plugin.trial.inside.remedy import Remedy
from tb_dlprof_plugin.trial.interruption import one_interrupt
from tb_dlprof_plugin.trial.isolation import Isolation
from tb_dlprof_plugin.trial.measuring import Listener
from tb_dlprof_plugin.trial.search import Search, by_gain
from tb_dlprof_plugin.trial.trial_runs import Record, TrialRuns, WaitForAnalyses
from tb_dlprof_plugin.trial.variant import Laboratory, VariantError, scratch_folder

_LEAST_EXPECTED = 0.1
_SHARE_OF_RECORDING = 0.25
"""Of the budget, at most, that is kept for recordings."""


class TrialError(VisibleMessage):
    """The trial cannot begin. The message says what to do."""


class Trial:
    """Its processes and folders are gone at the end, however it ends.

    Args:
        command: the script and its arguments, as given.
        line: what starts it.
        script: its name.
        logdir: TensorBoard's log directory for the runs.
        record: which remedies become runs, also after the end of the budget; None: gains, as far as it lasts.
        isolation: where the writes of the script go.
        listener: of the progress.
        wait_for_analyses: of a recorded run.

    Attributes:
        failed: whether the script could not be tried; the result's notes say why.

    Raises:
        TrialError: the log directory cannot be written.
    """

    def __init__(
        self,
        command: Sequence[str],
        line: Sequence[str],
        script: str,
        logdir: Path,
        record: Record | None,
        isolation: Isolation,
        listener: Listener,
        wait_for_analyses: WaitForAnalyses,
    ) -> None:
        self._command, self._line, self._script = command, line, script
        self._isolation, self._listener = isolation, listener
        self.failed, self._records_all = False, record is not None
        self._began_s = 0.0
        name = f"{script.removesuffix('.py')}_try"
        try:
            self._runs = TrialRuns(logdir, name, record or Record.gains, wait_for_analyses, listener.phase)
        except OSError as error:
            raise TrialError(
                f"{logdir / name} cannot be written ({error.strerror}); choose another --logdir, or --record none"
            ) from None

    def run(
        self,
        candidates: Sequence[Remedy],
        budget_s: float,
        precision: float,
        earlier: TrialResult | None = None,
    ) -> TrialResult:
        """Measure all; Ctrl-C ends it with what is known by then.

        Args:
            candidates: the remedies.
            budget_s: seconds of all measurements.
            precision: percent, half of the interval at which a measurement ends.
            earlier: a result to go on with: what was measured is not measured again.
        """
        self._began_s = began = time.monotonic()
        result = TrialResult(command=list(self._command))
        with one_interrupt() as hold_interrupts:
            laboratory = Laboratory(self._line, scratch_folder(), INJECTED, self._isolation)
            search = Search(laboratory, Bench(precision), budget_s, self._listener)
            try:
                self._measure(search, result, candidates, earlier)
            except KeyboardInterrupt:
                result.interrupted = True
                result.best = search.best()
            except VariantError as error:
                result.best = search.best()
                # What was measured before counts.
                self.failed = not search.has_figures
                said = "cannot be tried" if self.failed else "could not be tried further"
                search.notes.append(f"{self._script} {said}: {error}.")
            finally:
                hold_interrupts()
                laboratory.close()
                self._runs.remove_empty()
            measured = [row.before_ms for row in (*search.rows, *search.sets) if row.before_ms is not None]
            result.baseline_ms = sorted(measured)[len(measured) // 2] if measured else result.baseline_ms
            result.rows = sorted(search.rows, key=by_gain)
            result.sets = [row for row in search.sets if row.gain_percent is not None]
            result.notes = search.notes
            result.seconds = time.monotonic() - began
            _write_patch(self._command, result.best)
            self._runs.store(result)
            if search.has_figures:
                kept_result.keep(result, self._isolation.folder)
            torch_version = search.ready[0].torch_version if search.ready else ""
            forecast_record.add(result, torch_version, time.strftime("%Y-%m-%d"))
        return result

    def _measure(
        self, search: Search, result: TrialResult, candidates: Sequence[Remedy], earlier: TrialResult | None
    ) -> None:
        self._listener.phase(self._isolation.sentence)
        ready = search.start_baseline()
        result.baseline_ms = search.baseline_step_ms
        result.device = ready.gpu or "CPU"
        result.first_step_s = max(search.deadline_s - search.budget_s - self._began_s, 0.0)
        facts = facts_of(ready, search.baseline_step_ms)
        first: list[str] = []
        if earlier is not None and earlier.device == result.device:
            search.rows = [row for row in earlier.rows if row.gain_percent is not None or row.no_effect or row.error]
            search.sets, first = earlier.sets, _promising(earlier)
        tried, left_out = [], []
        for one in candidates:
            why = one.why_not(facts)
            if why is None:
                tried.append(one)
            else:
                left_out.append(TriedRemedy(remedy=one.name, title=one.title, not_tried=why, code=one.code()))
        recorded = self._runs.earlier()
        search.forecasts = _forecasts(recorded, tried)
        search.of_loader = None if recorded is None else loader_forecast(recorded)
        known = forecast_record.usual_gains(result.device)
        expected = {
            one.name: _expected(one.usual(facts), search.forecasts.get(one.name, known.get(one.name))) for one in tried
        }
        recording_s = self._runs.seconds(ready.since_start_s)
        fits = not self._records_all and recording_s < _SHARE_OF_RECORDING * search.budget_s
        kept_s = recording_s if fits else 0.0
        search.deadline_s -= kept_s
        try:
            result.best = search.run(tried, expected, first)
        finally:
            known_rows = {row.remedy for row in search.rows}
            search.rows += [row for row in left_out if row.remedy not in known_rows]
        search.deadline_s += kept_s
        search.end()
        self._record(search, recording_s, tried)

    def _record(self, search: Search, each_s: float, tried: Sequence[Remedy]) -> None:
        """Record the baseline, then gains, the largest first, as long as the budget lasts."""
        assert search.laboratory is not None
        wanted = sorted((*search.sets, *search.rows), key=by_gain)
        names = [row.remedy for row in wanted if row.gain_percent is not None and self._runs.wants(row.is_gain)]
        left_out = []
        for name in ["baseline", *names] if each_s else []:
            if search.left_s < each_s and not self._records_all:
                left_out.append(name)
                continue
            remedies = [] if name == "baseline" else [make(one) for one in name.split("+")]
            view = self._runs.record(search.laboratory, name, remedies)
            if view is not None and name == "baseline":
                forecasts = _forecasts(view, tried)
                for row in search.rows:
                    row.forecast_percent = forecasts.get(row.remedy, row.forecast_percent)
            elif view is not None:
                next(row for row in wanted if row.remedy == name).run = self._runs.path_of(name)
        if left_out:
            search.notes.append(
                f"Not recorded within the budget, with about {each_s:.0f} s each: {', '.join(left_out)}."
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
    found |= {one.name: own for one in remedies if (own := one.forecast(view)) is not None}
    return {name: value for name, value in found.items() if value is not None}


def _promising(earlier: TrialResult) -> list[str]:
    """Remedies of the best set, or of the one that is best so far."""
    rows = [
        row for row in (*earlier.sets, *earlier.rows)
        if row.gain_percent is not None and row.verdict not in OTHER_TRAININGS and row.samples == 1
    ]  # fmt: skip
    best = max(rows, key=lambda row: row.gain_percent or 0.0, default=None)
    return earlier.best.remedies or (best.remedy.split("+") if best is not None else [])


def _expected(usual: float, known: float | None) -> float:
    """Percent; what helped no other script is still put together with the rest, unless it usually costs."""
    return usual if known is None else max(known, _LEAST_EXPECTED) if usual > 0 else known


def _write_patch(command: Sequence[str], best: BestSet) -> None:
    """Fill the patch of the script that makes the best set permanent, and what no edit is safe for."""
    source = _source_of(command) if best.remedies else None
    if source is None:
        best.by_hand = list(best.remedies)
        return
    edits: list[Edit] = []
    for name in best.remedies:
        own = make(name).patch(source)
        # Two remedies may ask for the same argument.
        new = [one for one in own or () if one not in edits]
        if not own or not _fits(source, [*edits, *new]):
            best.by_hand.append(name)
            continue
        edits += new
    best.patch = source.diff(edits) if edits else ""


def _source_of(command: Sequence[str]) -> ScriptSource | None:
    """Of the command's script; None where it cannot be read."""
    script = next((Path(one) for one in command if one.endswith(".py") and Path(one).is_file()), None)
    try:
        return None if script is None else ScriptSource.read(script)
    except (OSError, ValueError):
        return None


def _fits(source: ScriptSource, edits: Sequence[Edit]) -> bool:
    """Whether the edits make a valid script together."""
    try:
        source.diff(edits)
    except (ValueError, SyntaxError):
        return False
    return True
