"""A route's query in, its answer out: the table of routes applied to stored profiles."""

from __future__ import annotations

import dataclasses
import inspect
import time

import msgspec

from tb_dlprof_plugin.model.request import arguments_of
from tb_dlprof_plugin.pages.sweep import SweepError
from tb_dlprof_plugin.pages.timeline.iteration import IterationError
from tb_dlprof_plugin.planning import ForecastError
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.kept_answers import KeptAnswers
from tb_dlprof_plugin.web.listings import Listing
from tb_dlprof_plugin.web.open_runs import KeptBetweenRequests, OpenRuns
from tb_dlprof_plugin.web.queries import AnyQuery, runs_of
from tb_dlprof_plugin.web.respond import Answer
from tb_dlprof_plugin.web.routes import Route
from tb_dlprof_plugin.web.run_source import RunSource


class Answers:
    """Answers of all routes. Views and figures are kept between them. Safe to call from several threads."""

    def __init__(self, logdir: str) -> None:
        self._logdir = logdir
        self._kept = KeptBetweenRequests()
        self._answers = KeptAnswers()

    def answer(self, route: Route, query: AnyQuery, source: RunSource) -> msgspec.Struct | bytes:
        """A page, or a piece of a file as it is.

        Raises:
            RequestError: what the query asks for is not there or damaged.
        """
        page = route.load_page()
        opened = OpenRuns(source, self._logdir, self._kept).given(inspect.signature(page).parameters, query)
        try:
            answer: msgspec.Struct | bytes = page(**opened, **arguments_of(page, query))
        except KeyError as error:
            if not route.lacks:
                raise
            raise RequestError(404, _filled(route.lacks, query, error)) from None
        except IterationError as error:
            raise RequestError(400, f"Run {getattr(query, 'run', '')!r}: {error}.") from None
        except ForecastError as error:
            raise RequestError(404, f"Run {getattr(query, 'run', '')!r}: {error}") from None
        except SweepError as error:
            raise RequestError(400, f"The sweep cannot be drawn: {error}.") from None
        return answer

    def packed(self, route: Route, query: AnyQuery, listing: Listing) -> Answer:
        """The answer as it is sent: `answer` is asked once for all who ask the same of the same profiles.

        Raises:
            RequestError: as `answer` does.
        """

        def make() -> msgspec.Struct:
            page = self.answer(route, query, listing)
            assert isinstance(page, msgspec.Struct)
            return page

        runs = runs_of(query)
        period = int(time.monotonic() // route.kept_s) if route.kept_s else 0
        # The list of runs says which ones could not be read.
        content = (listing.content(runs), None if runs is not None else self._kept.failures, period)
        question = (route.name, str(dataclasses.replace(query, offset=0)))
        return self._answers.get(question, content, query.offset, make, of_table=runs is None)


def _filled(sentence: str, query: AnyQuery, error: KeyError) -> str:
    named = {item.name: getattr(query, item.name) for item in dataclasses.fields(query)}
    return sentence.format(*error.args, **named | {"kind": str(named.get("kind")).replace("_", " ")})
