"""Opens the profile that a command's argument names: a logdir, a run in it, an event file or a trace file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.run_choice import ProfileChoice, RangeChoice
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.store.choice import NoSuchProfile, sessions_of
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.logdir import EventFileStore, files_below
from tb_dlprof_plugin.store.remote_copies import path_here
from tb_dlprof_plugin.store.run_ref import RunRef

if TYPE_CHECKING:
    from tb_dlprof_plugin.readers.options import Markers

ANY = ProfileChoice()
_MOST_NAMED = 5
"""Sessions in the line about others than the one that is shown."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A profile with its name and the selected iterations."""

    view: ProfileView
    ref: RunRef
    selection: Selection


def choose(source: Path, choice: ProfileChoice = ANY) -> Chosen:
    """The newest matching profile under ``source``; ends the command with one sentence if there is none."""
    try:
        view, ref = open_profile(source, choice)
        of_range = (choice.first, choice.last) if isinstance(choice, RangeChoice) else ()
        return Chosen(view, ref, view.selection(*of_range))
    except ValueError as error:
        refuse(error)


def open_profile(
    source: Path, choice: ProfileChoice = ANY, key_node: str | None = None, markers: Markers | None = None
) -> tuple[ProfileView, RunRef]:
    """The newest matching profile under ``source``; ends the command with one sentence if there is none.

    A line on standard error names the sessions if there are others than the one that is shown and none was named.
    ``markers`` says how the ranges of a recording are read; of a stored profile that was settled when it was made.

    Raises:
        KeyNodeError: there is no such key node.
    """
    try:
        return _open(source, choice, key_node, markers)
    except (TraceError, ProfileError) as error:
        refuse(error)


def _open(
    source: Path, choice: ProfileChoice, key_node: str | None, markers: Markers | None
) -> tuple[ProfileView, RunRef]:
    source = path_here(source)
    if source.is_file() and "tfevents" not in source.name:
        return _of_trace(source, choice.rank, key_node, markers)
    files = files_below(source)
    runs = sorted({file.parent for file in files})
    if len(runs) > 1:
        names = ", ".join(str(run.relative_to(source)) for run in runs[:8]) + (", ..." if len(runs) > 8 else "")
        raise ProfileError(f"{source} holds {len(runs)} runs; name one of them: {names}.")
    name = runs[0].name if runs else ""
    store = EventFileStore({name: files})
    if not store.of_run(name):
        # A stored run waits for no reader.
        from tb_dlprof_plugin.cli.trace_files import known_in
        from tb_dlprof_plugin.readers import registry

        traces = registry.files_below(source)
        if len(traces) == 1:
            return _of_trace(traces[0], choice.rank, key_node, markers)
        if traces:
            raise ProfileError(
                f"{source} holds {len(traces)} traces but no profile; name one of them, or convert them to a run with "
                f"`tb-dlprof import {source} --logdir DIR --run NAME`."
            )
        known = known_in(source)
        if known:
            raise ProfileError(f"{source} holds no profile, but {known}.")
        raise ProfileError(f"{source} holds no profile; record one with tb_dlprof_plugin.profile(...) or the demo.")
    if markers is not None:
        raise ProfileError(f"{source} holds profiles, whose ranges were read when they were made; leave out --mode.")
    session, sessions = choice.session, sessions_of(store.of_run(name))
    if session is not None and session not in sessions:
        raise ProfileError(f"{source} has no session {session!r}; it has {', '.join(sessions)}.")
    try:
        blob = store.find(name, session, choice.rank, choice.cycle, any_session=True)
    except NoSuchProfile:
        where = "" if session is None else f" in session {session!r}"
        raise ProfileError(f"{source} has no profile of that rank and cycle{where}.") from None
    if session is None and len(sessions) > 1:
        _name_sessions(source, blob.ref.session, sessions)
    return store.view(blob, key_node), blob.ref


def _name_sessions(source: Path, shown: str, sessions: list[str]) -> None:
    others = [one for one in sessions if one != shown]
    more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    listed = ", ".join(others[:_MOST_NAMED]) + more
    which = f"the newest one, {shown}, is shown" if shown == sessions[0] else f"{shown} is shown"
    say(
        f"tb-dlprof: {source} holds {len(sessions)} sessions (starts of a training); {which}. "
        f"--session NAME picks another: {listed}.",
        err=True,
    )


def _of_trace(
    path: Path, rank: int | None, key_node: str | None, markers: Markers | None
) -> tuple[ProfileView, RunRef]:
    from tb_dlprof_plugin.analysis import analyze_trace
    from tb_dlprof_plugin.cli.progress import Progress
    from tb_dlprof_plugin.readers.options import Markers, ReadOptions

    options = ReadOptions(markers or Markers.AUTO)
    with Progress(path) as progress:
        profile = analyze_trace(path, rank=rank, options=options, progress=progress.update)
    ref = RunRef(path.name, profile.source.session, profile.source.rank, profile.source.cycle)
    if key_node is not None:
        from tb_dlprof_plugin.metrics.key_node import with_key_node

        profile = with_key_node(profile, key_node)
    return ProfileView(profile), ref
