"""The WSGI app of each route and bundle file, the same in every server: TensorBoard, or the one of `web.server`.

Made while TensorBoard starts, so it imports little: what answers the routes (`web.answers`) is imported with the first
request.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from werkzeug import wrappers

from tb_dlprof_plugin.web.bundle import bundle_files, content_of
from tb_dlprof_plugin.web.routes import ROUTES, Route

if TYPE_CHECKING:
    from tb_dlprof_plugin.web.answers import Answers
    from tb_dlprof_plugin.web.listings import Listing

_log = logging.getLogger(__name__)
_HASHED_FOR_SECONDS = 86_400
_METHODS = ("GET", "HEAD")

App = Callable[..., Any]
"""A WSGI app."""
ListingOf = Callable[[wrappers.Request, tuple[str, ...]], "Listing"]
"""The profiles that a request may see, those of the named runs among them where there are any."""


class Apps:
    """The apps of one log directory, GET and HEAD only."""

    def __init__(self, logdir: str, listing: ListingOf) -> None:
        self._logdir, self._listing = logdir, listing
        self._bundle = bundle_files()
        self._answers: Answers | None = None
        self._lock = threading.Lock()

    def by_path(self) -> dict[str, App]:
        """One app per page and per bundle file; there is no wildcard."""
        apps = {f"/{route.name}": self._page(route) for route in ROUTES.values()}
        apps.update({route: self._static(route) for route in {"/index.js", *self._bundle}})
        return apps

    def _page(self, route: Route) -> App:
        @wrappers.Request.application
        def serve(request: wrappers.Request) -> wrappers.Response:
            from tb_dlprof_plugin.web.errors import RequestError
            from tb_dlprof_plugin.web.queries import read_query, runs_of
            from tb_dlprof_plugin.web.respond import (
                encode_page,
                respond,
                respond_answer,
                respond_error,
                respond_piece,
            )

            if request.method not in _METHODS:
                return respond_error(request, 405, "Only GET is answered.")
            try:
                query = read_query(route.load_query(), request.args)
                answers, listing = self._ready(), self._listing(request, runs_of(query) or ())
                if not route.reads_disk:
                    return respond_answer(request, answers.packed(route, query, listing))
                answer = answers.answer(route, query, listing)
                if isinstance(answer, bytes):
                    return respond_piece(request, answer)
                return respond(request, encode_page(answer, query.offset))
            except RequestError as error:
                return respond_error(request, error.status, str(error))
            except Exception as error:
                # The page shows it in place of this run; the server and the other runs are not affected.
                _log.exception("%s failed", request.path)
                run = request.args.get("run", "the run")
                return respond_error(request, 500, f"This page failed on {run!r} ({error}); please report it.")

        return serve  # type: ignore[no-any-return]

    def _ready(self) -> Answers:
        from tb_dlprof_plugin.web.answers import Answers

        with self._lock:
            if self._answers is None:
                self._answers = Answers(self._logdir)
            return self._answers

    def _static(self, route: str) -> App:
        # Names of chunks carry a hash of their content; the entry's does not.
        kept_s = 0 if route == "/index.js" else _HASHED_FOR_SECONDS

        @wrappers.Request.application
        def serve(request: wrappers.Request) -> wrappers.Response:
            from tb_dlprof_plugin.web.respond import response

            if request.method not in _METHODS:
                return response(request, b"Only GET is answered.", "text/plain", 405)
            content, kind = content_of(self._bundle, route)
            return response(request, content, kind, kept_s=kept_s)

        return serve  # type: ignore[no-any-return]
