"""Records a script as ``tb-dlprof run`` does, with remedies or none, in a process whose outputs go nowhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tb_dlprof_plugin.trial.process_tree import end
from tb_dlprof_plugin.trial.protocol import TrialRequest
from tb_dlprof_plugin.trial.variant import Laboratory, VariantError, why_ended

_POLL_S = 0.1


def record(
    laboratory: Laboratory,
    remedies: Sequence[str],
    environment: Mapping[str, str],
    write_request: Callable[[Path], Mapping[str, str]],
    is_recorded: Callable[[Path], bool],
    finish: Callable[[Path], None],
    timeout_s: float,
) -> None:
    """Start the script, wait until the recording is complete, and end the script.

    Args:
        laboratory: where it runs.
        remedies, environment: applied from outside, as in a `Variant`.
        write_request: writes what is to be recorded into a folder, and returns the variables that say so.
        is_recorded: whether all processes, whose statuses are in the folder, have recorded.
        finish: waits for what is left to do, before the folder is removed.
        timeout_s: the longest wait.

    Raises:
        VariantError: it cannot be started, or recorded nothing in that time.
    """
    folder = laboratory.new_folder()
    request = TrialRequest(tuple(remedies), "")
    process = laboratory.start(folder, request, {**environment, **write_request(folder)})
    until = time.monotonic() + timeout_s
    try:
        while process.poll() is None and not is_recorded(folder):
            if time.monotonic() > until:
                raise VariantError(f"nothing was recorded within {timeout_s:.0f} s")
            time.sleep(_POLL_S)
        if process.returncode not in (None, 0):
            raise VariantError(why_ended(laboratory, folder, process.returncode))
        finish(folder)
    finally:
        end(process)
