"""Called by the injected ``sitecustomize`` as soon as torch has been imported."""

from __future__ import annotations

import atexit
import os
from pathlib import Path

from tb_dlprof_plugin.capture.launcher.protocol import RunRequest


def attach(folder: str) -> None:
    """Install the recorder in this process, for the request in ``folder``.

    Raises:
        Exception: whatever goes wrong; the caller reports it.
    """
    request = RunRequest.read(Path(folder))
    if request.under_nsys:
        from tb_dlprof_plugin.capture.launcher.nsys_steps import NsysSteps

        NsysSteps(request, Path(folder)).begin()
        return
    from tb_dlprof_plugin.capture.launcher.recorder import Recorder

    if request.oom:
        from tb_dlprof_plugin.capture.out_of_memory import explain_oom

        explain_oom(request.run_directory)
    recorder = Recorder(request, Path(folder))
    recorder.begin()
    atexit.register(recorder.end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=recorder.forked)
