"""Handles requests: reads parameters, finds the profile, builds the page. Imported with the first request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from tensorboard import plugin_util
from werkzeug.wrappers import Request

from tb_dlprof_plugin.pages.advice import advice_page
from tb_dlprof_plugin.pages.by_model import by_model_page
from tb_dlprof_plugin.pages.common import RunRef
from tb_dlprof_plugin.pages.compare import CompareInput, compare_op, compare_page
from tb_dlprof_plugin.pages.forecast import forecast_page
from tb_dlprof_plugin.pages.key_nodes import key_nodes_page
from tb_dlprof_plugin.pages.memory import memory_page
from tb_dlprof_plugin.pages.ops import op_detail
from tb_dlprof_plugin.pages.pages import PAGES
from tb_dlprof_plugin.pages.related import related
from tb_dlprof_plugin.pages.runs import many_runs_page
from tb_dlprof_plugin.pages.search import search_page
from tb_dlprof_plugin.pages.sweep import SweepChoice, SweepError, sweep_page
from tb_dlprof_plugin.pages.timeline.chunk import timeline_chunk
from tb_dlprof_plugin.pages.timeline.event import timeline_event
from tb_dlprof_plugin.pages.timeline.matches import timeline_matches
from tb_dlprof_plugin.pages.timeline.page import timeline_page
from tb_dlprof_plugin.pages.trace_links import TraceLinks, no_trace_links, trace_links
from tb_dlprof_plugin.planning import ForecastError
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.readers.trace_names import is_copy
from tb_dlprof_plugin.reports.page import ReportPage, report_page
from tb_dlprof_plugin.reports.registry import REPORTS
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.query import integer, optional, required
from tb_dlprof_plugin.web.recorded_runs import RecordedRuns
from tb_dlprof_plugin.web.store import ProfileStore
from tb_dlprof_plugin.web.trace_files import piece_of, run_directory, traces_in


@dataclass(frozen=True, slots=True)
class _KeptReport:
    view: ProfileView
    selection: Selection
    page: ReportPage


class Answers:
    """The handlers of the routes."""

    def __init__(self, data_provider: Any, logdir: str) -> None:
        self._logdir = logdir
        self._store = ProfileStore(data_provider, logdir)
        self._recorded = RecordedRuns(self._store)
        self._kept_report: _KeptReport | None = None

    def answer(self, route: str, request: Request) -> msgspec.Struct:
        """The page of a route.

        Raises:
            RequestError: the request is wrong, or its subject is missing or damaged.
        """
        if route == "runs":
            return self._store.index(*_where(request), integer(request.args, "offset") or 0)
        if route == "op":
            return self._op(request)
        if route == "memory":
            return self._memory(request)
        if route == "key_nodes":
            return self._key_nodes(request)
        if route == "search":
            return search_page(*self._profile(request, request.args), optional(request.args, "text") or "")
        if route == "related":
            return self._related(request)
        if route == "report":
            return self._report(request)
        if route == "advice":
            set_aside = frozenset(filter(None, request.args.get("set_aside", "").split(",")))
            return advice_page(*self._profile(request, request.args, with_ranks=True), set_aside)
        if route.startswith("timeline"):
            return self._timeline(route, request)
        if route == "compare":
            return compare_page(*self._sides(request))
        if route == "compare_op":
            return self._compare_op(request)
        if route == "forecast":
            return self._forecast(request)
        if route == "many_runs":
            return self._many_runs(request)
        if route == "by_model":
            read = self._recorded.read(*_where(request))
            return by_model_page(read.recorded, read.failed, read.total)
        if route == "sweep":
            return self._sweep(request)
        if route == "trace_links":
            return self._trace_links(request)
        return PAGES[route](*self._profile(request, request.args, with_ranks=route == "overview"))

    def trace_piece(self, request: Request) -> bytes:
        """A piece of a trace, from ``offset`` on; the trace is one that the route ``trace_links`` named.

        Raises:
            RequestError: there is no such trace, or it was written over since.
        """
        name = required(request.args, "name")
        offset, version = integer(request.args, "offset") or 0, optional(request.args, "version")
        view, ref, _ = self._whole(request)
        directory, _ = run_directory(self._logdir, ref.run, view.profile.source.trace_file)
        return piece_of(directory, name, offset, version)

    def _trace_links(self, request: Request) -> TraceLinks:
        view, ref, _ = self._whole(request)
        try:
            directory, tab_run = run_directory(self._logdir, ref.run, view.profile.source.trace_file)
        except RequestError as error:
            return no_trace_links(ref, str(error))
        files = [(f.name, str(f.path), f.size_bytes, f.version, is_copy(f.path)) for f in traces_in(directory)]
        return trace_links(view.profile, ref, str(directory), tab_run, files)

    def _whole(self, request: Request) -> tuple[ProfileView, RunRef, Selection]:
        """The profile as recorded: without a key node or a range of iterations."""
        names = {name: value for name, value in request.args.items() if name not in ("key_node", "first", "last")}
        return self._profile(request, names)

    def _op(self, request: Request) -> msgspec.Struct:
        op = required(request.args, "id")
        view, ref, selection = self._profile(request, request.args)
        try:
            return op_detail(view, ref, selection, op)
        except KeyError:
            raise RequestError(404, f"Run {ref.run!r} has no op {op!r} in the selected iterations.") from None

    def _memory(self, request: Request) -> msgspec.Struct:
        view, ref, selection = self._profile(request, request.args)
        device = request.args.get("device") or None
        try:
            return memory_page(view, ref, selection, device)
        except KeyError:
            raise RequestError(404, f"Run {ref.run!r} holds no memory of device {device!r}.") from None

    def _timeline(self, route: str, request: Request) -> msgspec.Struct:
        args = request.args
        view, ref, selection = self._profile(request, args)
        iteration = integer(args, "iteration")
        try:
            if route == "timeline_events":
                return timeline_chunk(view, selection, iteration, integer(args, "chunk") or 0)
            if route == "timeline_event":
                return timeline_event(view, ref, selection, iteration, required(args, "id"))
            if route == "timeline_matches":
                text, op, kernel = (optional(args, name) for name in ("text", "op", "kernel"))
                return timeline_matches(view, selection, iteration, text=text, op=op, kernel=kernel)
            return timeline_page(view, ref, selection, iteration)
        except ValueError as error:
            raise RequestError(400, f"Run {ref.run!r}: {error}.") from None
        except KeyError as error:
            raise RequestError(
                404, f"Run {ref.run!r}: the timeline of this iteration has no {error.args[0]}."
            ) from None

    def _key_nodes(self, request: Request) -> msgspec.Struct:
        view, ref, _ = self._whole(request)
        return key_nodes_page(view, ref)

    def _related(self, request: Request) -> msgspec.Struct:
        kind, subject = required(request.args, "kind"), required(request.args, "id")
        if kind not in ("op", "kernel", "module"):
            raise RequestError(400, f"The parameter 'kind' must be op, kernel or module, not {kind!r}.")
        view, ref, selection = self._profile(request, request.args)
        try:
            return related(view, ref, selection, kind, subject)  # type: ignore[arg-type]
        except KeyError:
            raise RequestError(404, f"Run {ref.run!r} has no {kind} {subject!r}.") from None

    def _report(self, request: Request) -> msgspec.Struct:
        name = required(request.args, "name")
        if name not in REPORTS:
            raise RequestError(404, f"There is no report {name!r}; there is {', '.join(REPORTS)}.")
        view, ref, selection = self._profile(request, request.args)
        kept = self._kept_report
        # The rest of a long report is requested piece by piece.
        if (
            kept is not None
            and kept.view is view
            and (kept.page.ref, kept.page.name, kept.selection)
            == (
                ref,
                name,
                selection,
            )
        ):
            return kept.page
        page = report_page(view, ref, selection, name)
        self._kept_report = _KeptReport(view, selection, page)
        return page

    def _compare_op(self, request: Request) -> msgspec.Struct:
        op = required(request.args, "id")
        a, b = self._sides(request)
        try:
            return compare_op(a, b, op)
        except KeyError:
            raise RequestError(404, f"Runs {a.ref.run!r} and {b.ref.run!r} have no op {op!r} to compare.") from None

    def _forecast(self, request: Request) -> msgspec.Struct:
        precision, batch_size = required(request.args, "precision"), integer(request.args, "batch_size")
        view, ref, _ = self._profile(request, request.args)
        try:
            return forecast_page(view, ref, precision, batch_size, request.args.get("gpu") or None)
        except ForecastError as error:
            raise RequestError(404, f"Run {ref.run!r}: {error}") from None

    def _sides(self, request: Request) -> tuple[CompareInput, CompareInput]:
        a, b = (
            CompareInput(
                *self._profile(
                    request, {k[2:]: v for k, v in request.args.items() if k.startswith(side)}, with_ranks=True
                )
            )
            for side in ("a.", "b.")
        )
        return a, b

    def _many_runs(self, request: Request) -> msgspec.Struct:
        read = self._recorded.read(*_where(request))
        base = request.args.get("base") or None
        done = len(read.recorded) + len(read.failed)
        try:
            return many_runs_page(read.recorded, base, read.failed, read.total)
        except KeyError:
            if done == read.total:
                raise RequestError(404, f"There is no run {base!r} to be the base; pick another in the list.") from None
        # The base is not read yet: until then the other runs are shown without it.
        return many_runs_page(read.recorded, None, read.failed, read.total)

    def _sweep(self, request: Request) -> msgspec.Struct:
        args = request.args
        choice = SweepChoice(
            over=args.get("over") or None,
            measure=args.get("measure") or "step_time",
            kernel_group=args.get("kernel_group") or None,
            op=args.get("op") or None,
            direction=args.get("direction") or None,
        )
        read = self._recorded.read(*_where(request))
        try:
            return sweep_page(read.recorded, choice, read.failed, read.total)
        except SweepError as error:
            raise RequestError(400, f"The sweep cannot be drawn: {error}.") from None

    def _profile(
        self, request: Request, args: Mapping[str, str], with_ranks: bool = False
    ) -> tuple[ProfileView, RunRef, Selection]:
        view, ref = self._store.find(
            *_where(request),
            required(args, "run"),
            args.get("session"),
            integer(args, "rank"),
            integer(args, "cycle"),
            with_ranks,
            optional(args, "key_node"),
        )
        try:
            return view, ref, view.selection(integer(args, "first"), integer(args, "last"))
        except ValueError as error:
            raise RequestError(400, f"Run {ref.run!r}: {error}.") from None


def _where(request: Request) -> tuple[Any, str]:
    return plugin_util.context(request.environ), plugin_util.experiment_id(request.environ)
