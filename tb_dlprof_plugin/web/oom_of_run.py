"""The newest failed allocation that the hook explained in a run's directory, with what would have fitted by the run."""

from __future__ import annotations

from tb_dlprof_plugin.pages.out_of_memory import OomOfRun, oom_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.memory_snapshot.oom_file import files_in, read_oom
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.open_runs import OpenRuns
from tb_dlprof_plugin.web.trace_files import run_directory


def oom_of_run(runs: OpenRuns, view: ProfileView, ref: RunRef) -> OomOfRun:
    """The failure; none where the directory has no such file, or is not on this machine."""
    try:
        directory, _ = run_directory(runs.logdir, ref.run, "")
        files = files_in(directory)
        found = read_oom(files[0]) if files else None
    except (RequestError, TraceError, OSError):
        return OomOfRun(ref, None)
    return OomOfRun(ref, None if found is None else oom_page(found, view, str(directory)))
