"""TensorBoard routes, and nothing else. GET only.

Made while TensorBoard starts, so it imports little: what answers the routes (`web.answers`) is imported with the first
request.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from tb_dlprof_plugin.store.tags import PLUGIN_NAME
from tb_dlprof_plugin.web.bundle import bundle_files, content_of
from tb_dlprof_plugin.web.routes import ROUTES, Route

if TYPE_CHECKING:
    from tb_dlprof_plugin.web.answers import Answers
    from tb_dlprof_plugin.web.listings import Listing, Listings

_log = logging.getLogger(__name__)
_HASHED_FOR_SECONDS = 86_400
_METHODS = ("GET", "HEAD")


class DlprofPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """The DLProf tab."""

    plugin_name = PLUGIN_NAME

    def __init__(self, context: base_plugin.TBContext) -> None:
        """Takes the data provider of TensorBoard's context; reads no data."""
        super().__init__(context)
        self._data_provider, self._logdir = context.data_provider, context.logdir or ""
        self._bundle = bundle_files()
        self._answers: Answers | None = None
        self._listings: Listings | None = None
        self._lock = threading.Lock()

    def is_active(self) -> bool:
        """False without a check: TensorBoard activates the tab itself when its data provider lists our data."""
        return False

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """The tab's name and its entry module."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="DLProf", disable_reload=False)

    def data_plugin_names(self) -> frozenset[str]:
        """The name under which event files carry our data."""
        return frozenset((PLUGIN_NAME,))

    def get_plugin_apps(self) -> dict[str, Callable[..., Any]]:
        """One route per page and per bundle file; there is no wildcard."""
        apps = {f"/{route.name}": self._page(route) for route in ROUTES.values()}
        apps.update({route: self._static(route) for route in {"/index.js", *self._bundle}})
        return apps

    def _page(self, route: Route) -> Callable[..., Any]:
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
                # The page shows it in place of this run; TensorBoard and the other runs are not affected.
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

    def _listing(self, request: wrappers.Request, runs: tuple[str, ...]) -> Listing:
        from tensorboard import plugin_util

        from tb_dlprof_plugin.web.listings import Listings

        with self._lock:
            if self._listings is None:
                self._listings = Listings(self._data_provider)
        context, experiment = plugin_util.context(request.environ), plugin_util.experiment_id(request.environ)
        return self._listings.of(context, experiment, runs)

    def _static(self, route: str) -> Callable[..., Any]:
        # Names of chunks carry a hash of their content; the entry's does not.
        expires = 0 if route == "/index.js" else _HASHED_FOR_SECONDS

        @wrappers.Request.application
        def serve(request: wrappers.Request) -> wrappers.Response:
            if request.method not in _METHODS:
                return http_util.Respond(request, "Only GET is answered.", "text/plain", code=405)  # type: ignore[no-any-return]
            content, kind = content_of(self._bundle, route)
            return http_util.Respond(request, content, kind, expires=expires)  # type: ignore[no-any-return]

        return serve  # type: ignore[no-any-return]
