"""The facts of a job's ranks from what a user names: a run's directory, folders, globs or files of traces."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.fleet.stored_facts import facts_of_job
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers import registry
from tb_dlprof_plugin.store.choice import newest, newest_of_ranks
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.logdir import EventFileStore, no_such_path, runs_below

_MAGIC = "*?["


def read_job(
    sources: Iterable[str | Path], done: Callable[[Path], None] = lambda path: None
) -> tuple[list[RankFacts], list[str]]:
    """The facts of each rank, by rank, and a sentence for each stored rank that cannot be read.

    Args:
        sources: of one job: a run's directory, or traces, as files, folders and globs.
        done: is called with each trace that was read.

    Raises:
        ProfileError: a path does not exist or has neither profiles nor traces, or there are several runs; one sentence.
        TraceError: a trace cannot be read.
    """
    found: list[RankFacts] = []
    unreadable: list[str] = []
    for path in _paths(sources):
        facts, notes = _of_path(path, done)
        found += facts
        unreadable += notes
    return sorted(found, key=lambda one: one.rank), unreadable


def _paths(sources: Iterable[str | Path]) -> Sequence[Path]:
    paths: list[Path] = []
    for source in sources:
        path = Path(source)
        if path.exists() or not any(sign in str(source) for sign in _MAGIC):
            paths.append(path)
            continue
        matching = sorted(glob.glob(str(source), recursive=True))
        if not matching:
            raise ProfileError(f"No file matches {source}.")
        paths += map(Path, matching)
    return list(dict.fromkeys(paths))


def _of_path(path: Path, done: Callable[[Path], None]) -> tuple[list[RankFacts], list[str]]:
    if not path.exists():
        raise ProfileError(no_such_path(path))
    if path.is_file() and "tfevents" not in path.name:
        return [_of_trace(path, done)], []
    runs = runs_below(path)
    store = EventFileStore(runs)
    blobs = store.all()
    names = sorted({blob.ref.run for blob in blobs})
    if len(names) > 1:
        listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise ProfileError(f"{path} holds {len(names)} runs; name one of them: {listed}.")
    if latest := newest(blobs):
        session = [blob for blob in blobs if blob.ref.session == latest.ref.session] or blobs
        return facts_of_job(newest_of_ranks(session))
    traces = registry.files_below(path)
    if not traces:
        raise ProfileError(f"{path} holds neither profiles nor traces.")
    return [_of_trace(trace, done) for trace in traces], []


def _of_trace(path: Path, done: Callable[[Path], None]) -> RankFacts:
    facts = facts_of_profile(ProfileView(analyze_trace(path)))
    done(path)
    return facts
