"""What answers the routes that take more than a profile and a range: ``(runs, query) -> page``.

Each raises RequestError where what the query asks for is not there. Imported with the first request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.several_jobs.compare_jobs import compare_jobs
from tb_dlprof_plugin.fleet.several_jobs.scaling import scaling
from tb_dlprof_plugin.model.plan_request import PlanRequest
from tb_dlprof_plugin.model.request import InvalidOption, request_of
from tb_dlprof_plugin.pages.advice import AdvicePage, advice_page
from tb_dlprof_plugin.pages.by_model import ByModelPage, by_model_page
from tb_dlprof_plugin.pages.compare import ComparePage, compare_page
from tb_dlprof_plugin.pages.compare import compare_op as compared_op
from tb_dlprof_plugin.pages.compare_ops import CompareOpDetail
from tb_dlprof_plugin.pages.distributed import DistributedPage, distributed_page
from tb_dlprof_plugin.pages.energy import EnergyPage, energy_page
from tb_dlprof_plugin.pages.forecast import ForecastPage, forecast_page
from tb_dlprof_plugin.pages.kernels import KernelsPage, kernels_of, kernels_page
from tb_dlprof_plugin.pages.key_nodes import KeyNodesPage, key_nodes_page
from tb_dlprof_plugin.pages.memory import MemoryPage, memory_page
from tb_dlprof_plugin.pages.other_jobs import OtherJobsPage, other_jobs_page
from tb_dlprof_plugin.pages.plan import PlanPage, plan_page, refused_page
from tb_dlprof_plugin.pages.rank_lines import RankLinesPage, rank_lines_page
from tb_dlprof_plugin.pages.related import Related, related
from tb_dlprof_plugin.pages.run_index import RunIndex
from tb_dlprof_plugin.pages.runs import ManyRunsPage, many_runs_page
from tb_dlprof_plugin.pages.search import SearchPage, search_page
from tb_dlprof_plugin.pages.sweep import SweepChoice, SweepError, SweepPage, sweep_page
from tb_dlprof_plugin.pages.timeline import chunk, event, matches, page
from tb_dlprof_plugin.pages.trace_links import TraceLinks, no_trace_links, trace_links
from tb_dlprof_plugin.pages.work_detail import WorkDetail
from tb_dlprof_plugin.pages.work_detail import work_detail as detail_of
from tb_dlprof_plugin.pages.work_tree import WorkTree
from tb_dlprof_plugin.pages.work_tree import work_tree as work_tree_of
from tb_dlprof_plugin.planning import ForecastError
from tb_dlprof_plugin.planning.memory.rewrites import PlanError
from tb_dlprof_plugin.readers.trace_names import is_copy
from tb_dlprof_plugin.reports.page import ReportPage, report_page
from tb_dlprof_plugin.reports.registry import REPORTS
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web import queries as q
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.open_runs import OpenRuns
from tb_dlprof_plugin.web.run_index import run_index
from tb_dlprof_plugin.web.trace_files import piece_of, run_directory, traces_in

_MOST_JOBS = 16
"""That one is shown against."""
_MOST_LINES = 16
"""Ranks under each other."""


def index(runs: OpenRuns, query: q.AnyQuery) -> RunIndex:
    """The list of runs."""
    return run_index(runs.source, runs.logdir, query.offset, runs.kept.why_unreadable)


def work_tree(runs: OpenRuns, query: q.RangeQuery) -> WorkTree:
    """Op types, ops and kernels."""
    return work_tree_of(*runs.profile(query))


def work_detail(runs: OpenRuns, query: q.SubjectQuery) -> WorkDetail:
    """One op, op type, kernel or module."""
    view, ref, selection = runs.profile(query)
    try:
        return detail_of(view, ref, selection, query.kind, query.id)
    except KeyError:
        what = query.kind.replace("_", " ")
        raise RequestError(404, f"Run {ref.run!r} has no {what} {query.id!r} in the selected iterations.") from None


def kernels(runs: OpenRuns, query: q.KernelsQuery) -> KernelsPage:
    """The kernels of all launches, of an op's, an op type's or a module's."""
    view, ref, selection = runs.profile(query)
    try:
        if query.op is not None:
            return kernels_of(view, ref, selection, "op", query.op)
        if query.op_type is not None:
            return kernels_of(view, ref, selection, "op_type", query.op_type)
        if query.module is not None:
            return kernels_of(view, ref, selection, "module", query.module)
    except KeyError:
        raise RequestError(404, f"Run {ref.run!r} has no such op, op type or module.") from None
    return kernels_page(view, ref, selection)


def memory(runs: OpenRuns, query: q.MemoryQuery) -> MemoryPage:
    """Memory of a device."""
    view, ref, selection = runs.profile(query)
    try:
        return memory_page(view, ref, selection, query.device)
    except KeyError:
        raise RequestError(404, f"Run {ref.run!r} holds no memory of device {query.device!r}.") from None


def plan(runs: OpenRuns, query: q.RangeQuery) -> PlanPage:
    """What fits."""
    view, ref, _ = runs.profile(query)
    try:
        return plan_page(view, ref, request_of(PlanRequest, query))
    except InvalidOption as error:
        raise RequestError(400, f"The parameter {error.name!r} {error.why}") from None
    except PlanError as error:
        # A page with its controls, where another configuration is chosen.
        return refused_page(view, ref, str(error))


def energy(runs: OpenRuns, query: q.EnergyQuery) -> EnergyPage:
    """The energy of a step."""
    return energy_page(*runs.profile(query), query.price_per_kwh, query.co2_per_kwh, query.steps_per_epoch)


def advice(runs: OpenRuns, query: q.AdviceQuery) -> AdvicePage:
    """The findings."""
    return advice_page(*runs.profile(query), frozenset(filter(None, query.set_aside.split(","))))


def timeline(runs: OpenRuns, query: q.TimelineQuery) -> page.TimelinePage:
    """One iteration."""
    view, ref, selection = runs.profile(query)
    with _timeline_errors(ref.run):
        return page.timeline_page(view, ref, selection, query.iteration)


def timeline_events(runs: OpenRuns, query: q.TimelineEventsQuery) -> chunk.TimelineEventsPage:
    """A part of an iteration's events."""
    view, ref, selection = runs.profile(query)
    with _timeline_errors(ref.run):
        return chunk.timeline_chunk(view, selection, query.iteration, query.chunk)


def timeline_event(runs: OpenRuns, query: q.TimelineEventQuery) -> event.TimelineEvent:
    """An event of an iteration."""
    view, ref, selection = runs.profile(query)
    with _timeline_errors(ref.run):
        return event.timeline_event(view, ref, selection, query.iteration, query.id)


def timeline_matches(runs: OpenRuns, query: q.TimelineMatchesQuery) -> matches.TimelineMatches:
    """Where a text, op, op type or kernel is in an iteration."""
    view, ref, selection = runs.profile(query)
    with _timeline_errors(ref.run):
        return matches.timeline_matches(
            view,
            selection,
            query.iteration,
            text=query.text,
            op=query.op,
            op_type=query.op_type,
            kernel=query.kernel,
        )


def key_nodes(runs: OpenRuns, query: q.ProfileQuery) -> KeyNodesPage:
    """Ops that could be the key node."""
    view, ref, _ = runs.profile(query)
    return key_nodes_page(view, ref)


def search(runs: OpenRuns, query: q.SearchQuery) -> SearchPage:
    """What has the words in its name."""
    return search_page(*runs.profile(query), query.text)


def related_to(runs: OpenRuns, query: q.SubjectQuery) -> Related:
    """What belongs to an op, kernel or module."""
    view, ref, selection = runs.profile(query)
    try:
        return related(view, ref, selection, query.kind, query.id)
    except KeyError:
        raise RequestError(404, f"Run {ref.run!r} has no {query.kind.replace('_', ' ')} {query.id!r}.") from None


def report(runs: OpenRuns, query: q.ReportQuery) -> ReportPage:
    """A report."""
    if query.name not in REPORTS:
        raise RequestError(404, f"There is no report {query.name!r}; there is {', '.join(REPORTS)}.")
    view, ref, selection = runs.profile(query)
    return report_page(view, ref, selection, query.name)


def compare(runs: OpenRuns, query: q.CompareQuery) -> ComparePage:
    """Two runs."""
    return compare_page(*runs.sides(query))


def compare_op(runs: OpenRuns, query: q.CompareOpQuery) -> CompareOpDetail:
    """One op of two runs."""
    a, b = runs.sides(query)
    try:
        return compared_op(a, b, query.id)
    except KeyError:
        raise RequestError(404, f"Runs {a.ref.run!r} and {b.ref.run!r} have no op {query.id!r} to compare.") from None


def forecast(runs: OpenRuns, query: q.ForecastQuery) -> ForecastPage:
    """The step in another precision."""
    view, ref, _ = runs.profile(query)
    try:
        return forecast_page(view, ref, query.precision, query.batch_size, query.gpu)
    except ForecastError as error:
        raise RequestError(404, f"Run {ref.run!r}: {error}") from None


def many_runs(runs: OpenRuns, query: q.ManyRunsQuery) -> ManyRunsPage:
    """All runs."""
    read = runs.recorded()
    try:
        return many_runs_page(read.recorded, query.base, read.failed, read.total)
    except KeyError:
        if len(read.recorded) + len(read.failed) == read.total:
            raise RequestError(
                404, f"There is no run {query.base!r} to be the base; pick another in the list."
            ) from None
    # The base is not read yet: until then the other runs are shown without it.
    return many_runs_page(read.recorded, None, read.failed, read.total)


def by_model(runs: OpenRuns, query: q.AnyQuery) -> ByModelPage:
    """Each model."""
    read = runs.recorded()
    return by_model_page(read.recorded, read.failed, read.total)


def sweep(runs: OpenRuns, query: q.SweepQuery) -> SweepPage:
    """A figure of many runs."""
    choice = SweepChoice(query.over, query.measure, query.kernel_group, query.op, query.direction)
    read = runs.recorded()
    try:
        return sweep_page(read.recorded, choice, read.failed, read.total)
    except SweepError as error:
        raise RequestError(400, f"The sweep cannot be drawn: {error}.") from None


def trace_links_of(runs: OpenRuns, query: q.ProfileQuery) -> TraceLinks:
    """The traces of a run."""
    view, ref, _ = runs.profile(query)
    try:
        directory, tab_run = run_directory(runs.logdir, ref.run, view.profile.source.trace_file)
    except RequestError as error:
        return no_trace_links(ref, str(error))
    files = [(f.name, str(f.path), f.size_bytes, f.version, is_copy(f.path)) for f in traces_in(directory)]
    return trace_links(view.profile, ref, str(directory), tab_run, files)


def trace(runs: OpenRuns, query: q.TraceQuery) -> bytes:
    """A piece of a trace that `trace_links_of` named."""
    view, ref, _ = runs.profile(query)
    directory, _ = run_directory(runs.logdir, ref.run, view.profile.source.trace_file)
    return piece_of(directory, query.name, query.offset, query.version)


def distributed(runs: OpenRuns, query: q.ProfileQuery) -> DistributedPage:
    """All ranks of a run."""
    return distributed_page(*_job(runs, query))


def _job(runs: OpenRuns, query: q.ProfileQuery) -> tuple[Job, RunRef]:
    """The answers about a job, whose facts are not held any longer."""
    found, ref = runs.job(query)
    return job_of(found.facts, found.unreadable, found.numbers), ref


def other_jobs(runs: OpenRuns, query: q.OtherJobsQuery) -> OtherJobsPage:
    """A job against others."""
    others = list(dict.fromkeys(name for name in query.against.split("\n") if name and name != query.run))
    if not 0 < len(others) <= _MOST_JOBS:
        raise RequestError(400, f"The parameter 'against' must name 1 to {_MOST_JOBS} other runs.")
    job, ref = _job(runs, query)
    jobs = [_job(runs, q.ProfileQuery(run=name))[0] for name in others]
    named = [(query.run, job), *zip(others, jobs, strict=True)]
    try:
        series = scaling(named) if len({one.world_size for _, one in named}) > 1 else None
        return other_jobs_page(ref, compare_jobs(jobs[0], job, (others[0], query.run)), series)
    except ValueError as error:
        raise RequestError(422, f"The jobs cannot be compared: {error}.") from None


def rank_lines(runs: OpenRuns, query: q.RankLinesQuery) -> RankLinesPage:
    """A step of some ranks."""
    found, ref = runs.job(query, query.step)
    try:
        return rank_lines_page(found.facts, _rank_numbers(query.ranks), query.step, found.numbers)
    except KeyError as error:
        raise RequestError(404, f"Run {ref.run!r} has no {error.args[0]}.") from None


def _rank_numbers(text: str) -> list[int]:
    parts = text.split(",")
    if len(parts) > _MOST_LINES or not all(part.isascii() and part.isdigit() and len(part) < 8 for part in parts):
        raise RequestError(
            400, f"The parameter 'ranks' must be up to {_MOST_LINES} numbers such as 0,5,9, not {text!r}."
        )
    return list(dict.fromkeys(map(int, parts)))


@contextmanager
def _timeline_errors(run: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise RequestError(400, f"Run {run!r}: {error}.") from None
    except KeyError as error:
        raise RequestError(404, f"Run {run!r}: the timeline of this iteration has no {error.args[0]}.") from None
