"""Opens the profile that a command's argument names: a logdir, a run in it, an event file or a trace file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.progress import Progress
from tb_dlprof_plugin.metrics.key_node import with_key_node
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.readers import registry
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.store.choice import NoSuchProfile
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.logdir import EventFileStore, files_below
from tb_dlprof_plugin.store.run_ref import RunRef


@dataclass(frozen=True, slots=True)
class Chosen:
    """A profile with its name and the selected iterations."""

    view: ProfileView
    ref: RunRef
    selection: Selection


def choose(source: Path, cycle: int | None, rank: int | None, first: int | None, last: int | None) -> Chosen:
    """The newest matching profile under ``source``; ends the command with one sentence if there is none."""
    try:
        view, ref = open_profile(source, cycle, rank)
        return Chosen(view, ref, view.selection(first, last))
    except ValueError as error:
        refuse(error)


def open_profile(
    source: Path, cycle: int | None, rank: int | None, key_node: str | None = None
) -> tuple[ProfileView, RunRef]:
    """The newest matching profile under ``source``; ends the command with one sentence if there is none.

    Raises:
        KeyNodeError: there is no such key node.
    """
    try:
        return _open(source, cycle, rank, key_node)
    except (TraceError, ProfileError) as error:
        refuse(error)


def _open(source: Path, cycle: int | None, rank: int | None, key_node: str | None) -> tuple[ProfileView, RunRef]:
    if source.is_file() and "tfevents" not in source.name:
        return _of_trace(source, key_node)
    files = files_below(source)
    runs = sorted({file.parent for file in files})
    if len(runs) > 1:
        names = ", ".join(str(run.relative_to(source)) for run in runs[:8]) + (", ..." if len(runs) > 8 else "")
        raise ProfileError(f"{source} holds {len(runs)} runs; name one of them: {names}.")
    name = runs[0].name if runs else ""
    store = EventFileStore({name: files})
    if not store.of_run(name):
        traces = registry.files_below(source)
        if len(traces) == 1:
            return _of_trace(traces[0], key_node)
        if traces:
            raise ProfileError(
                f"{source} holds {len(traces)} traces but no profile; name one of them, or convert them to a run with "
                f"`tb-dlprof import {source} --logdir DIR --run NAME`."
            )
        raise ProfileError(f"{source} holds no profile; record one with tb_dlprof_plugin.profile(...) or the demo.")
    try:
        blob = store.find(name, rank=rank, cycle=cycle, any_session=True)
    except NoSuchProfile:
        raise ProfileError(f"{source} has no profile of that rank and cycle.") from None
    return store.view(blob, key_node), blob.ref


def _of_trace(path: Path, key_node: str | None) -> tuple[ProfileView, RunRef]:
    with Progress(path) as progress:
        profile = analyze_trace(path, progress=progress.update)
    ref = RunRef(path.name, profile.source.session, profile.source.rank, profile.source.cycle)
    return ProfileView(profile if key_node is None else with_key_node(profile, key_node)), ref
