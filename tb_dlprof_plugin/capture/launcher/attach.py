"""Called by the injected ``sitecustomize`` as soon as torch has been imported."""

from __future__ import annotations

import atexit
import os
from pathlib import Path

from tb_dlprof_plugin.capture.launcher.protocol import RunRequest
from tb_dlprof_plugin.capture.launcher.recorder import Recorder


def attach(folder: str) -> None:
    """Install the recorder in this process, for the request in ``folder``.

    Raises:
        Exception: whatever goes wrong; the caller reports it.
    """
    recorder = Recorder(RunRequest.read(Path(folder)), Path(folder))
    recorder.begin()
    atexit.register(recorder.end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=recorder.forked)
