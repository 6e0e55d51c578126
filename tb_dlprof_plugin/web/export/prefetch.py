"""The requests that an exported file must answer: those that the page sends about runs, first and follow-up ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tb_dlprof_plugin.pages.sweep import MEASURES
from tb_dlprof_plugin.reports.registry import REPORTS
from tb_dlprof_plugin.web.queries import ProfileQuery
from tb_dlprof_plugin.web.routes import ROUTES

Query = dict[str, str]

MOST_OPS = 1_000
"""Number of ops with details in a file, of a run and of a pair: the first on the page, which have most time."""
MOST_COMPARED = 4
"""Runs of which each pair is compared; of more, each with its base alone, as the Runs page does."""
MOST_CHUNKS = 6
"""Parts of a timeline's events, of at most 20,000 events each."""


@dataclass(frozen=True, slots=True)
class Question:
    """A route and its query, and the runs that it is about: none for a request about all runs."""

    route: str
    query: Query
    runs: tuple[str, ...] = ()


def about_run(run: str) -> list[Question]:
    """The pages of one run over all its iterations, and its reports."""
    first = [route for route in ROUTES.values() if route.in_file in ("first", "part")]
    pages = [Question(one.name, {"run": run}, (run,)) for one in first if issubclass(one.load_query(), ProfileQuery)]
    return pages + [Question("report", {"run": run, "name": name}, (run,)) for name in REPORTS]


def about_pair(base: str, candidate: str) -> list[Question]:
    """The comparison of two runs."""
    return [Question("compare", {"a.run": base, "b.run": candidate}, (base, candidate))]


def about_all(names: Sequence[str]) -> list[Question]:
    """The list of runs and the Runs page, with each model's base and with each run as the base."""
    held = [Question("many_runs", {"base": name}) for name in names]
    return [Question("runs", {}), Question("many_runs", {}), *held, Question("by_model", {}), Question("sweep", {})]


def following(question: Question, page: Any) -> Iterable[Question]:
    """The follow-up requests that a response leads to."""
    follow = _FOLLOWING.get(question.route)
    return follow(question, page) if follow and question.query.keys() <= _FIRST.get(question.route, {"run"}) else ()


_FIRST: dict[str, set[str]] = {"compare": {"a.run", "b.run"}, "sweep": set()}
"""The parameters of a first request: follow-up requests lead no further."""


def _ops(question: Question, page: Any) -> Iterable[Question]:
    ids = [row.id for row in page.rows[:MOST_OPS]]
    return _of_subjects(question, "op", ids)


def _op_types(question: Question, page: Any) -> Iterable[Question]:
    return _of_subjects(question, "op_type", [row.op_type for row in page.rows[:MOST_OPS]])


def _kernels(question: Question, page: Any) -> Iterable[Question]:
    return _of_subjects(question, "kernel", [row.id for row in page.rows[:MOST_OPS]])


def _modules(question: Question, page: Any) -> Iterable[Question]:
    keys = [row.path or (f":{row.role}" if row.role else ".") for row in page.rows[:MOST_OPS]]
    return _of_subjects(question, "module", keys)


def _of_subjects(question: Question, kind: str, ids: Iterable[str]) -> Iterable[Question]:
    """What the side panel shows of each, and what belongs to it on other pages."""
    queries: list[Query] = [{**question.query, "kind": kind, "id": id} for id in ids]
    return [Question(route, query, question.runs) for route in ("work_detail", "related") for query in queries]


def _compared_ops(question: Question, page: Any) -> Iterable[Question]:
    return _about(question, "compare_op", "id", [op.id for op in page.ops[:MOST_OPS]])


def _devices(question: Question, page: Any) -> Iterable[Question]:
    return _about(question, "memory", "device", [device.key for device in page.devices])


_PLAN_PARTS = ("batches", "gpus", "checkpoints", "shards,stages,gpus_needed,deepest")
"""As the page's parts ask for them (`PlanParts.tsx`)."""


def _plan_parts(question: Question, page: Any) -> Iterable[Question]:
    """The tables around the recorded configuration."""
    return _about(question, "plan", "also", _PLAN_PARTS) if page.figures else ()


def _timeline(question: Question, page: Any) -> Iterable[Question]:
    """The drawing of the median iteration in full, and the longest events in detail."""
    one = Question("timeline", {**question.query, "iteration": str(page.iteration.index)}, question.runs)
    longest = [row.spot.id for rows in (page.longest_gaps, page.longest_gpu, page.longest_ops) for row in rows]
    chunks = [str(chunk) for chunk in range(min(len(page.chunks), MOST_CHUNKS))]
    return [*_about(one, "timeline_events", "chunk", chunks), *_about(one, "timeline_event", "id", longest)]


def _forecasts(question: Question, page: Any) -> Iterable[Question]:
    choices = page.mixed_precision.choices
    return _about(question, "forecast", "precision", [choice.precision for choice in choices if choice.forecast])


def _sweeps(question: Question, page: Any) -> Iterable[Question]:
    groups = [{"measure": "share", "kernel_group": option.key} for option in page.kernel_groups]
    drawn: list[Query] = [{}, *({"measure": name} for name in MEASURES if name != "share"), *groups]
    overs: list[Query] = [{}, *({"over": option.key} for option in page.overs)]
    for over in overs:
        for measure in drawn:
            if over or measure:
                yield Question("sweep", {**over, **measure})


def _about(question: Question, route: str, name: str, values: Iterable[str]) -> Iterable[Question]:
    return [Question(route, {**question.query, name: value}, question.runs) for value in values]


_FOLLOWING: dict[str, Callable[[Question, Any], Iterable[Question]]] = {
    "ops": _ops,
    "op_types": _op_types,
    "kernels": _kernels,
    "modules": _modules,
    "memory": _devices,
    "plan": _plan_parts,
    "timeline": _timeline,
    "advice": _forecasts,
    "compare": _compared_ops,
    "sweep": _sweeps,
}
