"""Returns every run below logdirs, runs, event files or traces, with its figures and findings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.progress import Progress
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.natural_order import natural_order
from tb_dlprof_plugin.model.near_names import did_you_mean, near_names
from tb_dlprof_plugin.pages.kept_runs import computed_run, kept_runs
from tb_dlprof_plugin.pages.recorded_run import FailedRun, RecordedRun, recorded_run
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.store.choice import NoSuchProfile
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.event_file import event_files
from tb_dlprof_plugin.store.logdir import EventFileStore, no_such_path
from tb_dlprof_plugin.store.remote_copies import path_here
from tb_dlprof_plugin.store.run_ref import RunRef


def read_runs(sources: Sequence[Path]) -> tuple[list[RecordedRun], list[FailedRun]]:
    """All runs, one per directory with event files: its newest session, lowest rank and last cycle.

    Ends the command with one sentence if there is no run.
    """
    places = places_of(sources)
    if not places:
        names = ", ".join(str(source) for source in sources)
        refuse(f"{names} holds no profile; record one with tb_dlprof_plugin.profile(...)")
    recorded, failed = [], []
    with Progress(Path(f"{len(places)} runs")) as progress:
        for number, (name, files) in enumerate(places.items()):
            progress.update(number / len(places))
            try:
                recorded.append(_read(name, files))
            except (ProfileError, TraceError, ValueError) as error:
                failed.append(FailedRun(name, str(error)))
    return recorded, failed


def report_failed(failed: Sequence[FailedRun]) -> None:
    """Lists on stderr the runs that could not be read."""
    for one in failed:
        say(f"tb-dlprof: {one.run} cannot be shown: {one.why}", err=True)


def named_run(recorded: Sequence[RecordedRun], text: str) -> str:
    """The run that a user named, by its name, its directory or the end of either; ends the command if none matches."""
    wanted = text.rstrip("/")
    names = [one.run.name for one in recorded]
    fitting = [name for name in names if name == wanted] or [
        name for name in names if name.endswith(f"/{wanted}") or wanted.endswith(f"/{name}")
    ]
    if len(fitting) != 1:
        what = f"{len(fitting)} runs are named" if fitting else "there is no run"
        meant = did_you_mean([] if fitting else near_names(wanted, names))
        refuse(f"{what} {text!r}; {meant or 'the runs are ' + ', '.join(names)}")
    return fitting[0]


def _here(source: Path) -> Path:
    """`path_here`; ends the command with one sentence where an address cannot be read."""
    try:
        return path_here(source)
    except ProfileError as error:
        refuse(error)


def places_of(sources: Sequence[Path]) -> dict[str, list[Path]]:
    """Files by run, in natural order; a run is named by its directory below what all sources have in common."""
    runs: dict[Path, list[Path]] = {}
    roots = []
    for source in map(_here, sources):
        if not source.exists():
            refuse(no_such_path(source))
        if source.is_dir():
            roots.append(source.resolve())
            for file in event_files(source):
                runs.setdefault(file.parent.resolve(), []).append(file)
        else:
            place = source.parent if "tfevents" in source.name else source
            roots.append(place.resolve())
            runs.setdefault(place.resolve(), []).append(source)
    if not runs:
        return {}
    # Several runs that were named directly are distinguished by their parent directories.
    common = Path(os.path.commonpath([root if len(roots) == 1 else root.parent for root in roots]))
    named = {
        (path.relative_to(common).as_posix() if path != common else path.name): files for path, files in runs.items()
    }
    return {name: named[name] for name in sorted(named, key=natural_order)}


def _read(name: str, files: Sequence[Path]) -> RecordedRun:
    if "tfevents" in files[0].name:
        try:
            blob = EventFileStore({name: files}).find(name)
        except NoSuchProfile:
            raise ProfileError("its event files hold no profile") from None
        data = blob.read()
        return kept_runs([(blob.ref, data)])[0] or computed_run(blob.ref, data)
    profile = analyze_trace(files[0])
    view, made_by = ProfileView(profile), profile.source
    return recorded_run(view, RunRef(name, made_by.session, made_by.rank, made_by.cycle), view.selection())
