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
        page: module below the package and function that answers. It takes, by the names of its parameters, what
            `web.open_runs` opens, and options (`model.request`), which are parameters of the query.
        query: a struct of `web.queries`: the parameters that say what is opened.
        lacks: the answer where the page raises KeyError: a sentence with the query's parameters, {0} for the error's.
        in_file: when an exported file asks it: "first", or "part" for a part of such a page; "later", with what other
            answers offer to choose; or "never": its answer leads to what a file lacks, or depends on what is typed.
        reads_disk: whether the answer depends on files besides the profiles, so that it is never kept.
        kept_s: how long it is kept (s) although the log directory holds other files by then; 0 for one that depends on
            profiles alone.
    """

    name: str
    title: str
    page: str
    query: Literal["AnyQuery", "ProfileQuery", "RangeQuery", "CompareQuery"] = "RangeQuery"
    lacks: str = ""
    in_file: Literal["first", "part", "later", "never"] = "first"
    reads_disk: bool = False
    kept_s: int = 0

    def load_page(self) -> Callable[..., Any]:
        """The function that `page` names."""
        module, function = self.page.split(":")
        found: Callable[..., Any] = getattr(importlib.import_module(f"tb_dlprof_plugin.{module}"), function)
        return found

    def load_query(self) -> type[AnyQuery]:
        """The struct that `query` names, with the options that the page takes."""
        from tb_dlprof_plugin.web import queries

        return queries.query_of(self.name, self.load_page(), getattr(queries, self.query))


_NOT_IN_ITERATION = "Run {run!r}: the timeline of this iteration has no {0}."
_ALL = (
    Route("runs", "the recorded runs", "web.run_index:run_index", query="AnyQuery", kept_s=10),
    Route("overview", "where the time of a step goes", "pages.overview:overview"),
    Route("ops", "the ops of the model", "pages.ops:ops_page"),
    Route("op_types", "the types of the ops", "pages.op_types:op_types_page"),
    Route(
        "work_tree",
        "op types, their ops and the kernels of these: the icicle of op types",
        "pages.work_tree:work_tree",
        in_file="part",
    ),
    Route(
        "work_detail",
        "one op, op type, kernel or module: kernels, shapes, launches, time by iteration",
        "pages.work_detail:work_detail",
        lacks="Run {run!r} has no {kind} {id!r} in the selected iterations.",
        in_file="later",
    ),
    Route("modules", "the modules of the model", "pages.modules:modules_page"),
    Route(
        "kernels",
        "the kernels, of all ops or of some",
        "pages.kernels:kernels_of_any",
        lacks="Run {run!r} has no such op, op type or module.",
    ),
    Route("launches", "launches and idle time of the GPU", "pages.launches:launches_page"),
    Route(
        "timeline",
        "one iteration, its longest events, what the others look like from afar",
        "pages.timeline.page:timeline_page",
    ),
    Route(
        "timeline_events",
        "up to 20,000 of the other events",
        "pages.timeline.columns:timeline_chunk",
        lacks=_NOT_IN_ITERATION,
        in_file="later",
    ),
    Route(
        "timeline_event",
        "an event: its op, its launch, what is around it",
        "pages.timeline.event:timeline_event",
        lacks=_NOT_IN_ITERATION,
        in_file="later",
    ),
    Route(
        "timeline_matches",
        "where the text, op, op type or kernel runs",
        "pages.timeline.matches:timeline_matches",
        lacks=_NOT_IN_ITERATION,
        in_file="never",
    ),
    Route("tensor_cores", "ops that can use Tensor Cores, and why some do not", "pages.tensor_cores:tensor_cores_page"),
    Route("roofline", "ops against what the GPU can reach", "pages.roofline:roofline_page"),
    Route("compiled", "what the kernels of torch.compile compute", "pages.compiled:compiled_page"),
    Route("loader", "what limits the DataLoader, and how many workers it needs", "pages.loader:loader_page"),
    Route(
        "memory",
        "memory of a device over time",
        "pages.memory:memory_page",
        lacks="Run {run!r} holds no memory of device {device!r}.",
    ),
    Route(
        "out_of_memory",
        "the failed allocation in the run's directory: who held what, and what would have fitted",
        "web.oom_of_run:oom_of_run",
        query="ProfileQuery",
        in_file="part",
        reads_disk=True,
    ),
    Route(
        "plan",
        "what a training takes of a GPU's memory in another configuration, and what fits",
        "pages.plan:what_fits",
    ),
    Route(
        "distributed",
        "all ranks of a run: the job's step, who delays whom, what repairs would win",
        "pages.distributed:distributed_page",
        query="ProfileQuery",
    ),
    Route(
        "other_jobs",
        "the job against others: what changed, and how the training scales",
        "web.other_jobs:other_jobs",
        query="ProfileQuery",
        in_file="never",
    ),
    Route(
        "rank_lines",
        "a step of several ranks on aligned clocks",
        "pages.rank_lines:rank_lines_page",
        query="ProfileQuery",
        lacks="Run {run!r} has no {0}.",
        in_file="never",
    ),
    Route(
        "energy",
        "the energy of a step, where it goes, and what other configurations would take",
        "pages.energy:energy_page",
    ),
    Route(
        "key_nodes",
        "ops that could be the key node",
        "pages.key_nodes:key_nodes_page",
        query="ProfileQuery",
        in_file="never",
    ),
    Route(
        "search",
        "ops, kernels, modules, rules and reports with these words in their names",
        "pages.search:search_page",
        in_file="never",
    ),
    Route(
        "related",
        "the ops, kernels and modules that belong to one",
        "pages.related:related",
        lacks="Run {run!r} has no {kind} {id!r}.",
        in_file="later",
    ),
    Route(
        "report",
        "a report, as `tb-dlprof report` has it",
        "reports.page:report_page",
        lacks="There is no report {name!r}; there is {0}.",
        in_file="later",
    ),
    Route("advice", "findings and the rules behind them", "pages.advice:advice_page"),
    Route("tried", "what `tb-dlprof try` measured with the run as its baseline", "pages.tried:tried_page"),
    Route("trust", "how far the figures can be trusted", "pages.trust:trust_page"),
    Route("compare", "two runs, op by op", "pages.compare:compare_page", query="CompareQuery"),
    Route(
        "many_runs",
        "all runs, each against its base",
        "pages.runs:many_runs_page",
        query="AnyQuery",
        lacks="There is no run {base!r} to be the base; pick another in the list.",
    ),
    Route("by_model", "each model before and after mixed precision", "pages.by_model:by_model_page", query="AnyQuery"),
    Route(
        "sweep", "a figure of many runs over one fact in which they differ", "pages.sweep:sweep_page", query="AnyQuery"
    ),
    Route(
        "compare_op",
        "one op of two runs",
        "pages.compare:compare_op",
        query="CompareQuery",
        lacks="Runs {a.run!r} and {b.run!r} have no op {id!r} to compare.",
        in_file="later",
    ),
    Route("forecast", "the step in another precision", "pages.forecast:forecast_page", in_file="later"),
    Route(
        "trace_links",
        "the trace files in the run's directory",
        "web.trace_files:trace_links_of",
        query="ProfileQuery",
        in_file="never",
        reads_disk=True,
    ),
    Route(
        "trace",
        "1 MB of a trace file from `offset` on, as it is",
        "web.trace_files:trace",
        query="ProfileQuery",
        in_file="never",
        reads_disk=True,
    ),
    Route(
        "page_file",
        "1 MB of the HTML file of a run, or of two, from `offset` on",
        "web.page_file:page_file",
        query="ProfileQuery",
        in_file="never",
        reads_disk=True,
    ),
)

ROUTES = {route.name: route for route in _ALL}
PAGES = {route.name: route for route in _ALL if route.query == "RangeQuery" and route.in_file == "first"}
"""Those that show a profile and a range of its iterations, and need nothing else; Python has them, too."""
