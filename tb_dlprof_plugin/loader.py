"""The entry point that TensorBoard imports at start: it must be small and must not fail.

An exception while an entry point is imported ends ``tensorboard`` itself, one inside `Loader.load` is only logged. So
nothing of ours is imported before `load`.
"""

from __future__ import annotations

import argparse
import logging
from typing import Any

from tensorboard.plugins import base_plugin

_log = logging.getLogger(__name__)
_PLUGIN_NAME = "tb_dlprof"


class Loader(base_plugin.TBLoader):  # type: ignore[misc]
    """Makes the plugin, or nothing where it cannot be made."""

    def fix_flags(self, flags: argparse.Namespace) -> None:
        """Keeps all profiling cycles of a run: TensorBoard would keep ten. A user's own setting wins."""
        samples = getattr(flags, "samples_per_plugin", None)
        if isinstance(samples, dict):
            samples.setdefault(_PLUGIN_NAME, 0)

    def load(self, context: Any) -> base_plugin.TBPlugin | None:
        """The plugin; None, with a line in the log, where it cannot be loaded."""
        try:
            from tb_dlprof_plugin.plugin import DlprofPlugin

            return DlprofPlugin(context)
        except Exception as error:
            _log.warning("The DLProf tab is missing: tb_dlprof_plugin could not be loaded (%s).", error)
            return None
