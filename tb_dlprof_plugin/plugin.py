"""The tab in TensorBoard: hands its routes (`web.apps`) what TensorBoard's data provider has loaded."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tensorboard.plugins import base_plugin

from tb_dlprof_plugin.store.tags import PLUGIN_NAME
from tb_dlprof_plugin.web.apps import App, Apps

if TYPE_CHECKING:
    from tb_dlprof_plugin.web.listings import Listing, Listings


class DlprofPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """The DLProf tab."""

    plugin_name = PLUGIN_NAME

    def __init__(self, context: base_plugin.TBContext) -> None:
        """Takes the data provider of TensorBoard's context; reads no data."""
        super().__init__(context)
        self._data_provider = context.data_provider
        self._apps = Apps(context.logdir or "", self._listing)
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

    def get_plugin_apps(self) -> dict[str, App]:
        """One route per page and per bundle file."""
        return self._apps.by_path()

    def _listing(self, request: Any, runs: tuple[str, ...]) -> Listing:
        from tensorboard import plugin_util

        from tb_dlprof_plugin.web.listings import Listing, Listings
        from tb_dlprof_plugin.web.run_source import DataProviderSource, is_local

        context, experiment = plugin_util.context(request.environ), plugin_util.experiment_id(request.environ)
        source = DataProviderSource(self._data_provider, context, experiment)
        if not is_local(self._data_provider):
            return Listing(source)  # It may answer by who asks.
        with self._lock:
            if self._listings is None:
                self._listings = Listings()
        return self._listings.of(experiment, source, runs)
