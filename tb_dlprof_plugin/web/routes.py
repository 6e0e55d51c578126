"""The routes: the one place where each is registered, with its query, what answers it and what the answer is.

TensorBoard's start needs the names, so pages and queries are named by text here and imported with the first request.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tb_dlprof_plugin.web.queries import AnyQuery


@dataclass(frozen=True, slots=True)
class Route:
    """A route, its query and its answer.

    Attributes:
        name: in the address.
        title: what its answer is, in a few words; the frontend's types and docs/architecture.md have it.
        page: module below the package and function that make the page of a profile and a range of its iterations:
            ``(view, ref, selection) -> page``. Such a page is one of the notebook API, too.
        query: a struct of `web.queries`: the parameters.
        handler: a function of `web.handlers`, ``(runs, query) -> page``, for what takes more than `page` does.
        in_file: when an exported file asks it: "first"; "later", with what other answers offer to choose; or "never":
            its answer leads to what a file does not have, or depends on what is typed.
        reads_disk: whether the answer depends on files besides the profiles, so that it is never kept.
        kept_s: how long it is kept (s) although the log directory holds other files by then; 0 for one that depends on
            profiles alone.
    """

    name: str
    title: str
    page: str = ""
    query: str = "RangeQuery"
    handler: str = ""
    in_file: Literal["first", "later", "never"] = "first"
    reads_disk: bool = False
    kept_s: int = 0

    def load_page(self) -> Callable[..., Any]:
        """The function that `page` names."""
        module, function = self.page.split(":")
        found: Callable[..., Any] = getattr(importlib.import_module(f"tb_dlprof_plugin.{module}"), function)
        return found

    def load_handler(self) -> Callable[..., Any]:
        """The function that `handler` names."""
        from tb_dlprof_plugin.web import handlers

        found: Callable[..., Any] = getattr(handlers, self.handler)
        return found

    def load_query(self) -> type[AnyQuery]:
        """The struct that `query` names."""
        from tb_dlprof_plugin.web import queries

        found: type[AnyQuery] = getattr(queries, self.query)
        return found


_ALL = (
    Route("runs", "the recorded runs", query="AnyQuery", handler="index", kept_s=10),
    Route("overview", "where the time of a step goes", page="pages.overview:overview"),
    Route("ops", "the ops of the model", page="pages.ops:ops_page"),
    Route("op_types", "the types of the ops", page="pages.op_types:op_types_page"),
    Route(
        "work_tree",
        "op types, their ops and the kernels of these: the icicle of op types",
        query="RangeQuery",
        handler="work_tree",
    ),
    Route(
        "work_detail",
        "one op, op type, kernel or module: kernels, shapes, launches, time by iteration",
        query="SubjectQuery",
        handler="work_detail",
        in_file="later",
    ),
    Route("modules", "the modules of the model", page="pages.modules:modules_page"),
    Route(
        "kernels",
        "the kernels, of all ops or of some",
        page="pages.kernels:kernels_page",
        query="KernelsQuery",
        handler="kernels",
    ),
    Route("launches", "launches and idle time of the GPU", page="pages.launches:launches_page"),
    Route(
        "timeline",
        "one iteration, its longest events, what the others look like from afar",
        page="pages.timeline.page:timeline_page",
        query="TimelineQuery",
        handler="timeline",
    ),
    Route(
        "timeline_events",
        "up to 20,000 of the other events",
        query="TimelineEventsQuery",
        handler="timeline_events",
        in_file="later",
    ),
    Route(
        "timeline_event",
        "an event: its op, its launch, what is around it",
        query="TimelineEventQuery",
        handler="timeline_event",
        in_file="later",
    ),
    Route(
        "timeline_matches",
        "where the text, op, op type or kernel runs",
        query="TimelineMatchesQuery",
        handler="timeline_matches",
        in_file="never",
    ),
    Route(
        "tensor_cores",
        "ops that can use Tensor Cores, and why some do not",
        page="pages.tensor_cores:tensor_cores_page",
    ),
    Route("roofline", "ops against what the GPU can reach", page="pages.roofline:roofline_page"),
    Route(
        "memory",
        "memory of a device over time",
        page="pages.memory:memory_page",
        query="MemoryQuery",
        handler="memory",
    ),
    Route(
        "plan",
        "what a training takes of a GPU's memory in another configuration, and what fits",
        page="pages.plan:what_fits",
        query="PlanQuery",
        handler="plan",
    ),
    Route(
        "distributed",
        "all ranks of a run: the job's step, who delays whom, what repairs would win",
        query="ProfileQuery",
        handler="distributed",
    ),
    Route(
        "other_jobs",
        "the job against others: what changed, and how the training scales",
        query="OtherJobsQuery",
        handler="other_jobs",
        in_file="never",
    ),
    Route(
        "rank_lines",
        "a step of several ranks on aligned clocks",
        query="RankLinesQuery",
        handler="rank_lines",
        in_file="never",
    ),
    Route(
        "energy",
        "the energy of a step, where it goes, and what other configurations would take",
        page="pages.energy:energy_page",
        query="EnergyQuery",
        handler="energy",
    ),
    Route("key_nodes", "ops that could be the key node", query="ProfileQuery", handler="key_nodes", in_file="never"),
    Route(
        "search",
        "ops, kernels, modules, rules and reports with these words in their names",
        query="SearchQuery",
        handler="search",
        in_file="never",
    ),
    Route(
        "related",
        "the ops, kernels and modules that belong to one",
        query="SubjectQuery",
        handler="related_to",
        in_file="later",
    ),
    Route("report", "a report, as `tb-dlprof report` has it", query="ReportQuery", handler="report", in_file="later"),
    Route(
        "advice",
        "findings and the rules behind them",
        page="pages.advice:advice_page",
        query="AdviceQuery",
        handler="advice",
    ),
    Route("tried", "what `tb-dlprof try` measured with the run as its baseline", page="pages.tried:tried_page"),
    Route("trust", "how far the figures can be trusted", page="pages.trust:trust_page"),
    Route("compare", "two runs, op by op", query="CompareQuery", handler="compare"),
    Route("many_runs", "all runs, each against its base", query="ManyRunsQuery", handler="many_runs"),
    Route("by_model", "each model before and after mixed precision", query="AnyQuery", handler="by_model"),
    Route("sweep", "a figure of many runs over one fact in which they differ", query="SweepQuery", handler="sweep"),
    Route("compare_op", "one op of two runs", query="CompareOpQuery", handler="compare_op", in_file="later"),
    Route("forecast", "the step in another precision", query="ForecastQuery", handler="forecast", in_file="later"),
    Route(
        "trace_links",
        "the trace files in the run's directory",
        query="ProfileQuery",
        handler="trace_links_of",
        in_file="never",
        reads_disk=True,
    ),
    Route(
        "trace",
        "1 MB of a trace file from `offset` on, as it is",
        query="TraceQuery",
        handler="trace",
        in_file="never",
        reads_disk=True,
    ),
)

ROUTES = {route.name: route for route in _ALL}
PAGES = {route.name: route for route in _ALL if route.page}
"""Those that show a profile and a range of its iterations, and need nothing else."""
