"""Collects the responses of the routes about some runs, packed in blocks that the page unpacks on demand."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tb_dlprof_plugin.web.answers import Answers
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.export.prefetch import (
    MOST_COMPARED,
    Query,
    Question,
    about_all,
    about_pair,
    about_run,
    following,
)
from tb_dlprof_plugin.web.export.runs import ExportedRun, ExportedRuns
from tb_dlprof_plugin.web.queries import read_query
from tb_dlprof_plugin.web.respond import encode_page
from tb_dlprof_plugin.web.routes import ROUTES


@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """The answers of one route about the same runs; ``data`` is gzipped JSON: ``[{"query": ..., "answer": ...}]``.

    An answer that the server would refuse is ``{"query": ..., "error": one sentence, "status": its HTTP status}``.
    """

    route: str
    runs: tuple[str, ...]
    answers: int
    data: bytes


@dataclass(frozen=True, slots=True)
class AnsweredRuns:
    """All responses in a file, and a default title."""

    blocks: list[AnswerBlock]
    title: str


def answer_all(runs: Sequence[ExportedRun], progress: Callable[[float], None] = lambda fraction: None) -> AnsweredRuns:
    """Sends every request that the page can send about these runs with all their iterations.

    ``progress`` is called with the fraction done (0 to 1).
    """
    asker = _Asker(runs)
    names = [run.name for run in runs]
    first = [*about_all(names), *itertools.chain.from_iterable(map(about_run, names))]
    asker.ask_all(first, lambda done: progress(done * _FIRST_PAGES))
    pairs = _pairs(names, asker.page("many_runs"))
    asker.ask_all(list(itertools.chain.from_iterable(about_pair(*pair) for pair in pairs)), lambda done: None)
    asker.ask_all(
        [another for question, page in asker.pages for another in following(question, page)],
        lambda done: progress(_FIRST_PAGES + done * (1 - _FIRST_PAGES)),
    )
    return AnsweredRuns(asker.blocks(), _title(names, asker))


_FIRST_PAGES = 0.3
"""Of the time: the pages themselves, before the ops of which they are the list."""


def _title(names: Sequence[str], asker: _Asker) -> str:
    if len(names) == 1:
        return str(asker.page("overview").title)
    return " and ".join(names) if len(names) == 2 else f"{names[0]} and {len(names) - 1} more runs"


def _pairs(names: Sequence[str], many_runs: Any) -> list[tuple[str, str]]:
    if len(names) <= MOST_COMPARED:
        return list(itertools.permutations(names, 2))
    return [(row.base, row.ref.run) for row in many_runs.rows if row.base and row.base != row.ref.run]


class _Asker:
    """Calls the routes and collects their responses as JSON."""

    def __init__(self, runs: Sequence[ExportedRun]) -> None:
        self._answers, self._source = Answers(""), ExportedRuns(runs)
        self._runs = {run.name: run for run in runs}
        self._packed: dict[tuple[str, tuple[str, ...]], list[bytes]] = {}
        self.pages: list[tuple[Question, Any]] = []

    def ask_all(self, questions: Sequence[Question], progress: Callable[[float], None]) -> None:
        for number, question in enumerate(questions):
            progress(number / len(questions))
            answer = self._ask(question)
            query = msgspec.json.encode(question.query)
            self._packed.setdefault((question.route, question.runs), []).append(b'{"query":%b,%b}' % (query, answer))

    def page(self, route: str) -> Any:
        """The response to the first request of a route."""
        return next(page for question, page in self.pages if question.route == route)

    def blocks(self) -> list[AnswerBlock]:
        return [
            AnswerBlock(route, runs, len(answers), gzip.compress(b"[%b]" % b",".join(answers), 9, mtime=0))
            for (route, runs), answers in self._packed.items()
        ]

    def _shown(self, query: Query) -> Query:
        """The query about the session, rank and cycle that the file shows of each run, whatever others it has."""
        whole = dict(query)
        for side in ("", "a.", "b."):
            if (run := self._runs.get(query.get(f"{side}run", ""))) is not None:
                parts = {"session": run.session, "rank": run.rank, "cycle": run.cycle}
                whole |= {f"{side}{part}": str(value) for part, value in parts.items()}
        return whole

    def _ask(self, question: Question) -> bytes:
        route = ROUTES[question.route]
        try:
            query = read_query(route.load_query(), self._shown(question.query))
            page: Any = self._answers.answer(route, query, self._source)
            while hasattr(page, "done") and page.done < page.total:
                page = self._answers.answer(route, query, self._source)
        except RequestError as error:
            return b'"error":%b,"status":%d' % (msgspec.json.encode(str(error)), error.status)
        self.pages.append((question, page))
        return b'"answer":%b' % encode_page(page)
