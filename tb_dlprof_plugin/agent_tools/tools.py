"""The tools that read: each is a page's answer in the envelope of `reply`. A run is a name below the log directory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.advice.finding import FindingItem
from tb_dlprof_plugin.agent_tools.reply import (
    DEFAULT_CHARACTERS,
    LEVEL,
    SOURCES,
    CannotSay,
    Evidence,
    Figure,
    Reply,
    Source,
    ToolFailure,
    counted,
    estimated,
    fitted,
)
from tb_dlprof_plugin.api.page_result import Page
from tb_dlprof_plugin.model.near_names import did_you_mean, near_names
from tb_dlprof_plugin.pages.advice import AdvicePage
from tb_dlprof_plugin.pages.common import StepFigures
from tb_dlprof_plugin.pages.compare import ComparePage
from tb_dlprof_plugin.pages.compare_verdict import regression
from tb_dlprof_plugin.pages.forecast import ForecastPage
from tb_dlprof_plugin.pages.out_of_memory import OomOfRun
from tb_dlprof_plugin.pages.overview import Overview
from tb_dlprof_plugin.pages.plan import PlanPage
from tb_dlprof_plugin.pages.runs import ManyRunsPage
from tb_dlprof_plugin.pages.search import SearchHit, SearchPage
from tb_dlprof_plugin.pages.shared_definitions import DEFINITIONS
from tb_dlprof_plugin.pages.work_detail import WorkDetail
from tb_dlprof_plugin.web.answers import Answers
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.event_file_runs import EventFileRuns
from tb_dlprof_plugin.web.listings import Listings
from tb_dlprof_plugin.web.queries import read_query, runs_of
from tb_dlprof_plugin.web.routes import PAGES, ROUTES

_MS = 1e6
_LONGEST_WAIT_S = 20.0
_PRECISIONS = ("tf32", "bf16", "fp16")
_Answer = TypeVar("_Answer")


class Tools:
    """The tools over one log directory. Safe to call from several threads."""

    def __init__(self, logdir: Path) -> None:
        self._runs, self._listings, self._answers = EventFileRuns(logdir), Listings(), Answers(str(logdir))

    def list_runs(self, filter: str = "", limit: int = 20, offset: int = 0) -> Reply:
        """Runs with model, GPU, batch size and the step with its interval.

        Args:
            filter: words of a run's name, model, precision or GPU.
            limit: the most rows.
            offset: place of the first row.
        """
        page = self._all_runs()
        words = filter.lower().split()
        found = [
            row
            for row in page.rows
            if all(word in f"{row.ref.run} {row.model} {row.precision} {row.gpu}".lower() for word in words)
        ]
        rows = [
            {
                "run": row.ref.run,
                "model": row.model,
                "precision": row.precision,
                "gpu": row.gpu,
                "batch_size": row.batch_size,
                "step_ms": row.step_ns / _MS,
                "low_ms": row.step_low_ns / _MS,
                "high_ms": row.step_high_ns / _MS,
                "source": SOURCES.get(row.step_source, "recorded"),
                "first_finding": row.advice.problem if row.advice else "",
            }
            for row in found[offset : offset + limit]
        ]
        unread = [CannotSay(one.run, one.why) for one in page.failed]
        if page.done < page.total:
            unread.append(CannotSay("the other runs", f"{page.total - page.done} are still being read", "Ask again."))
        return fitted(
            page.headline if not words else f"{len(found)} of {page.done} runs have these words.",
            figures=[],
            cannot_say=unread,
            evidence=[Evidence("runs")],
            rows=rows,
            rows_are="Steps without the profiler in ms with their 95 % interval; source says how the step is known.",
            total=len(found),
            offset=offset,
        )

    def summary(self, run: str) -> Reply:
        """The step, where its time goes, precision, and how far the recording can be trusted.

        Args:
            run: its name, as `list_runs` has it.
        """
        page = self._page("overview", Overview, run=run)
        facts = page.summary
        unknown: list[CannotSay] = []
        figures = [_step(page.step)]

        def add(name: str, value: float | None, unit: str, why: str, what_would_help: str = "") -> None:
            figures.append(counted(name, value, unit))
            if value is None:
                unknown.append(CannotSay(name, why, what_would_help))

        add("recorded step", facts.recorded_iteration_ns / _MS, "ms", "no step was marked")
        if page.has_gpu:
            add("GPU busy", facts.gpu_utilization_percent, "%", "the GPU's work was not recorded")
            possible = facts.tensor_core_kernel_utilization_possible
            if possible is not None:
                low, high = possible.low_percent, possible.high_percent
                figures.append(Figure("Tensor Core utilization", None, low, high, "%", 1.0, "recorded"))
                why = "of some kernels it is not known whether they use them"
                unknown.append(CannotSay("Tensor Core utilization", why))
            else:
                why = "no kernel could use Tensor Cores, or of too many it is not known"
                add("Tensor Core utilization", facts.tensor_core_kernel_utilization_percent, "%", why)
        record = "Record with profile_memory=True."
        add("peak memory", facts.peak_memory_bytes, "bytes", "memory was not recorded", record)
        if facts.samples_per_second is not None and page.step.low_ms and page.step.ms:
            rate, step = facts.samples_per_second, page.step
            low, high = rate * step.ms / step.high_ms, rate * step.ms / step.low_ms
            figures.append(Figure("samples per second", rate, low, high, "1/s", LEVEL, _source(step)))
        reasons = " ".join(reason.text for reason in page.trust.reasons)
        rows = [
            {"part": part.label, "ms": (part.value_ns or 0) / _MS, "percent": part.percent}
            for part in page.account
            if part.value_ns
        ]
        return fitted(
            f"{page.title}. {page.headline} Recording: {page.trust.verdict}. {reasons}",
            figures=figures,
            cannot_say=unknown + [CannotSay(note.code, note.text) for note in page.notes],
            evidence=[Evidence("overview")],
            rows=rows,
            rows_are="Exclusive parts of the step without the profiler, in ms a step; they add up to it.",
        )

    def advise(self, run: str, limit: int = 5, min_saving_percent: float = 0.0, offset: int = 0) -> Reply:
        """What to change, by falling saving: what was seen, the change with lines of code, how to confirm it.

        Args:
            run: its name.
            limit: the most findings.
            min_saving_percent: of the step; 0 also keeps findings whose saving is not known.
            offset: place of the first finding.
        """
        page = self._page("advice", AdvicePage, run=run)
        found = [
            one
            for one in page.findings
            if not min_saving_percent or (one.saving is not None and one.saving.percent >= min_saving_percent)
        ]
        shown = found[offset : offset + limit]
        figures, unknown = _savings(shown)
        if page.combined is not None and not offset:
            whole = page.combined
            name = "saving of all findings together"
            figures.insert(0, _saving(name, whole.expected_ns, whole.low_ns, whole.high_ns))
        rows = [
            {
                "rule": one.rule,
                "title": one.title,
                "severity": one.severity,
                "confidence": one.confidence,
                "seen": one.seen,
                "change": one.change,
                "code": one.code.splitlines(),
                "confirm": one.confirm,
                "alternatives": one.alternatives,
            }
            for one in shown
        ]
        return fitted(
            page.headline,
            figures=[_step(page.step), *figures],
            cannot_say=unknown,
            evidence=[Evidence("advice", one.id) for one in shown],
            rows=rows,
            rows_are="Findings; each saving is the figure of its rule. Of one text in `alternatives` only one is made.",
            total=len(found),
            offset=offset,
        )

    def table(
        self,
        run: str,
        page: str,
        table: str = "",
        columns: Sequence[str] = (),
        sort: str = "",
        limit: int = 20,
        offset: int = 0,
        characters: int = DEFAULT_CHARACTERS,
    ) -> Reply:
        """Rows of a table of a page; a wrong name is answered with the right ones.

        Args:
            run: its name.
            page: such as ops, kernels, modules, launches, tensor_cores, memory, roofline.
            table: of the page; its main one by default.
            columns: all by default.
            sort: a column, with "-" in front for falling values; as the page has them by default.
            limit: the most rows.
            offset: place of the first row.
            characters: of the answer; 50,000 are the most.
        """
        name = _known("page", page, PAGES)
        shown = Page(self._page(name, object, run=run))
        wanted = _known("table", table or shown.tables[0], shown.tables)
        report = shown.table(wanted)
        chosen = [_known("column", column, report.columns) for column in columns] or list(report.columns)
        rows = report.to_dicts()
        if sort:
            by = _known("column", sort.removeprefix("-"), report.columns)
            rows.sort(key=lambda row: _order(row[by]), reverse=sort.startswith("-"))
            # What is not known stays last in both directions.
            rows.sort(key=lambda row: row[by] is None)
        said = [CannotSay("", note) for note in report.notes]
        return fitted(
            shown.headline,
            figures=[],
            cannot_say=said,
            evidence=[Evidence(name, wanted)],
            rows=[{column: row[column] for column in chosen} for row in rows[offset : offset + limit]],
            rows_are="Sums over the recorded iterations; columns end in their unit; null is unknown. "
            f"Tables of the page: {', '.join(shown.tables)}.",
            total=len(rows),
            offset=offset,
            characters=characters,
        )

    def explain(self, run: str, subject: str) -> Reply:
        """One op, kernel, module, rule or figure: what it is and what was recorded of it.

        Args:
            run: its name.
            subject: words of its name, or a rule's name.
        """
        if meaning := DEFINITIONS.get(subject):
            return fitted(meaning, figures=[], cannot_say=[], evidence=[])
        if subject in {one.rule.id for one in all_rules()}:
            return self._rule(run, subject)
        hits = [hit for hit in self._page("search", SearchPage, run=run, text=subject).hits if hit.kind != "report"]
        if not hits:
            raise ToolFailure(f"Run {run!r} has no op, kernel, module or rule with {subject!r} in its name.")
        best = min(hits, key=lambda hit: (hit.label != subject, hit.fit, -(hit.value_ns or 0)))
        if best.kind == "rule":
            return self._rule(run, best.id)
        others = [Evidence(_PAGE_OF[hit.kind], hit.label) for hit in hits if hit is not best][:5]
        return self._detail(run, best, others)

    def compare(self, base: str, candidate: str, max_slower_percent: float = 5.0) -> Reply:
        """Whether a run is slower than its base by more than a limit, and what changed the step.

        Args:
            base: name of a run.
            candidate: name of the run that is compared with it.
            max_slower_percent: the limit.
        """
        query = {"a.run": base, "b.run": candidate}
        page = self._page("compare", ComparePage, **query)
        verdict = regression(page, max_slower_percent)
        figures = [_step(page.base_step, "base's step"), _step(page.candidate_step, "candidate's step")]
        unknown = [CannotSay("", text) for text in page.warnings]
        sources: set[Source] = {_source(page.base_step), _source(page.candidate_step)}
        source: Source = sources.pop() if len(sources) == 1 else "simulated"
        for name, value, low, high, unit in (
            ("speedup", page.speedup, page.speedup_low, page.speedup_high, "times"),
            (f"more time a {verdict.per}", verdict.percent, verdict.low_percent, verdict.high_percent, "%"),
        ):
            figures.append(estimated(name, value, low, high, unit, source))
            if figures[-1].value is None:
                unknown.append(CannotSay(name, verdict.why or "a step has no interval", "Record more steps."))
        rows: list[dict[str, Any]] = [
            {
                "part": bucket.label,
                "base_ms": bucket.base_ms,
                "candidate_ms": bucket.candidate_ms,
                "difference_ms": bucket.difference_ms,
                "low_ms": bucket.low_ms,
                "high_ms": bucket.high_ms,
            }
            for bucket in page.buckets
            if bucket.base_ns or bucket.candidate_ns
        ]
        ways = "" if page.batches is None else "The batch sizes differ: times of a sample are compared. "
        return fitted(
            f"{verdict.verdict}: {verdict.sentence} {ways}{page.headline} {' '.join(page.explanation)}",
            figures=figures,
            cannot_say=unknown,
            evidence=[Evidence("compare"), *(Evidence("compare", op.name) for op in page.ops[:5])],
            rows=rows,
            rows_are="Exclusive parts of both steps in ms, with the 95 % interval of each difference.",
        )

    def what_if(self, run: str, precision: str = "", batch_size: int = 0, gpu: str = "", checkpoint: str = "") -> Reply:
        """The forecast step and memory of another configuration. What is left out stays as recorded.

        Args:
            run: its name.
            precision: tf32, bf16 or fp16.
            batch_size: samples of a step.
            gpu: as CUDA names it.
            checkpoint: "auto", or modules under activation checkpointing with commas between.
        """
        if precision and precision not in _PRECISIONS:
            raise ToolFailure(f"There is no precision {precision!r} here; there is {', '.join(_PRECISIONS)}.")
        asked = {"batch_size": str(batch_size or ""), "gpu": gpu, "checkpoint": checkpoint}
        plan = self._page("plan", PlanPage, run=run, **asked, precision="" if precision == "tf32" else precision)
        figures: list[Figure] = []
        unknown: list[CannotSay] = []
        said = [plan.headline]
        if precision:
            figures, unknown, words = self._forecast(run, precision, batch_size, gpu, bool(checkpoint))
            said.insert(0, words)
        else:
            figures.append(estimated("step", plan.step_ms, plan.step_low_ms, plan.step_high_ms, "ms", "planned"))
        figures.append(
            estimated("peak memory reserved", plan.peak_reserved_mb, plan.low_mb, plan.high_mb, "MB", "planned")
        )
        named = {"step": "step_ms", "peak memory reserved": "peak_reserved_mb"}
        for figure in figures:
            if figure.value is None and not any(one.what == figure.name for one in unknown):
                why = plan.unknown.get(named.get(figure.name, ""), "it cannot be planned")
                unknown.append(CannotSay(figure.name, why))
        return fitted(
            " ".join(said),
            figures=figures,
            cannot_say=unknown + [CannotSay("", text) for text in plan.assumptions],
            evidence=[Evidence("plan"), *([Evidence("forecast", precision)] if precision else [])],
        )

    def out_of_memory(self, run: str) -> Reply:
        """Why a training ran out of GPU memory, who held what, and the single changes that would have fitted.

        Args:
            run: its name; its directory has what `tb-dlprof run --oom` or profile(..., oom=True) left.
        """
        page = self._page("out_of_memory", OomOfRun, run=run).failure
        if page is None:
            raise ToolFailure(f"Run {run!r} has no failed allocation; record with tb-dlprof run --oom.")
        held = "; ".join(f"{row.kind} {row.module} {row.percent:.0f} %".replace("  ", " ") for row in page.rows[:8])
        unknown = [CannotSay("what would have fitted", page.cannot_say)] if page.cannot_say else []
        return fitted(
            f"{page.headline} In use: {held}.",
            figures=[
                counted("requested", page.requested_bytes, "bytes"),
                counted("limit", page.limit_bytes, "bytes"),
                counted("in use", page.allocated_bytes, "bytes"),
                counted("unexplained", page.unexplained_percent, "%"),
            ],
            cannot_say=unknown + [CannotSay("", note) for note in page.notes],
            evidence=[Evidence("memory")],
            rows=[
                {
                    "change": row.change,
                    "needs_at_most_bytes": row.limit_bytes,
                    "ms_per_sample": row.ms_per_sample,
                    "longer_percent": row.slower_percent,
                    "command": row.command,
                }
                for row in page.changes
            ],
            rows_are="Single changes that fit under the limit even with the upper end of their forecast.",
        )

    def _forecast(
        self, run: str, precision: str, batch_size: int, gpu: str, checkpointed: bool
    ) -> tuple[list[Figure], list[CannotSay], str]:
        """Step and speedup in another precision, what is not known of them, and a sentence."""
        units = {"step": "ms", "speedup": "times"}
        nothing = [estimated(name, None, None, None, unit, "forecast") for name, unit in units.items()]

        def refused(why: str) -> tuple[list[Figure], list[CannotSay], str]:
            return nothing, [CannotSay(figure.name, why) for figure in nothing], why

        if checkpointed:
            return refused("The step in another precision is not forecast together with checkpoints.")
        asked = {"precision": precision, "batch_size": str(batch_size or ""), "gpu": gpu}
        try:
            page = self._page("forecast", ForecastPage, run=run, **asked)
        except ToolFailure as error:
            return refused(str(error))
        step = estimated("step", page.predicted_step_ms, page.low_ms, page.high_ms, "ms", "forecast")
        speedup = estimated("speedup", page.speedup, page.speedup_low, page.speedup_high, "times", "forecast")
        return [step, speedup], [], page.headline

    def _rule(self, run: str, name: str) -> Reply:
        page = self._page("advice", AdvicePage, run=run)
        line = next(line for line in page.rules if line.rule == name)
        found = [one for one in page.findings if one.rule == name]
        figures, unknown = _savings(found)
        why = [] if found else [line.why]
        words = [f"{line.title}.", line.looks_for, *why, *(f"{one.seen} {one.change}" for one in found)]
        evidence = [Evidence("advice", one.id) for one in found] or [Evidence("advice")]
        return fitted(" ".join(filter(None, words)), figures=figures, cannot_say=unknown, evidence=evidence)

    def _detail(self, run: str, hit: SearchHit, others: list[Evidence]) -> Reply:
        page = self._page("work_detail", WorkDetail, run=run, kind=hit.kind, id=hit.id)
        steps = max(page.range.last - page.range.first + 1, 1)
        value = counted("time a step", None if hit.value_ns is None else hit.value_ns / steps / _MS, "ms")
        unknown = [] if hit.value_ns is not None else [CannotSay("time a step", "it has no time of its own")]
        said = [f"{hit.kind.capitalize()} {page.name}: {hit.detail}."]
        if page.tensor_cores is not None:
            uses = page.tensor_cores
            said.append(f"Tensor Cores: eligible {uses.eligible}, in use {uses.using}. {uses.reason or ''}")
        rows = [
            {"kernel": kernel.name, "ms_a_step": kernel.total_ns / steps / _MS, "calls_a_step": kernel.calls / steps}
            for kernel in page.kernels
        ]
        return fitted(
            " ".join(said).strip(),
            figures=[value],
            cannot_say=unknown,
            evidence=[Evidence(_PAGE_OF[hit.kind], page.name), *others],
            rows=rows,
            rows_are="Its kernels, as recorded. `evidence` also names what else has these words.",
        )

    def _all_runs(self) -> ManyRunsPage:
        """The runs; those of a large log directory are read over several answers."""
        until = time.monotonic() + _LONGEST_WAIT_S
        while True:
            page = self._page("many_runs", ManyRunsPage)
            if page.done >= page.total or time.monotonic() > until:
                return page

    def _page(self, name: str, _: type[_Answer], **query: str) -> _Answer:
        """The answer of a route.

        Raises:
            ToolFailure: what is asked for is not there.
        """
        route = ROUTES[name]
        try:
            asked = read_query(route.load_query(), query)
            runs = runs_of(asked) or ()
            listing = self._listings.of("", self._runs, runs)
            for run in runs:
                if not listing.holds((run,)):
                    near = did_you_mean(near_names(run, {blob.ref.run for blob in listing.blobs()}))
                    raise ToolFailure(f"There is no run {run!r}; {near or 'list_runs has the names'}.")
            return cast(_Answer, self._answers.answer(route, asked, listing))
        except RequestError as error:
            raise ToolFailure(str(error)) from None


_PAGE_OF = {"op": "ops", "kernel": "kernels", "module": "modules", "rule": "advice"}


def _source(step: StepFigures) -> Source:
    return SOURCES.get(step.source, "recorded")


def _step(step: StepFigures, name: str = "step") -> Figure:
    return Figure(name, step.ms, step.low_ms, step.high_ms, "ms", LEVEL, _source(step))


def _saving(name: str, expected_ns: float, low_ns: float, high_ns: float) -> Figure:
    return Figure(name, expected_ns / _MS, low_ns / _MS, high_ns / _MS, "ms a step", LEVEL, "forecast")


def _savings(findings: Iterable[FindingItem]) -> tuple[list[Figure], list[CannotSay]]:
    figures, unknown = [], []
    for one in findings:
        name = f"saving of {one.rule}"
        if one.saving is None:
            figures.append(estimated(name, None, None, None, "ms a step", "forecast"))
            unknown.append(CannotSay(name, one.saving_unknown_because, one.confirm))
        else:
            figures.append(_saving(name, one.saving.expected_ns, one.saving.low_ns, one.saving.high_ns))
    return figures, unknown


def _order(cell: Any) -> Any:
    return (0, cell) if isinstance(cell, int | float) else (1, str(cell))


def _known(kind: str, name: str, names: Iterable[str]) -> str:
    """The name.

    Raises:
        ToolFailure: there is none of this name; the message names all.
    """
    known = list(names)
    if name in known:
        return name
    near = did_you_mean(near_names(name, known))
    raise ToolFailure(f"There is no {kind} {name!r}{f'; {near}' if near else '.'} There is {', '.join(known)}.")


TOOLS: tuple[Callable[..., Reply], ...] = (
    Tools.list_runs,
    Tools.summary,
    Tools.advise,
    Tools.table,
    Tools.explain,
    Tools.compare,
    Tools.what_if,
    Tools.out_of_memory,
)
"""All tools but `measure`: they only read."""
