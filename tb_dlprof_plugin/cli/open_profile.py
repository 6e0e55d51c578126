"""Opens the profile that a command's argument names: a logdir, a run in it, an event file or a trace file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.progress import Progress
from tb_dlprof_plugin.pages.common import RunRef
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.event_file import StoredProfile, read_profiles
from tb_dlprof_plugin.store.ranks import ranks_together
from tb_dlprof_plugin.store.reclassify import renewed


class Chosen:
    """A profile with its name and the selected iterations."""

    def __init__(self, view: ProfileView, ref: RunRef, selection: Selection) -> None:
        self.view, self.ref, self.selection = view, ref, selection


def choose(source: Path, cycle: int | None, rank: int | None, first: int | None, last: int | None) -> Chosen:
    """The newest matching profile under ``source``; ends the command with one sentence if there is none."""
    try:
        view, ref = _open(source, cycle, rank)
        return Chosen(view, ref, view.selection(first, last))
    except (TraceError, ProfileError, ValueError) as error:
        refuse(error)


def _open(source: Path, cycle: int | None, rank: int | None) -> tuple[ProfileView, RunRef]:
    if source.is_file() and "tfevents" not in source.name:
        return _of_trace(source)
    stored = read_profiles(source)
    if not stored and (traces := sorted(source.rglob("*.pt.trace.json*"))):
        if len(traces) == 1:
            return _of_trace(traces[0])
        raise ProfileError(
            f"{source} holds {len(traces)} traces but no profile; name one of them, or convert them to a run with "
            f"`tb-dlprof import {source} --logdir DIR --run NAME`."
        )
    if not stored:
        raise ProfileError(f"{source} holds no profile; record one with tb_dlprof_plugin.profile(...) or the demo.")
    runs = sorted({s.path.parent for s in stored})
    if len(runs) > 1:
        names = ", ".join(str(run.relative_to(source)) for run in runs[:8]) + (", ..." if len(runs) > 8 else "")
        raise ProfileError(f"{source} holds {len(runs)} runs; name one of them: {names}.")
    fitting = [s for s in stored if cycle in (None, s.profile.source.cycle) and rank in (None, s.profile.source.rank)]
    if not fitting:
        raise ProfileError(f"{source} has no profile of that rank and cycle.")
    newest = max(fitting, key=_newest)
    made_by = newest.profile.source
    view = ProfileView(renewed(newest.profile))
    view.ranks = tuple(_ranks(stored, view))
    return view, RunRef(newest.path.parent.name, made_by.session, made_by.rank, made_by.cycle)


def _ranks(stored: list[StoredProfile], view: ProfileView) -> Iterator[ProfileView]:
    own = view.profile.source
    same = {
        source.rank: one.profile
        for one in stored
        if (source := one.profile.source).session == own.session and source.cycle == own.cycle
    }
    for rank in ranks_together(same, own.rank):
        yield view if rank == own.rank else ProfileView(renewed(same[rank]))


def _of_trace(path: Path) -> tuple[ProfileView, RunRef]:
    with Progress(path) as progress:
        profile = analyze_trace(path, progress=progress.update)
    return ProfileView(profile), RunRef(path.name, profile.source.session, profile.source.rank, profile.source.cycle)


def _newest(stored: StoredProfile) -> tuple[str, int, int]:
    made_by = stored.profile.source
    return (made_by.session, -made_by.rank, made_by.cycle)
