"""Returns the tables of the Runs page for any number of profiles."""

from __future__ import annotations

from collections.abc import Iterable

from tb_dlprof_plugin.api.page_result import Page
from tb_dlprof_plugin.api.profiles import ReadProfile
from tb_dlprof_plugin.model.request import keywords_of
from tb_dlprof_plugin.pages.by_model import by_model_page
from tb_dlprof_plugin.pages.recorded_run import RecordedRun, recorded_run
from tb_dlprof_plugin.pages.runs import many_runs_page
from tb_dlprof_plugin.pages.sweep import SweepRequest, sweep_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.choice import newest_of_runs


def many_runs(runs: Iterable[ReadProfile], base: str | None = None) -> Page:
    """All runs in one table, each against its base: step time, speedup with its interval, utilization, memory, advice.

    Args:
        runs: of `read_profiles`; of each run the newest session, its lowest rank and last cycle count.
        base: the name of the base of all runs; by default each model's own FP32 run.

    Raises:
        ValueError: there is no run of this name.
    """
    recorded = _recorded(runs)
    names = [one.run.name for one in recorded]
    if base is not None and base not in names:
        raise ValueError(f"there is no run {base!r}; the runs are {', '.join(names)}")
    return Page(many_runs_page(recorded, base))


def by_model(runs: Iterable[ReadProfile]) -> Page:
    """A row for each model: before and after mixed precision, and what to do next."""
    return Page(by_model_page(_recorded(runs)))


@keywords_of(SweepRequest)
def sweep(runs: Iterable[ReadProfile], request: SweepRequest) -> Page:
    """A figure of many runs over one fact in which they differ, a line for each of the others.

    Raises:
        ValueError: there is no such fact, measure or direction; one sentence that says what there is.
    """
    return Page(sweep_page(_recorded(runs), request))


def _recorded(runs: Iterable[ReadProfile]) -> list[RecordedRun]:
    return [_figures(run) for run in newest_of_runs(runs)]


def _figures(run: ReadProfile) -> RecordedRun:
    """Its figures and findings, cached because they take longer than the tables."""
    kept = run.kept.get("recorded_run")
    if isinstance(kept, RecordedRun):
        return kept
    view = ProfileView(run.profile)
    made = recorded_run(view, run.ref, view.selection())
    run.kept["recorded_run"] = made
    return made
