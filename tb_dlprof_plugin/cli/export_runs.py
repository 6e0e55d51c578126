"""Finds the profiles for an exported file in logdirs, runs, event files or traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.cli.progress import Progress
from tb_dlprof_plugin.model.run_choice import ProfileChoice
from tb_dlprof_plugin.store.choice import NoSuchProfile
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.event_file import EventBlob
from tb_dlprof_plugin.store.logdir import EventFileStore
from tb_dlprof_plugin.web.export import ExportedRun
from tb_dlprof_plugin.web.export.runs import exported, exported_alone


def exported_run(name: str, files: Sequence[Path], choice: ProfileChoice) -> tuple[ExportedRun, str]:
    """The chosen profile of a run with those of its other ranks, and a note on the rest.

    ``files`` are its event files, or one trace.

    Raises:
        TraceError, ProfileError: a file cannot be read, or there is no such rank or cycle.
    """
    if "tfevents" not in files[0].name:
        return _of_trace(name, files[0]), ""
    store = EventFileStore({name: files})
    stored = store.of_run(name)
    if not stored:
        raise ProfileError(f"{files[0].parent} holds event files without a profile; record the run again")
    try:
        chosen = store.find(name, choice.session, choice.rank, choice.cycle, any_session=True)
    except NoSuchProfile:
        where = "" if choice.session is None else f" in session {choice.session!r}"
        raise ProfileError(f"{files[0].parent} has no profile of that rank and cycle{where}") from None
    return exported(stored, chosen, store.profile(chosen)), _left_out(stored, chosen)


def _of_trace(name: str, path: Path) -> ExportedRun:
    with Progress(path) as progress:
        return exported_alone(name, analyze_trace(path, progress=progress.update))


def _left_out(stored: Sequence[EventBlob], chosen: EventBlob) -> str:
    """The profiles of the run that the file does not show, in words; "" if there are none."""
    of_session = [one for one in stored if one.ref.session == chosen.ref.session]
    counts = (
        (len({one.ref.session for one in stored}) - 1, "session", "sessions"),
        (len({one.ref.rank for one in of_session}) - 1, "rank", "ranks"),
        (len({one.ref.cycle for one in of_session if one.ref.rank == chosen.ref.rank}) - 1, "cycle", "cycles"),
    )
    return ", ".join(f"{count} other {one if count == 1 else several}" for count, one, several in counts if count > 0)
