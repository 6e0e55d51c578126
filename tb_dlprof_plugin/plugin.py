"""TensorBoard routes, and nothing else: parameters in, a view called, its page out. GET only."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from tensorboard import plugin_util
from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from tb_dlprof_plugin.measures import Frame, Selection
from tb_dlprof_plugin.storage.tags import PLUGIN_NAME
from tb_dlprof_plugin.views.advice import advice_page
from tb_dlprof_plugin.views.common import RunRef
from tb_dlprof_plugin.views.compare import CompareInput, compare_page
from tb_dlprof_plugin.views.kernels import kernels_page
from tb_dlprof_plugin.views.ops import op_detail, ops_page
from tb_dlprof_plugin.views.overview import overview
from tb_dlprof_plugin.views.tensor_cores import tensor_cores_page
from tb_dlprof_plugin.web.bundle import bundle_files, content_of
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.query import integer, required
from tb_dlprof_plugin.web.respond import encode_page, respond, respond_error
from tb_dlprof_plugin.web.store import ProfileStore

_log = logging.getLogger(__name__)
_Page = Callable[[Frame, RunRef, Selection], msgspec.Struct]
_PAGES: dict[str, _Page] = {
    "/overview": overview,
    "/ops": ops_page,
    "/kernels": kernels_page,
    "/tensor_cores": tensor_cores_page,
    "/advice": advice_page,
}
_HASHED_FOR_SECONDS = 86_400


class DlprofPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """The DLProf tab."""

    plugin_name = PLUGIN_NAME

    def __init__(self, context: base_plugin.TBContext) -> None:
        """Takes the data provider of TensorBoard's context; reads no data."""
        super().__init__(context)
        self._store = ProfileStore(context.data_provider, context.logdir or "")
        self._bundle = bundle_files()

    def is_active(self) -> bool:
        """False without looking: TensorBoard activates the tab itself when its data provider lists our data."""
        return False

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """The tab's name and its entry module."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="DLProf", disable_reload=False)

    def data_plugin_names(self) -> frozenset[str]:
        """The name under which event files carry our data."""
        return frozenset((PLUGIN_NAME,))

    def get_plugin_apps(self) -> dict[str, Callable[..., Any]]:
        """One route per page and per bundle file; there is no wildcard."""
        apps: dict[str, Callable[..., Any]] = {
            "/runs": self._route(self._runs),
            "/op": self._route(self._op),
            "/compare": self._route(self._compare),
        }
        apps.update({route: self._route(functools.partial(self._page, page)) for route, page in _PAGES.items()})
        for route in {"/index.js", *self._bundle}:
            apps[route] = self._static(route)
        return apps

    def _runs(self, request: wrappers.Request) -> msgspec.Struct:
        return self._store.index(*_where(request))

    def _page(self, page: _Page, request: wrappers.Request) -> msgspec.Struct:
        frame, ref, selection = self._profile(request, request.args)
        return page(frame, ref, selection)

    def _op(self, request: wrappers.Request) -> msgspec.Struct:
        op = required(request.args, "id")
        frame, ref, selection = self._profile(request, request.args)
        try:
            return op_detail(frame, ref, selection, op)
        except KeyError:
            raise RequestError(404, f"Run {ref.run!r} has no op {op!r} in the selected iterations.") from None

    def _compare(self, request: wrappers.Request) -> msgspec.Struct:
        a, b = (
            CompareInput(*self._profile(request, {k[2:]: v for k, v in request.args.items() if k.startswith(side)}))
            for side in ("a.", "b.")
        )
        return compare_page(a, b)

    def _profile(self, request: wrappers.Request, args: Mapping[str, str]) -> tuple[Frame, RunRef, Selection]:
        frame, ref = self._store.find(
            *_where(request), required(args, "run"), args.get("session"), integer(args, "rank"), integer(args, "cycle")
        )
        try:
            return frame, ref, frame.selection(integer(args, "first"), integer(args, "last"))
        except ValueError as error:
            raise RequestError(400, f"Run {ref.run!r}: {error}.") from None

    def _route(self, answer: Callable[[wrappers.Request], msgspec.Struct]) -> Callable[..., Any]:
        @wrappers.Request.application
        def serve(request: wrappers.Request) -> wrappers.Response:
            if request.method not in ("GET", "HEAD"):
                return respond_error(request, 405, "Only GET is answered.")
            try:
                return respond(request, encode_page(answer(request)))
            except RequestError as error:
                return respond_error(request, error.status, str(error))
            except Exception as error:
                # The page shows it in place of this run; TensorBoard and the other runs go on.
                _log.exception("%s failed", request.path)
                return respond_error(
                    request,
                    500,
                    f"This page failed on {request.args.get('run', 'the run')!r} ({error}); please report it.",
                )

        return serve  # type: ignore[no-any-return]

    def _static(self, route: str) -> Callable[..., Any]:
        # Names of chunks carry a hash of their content; the entry's does not.
        expires = 0 if route == "/index.js" else _HASHED_FOR_SECONDS

        @wrappers.Request.application
        def serve(request: wrappers.Request) -> wrappers.Response:
            content, kind = content_of(self._bundle, route)
            return http_util.Respond(request, content, kind, expires=expires)  # type: ignore[no-any-return]

        return serve  # type: ignore[no-any-return]


def _where(request: wrappers.Request) -> tuple[Any, str]:
    return plugin_util.context(request.environ), plugin_util.experiment_id(request.environ)
