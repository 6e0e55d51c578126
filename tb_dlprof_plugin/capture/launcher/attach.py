"""Called by the injected ``sitecustomize`` as soon as torch has been imported."""

from __future__ import annotations

import atexit
import os
from pathlib import Path

from tb_dlprof_plugin.capture.launcher.protocol import Order
from tb_dlprof_plugin.capture.launcher.recorder import Recorder


def arm(folder: str) -> None:
    """Watch this process for what the order in ``folder`` asks for.

    Raises:
        Exception: whatever goes wrong; the caller reports it.
    """
    recorder = Recorder(Order.read(Path(folder)), Path(folder))
    recorder.begin()
    atexit.register(recorder.end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=recorder.forked)
