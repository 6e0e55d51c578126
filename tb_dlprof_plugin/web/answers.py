"""A route's query in, its answer out: the table of routes applied to stored profiles."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.web.open_runs import Kept, OpenRuns
from tb_dlprof_plugin.web.queries import AnyQuery
from tb_dlprof_plugin.web.routes import Route
from tb_dlprof_plugin.web.run_source import RunSource


class Answers:
    """Answers of all routes. Views and figures are kept between them. Safe to call from several threads."""

    def __init__(self, logdir: str) -> None:
        self._logdir = logdir
        self._kept = Kept()

    def answer(self, route: Route, query: AnyQuery, source: RunSource) -> msgspec.Struct | bytes:
        """A page, or a piece of a file as it is.

        Raises:
            RequestError: what the query asks for is not there or damaged.
        """
        runs = OpenRuns(source, self._logdir, self._kept)
        if route.handler:
            answer: msgspec.Struct | bytes = route.load_handler()(runs, query)
        else:
            answer = route.load_page()(*runs.profile(query))  # type: ignore[arg-type]
        return answer
