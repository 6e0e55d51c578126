"""The list of runs with what the metadata says of each."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from tb_dlprof_plugin.model.natural_order import natural_order
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.pages.run_index import RunEntry, RunIndex
from tb_dlprof_plugin.readers.log_directory import sessions_below
from tb_dlprof_plugin.store.header import parse_header
from tb_dlprof_plugin.version import __version__
from tb_dlprof_plugin.web.open_runs import OpenRuns
from tb_dlprof_plugin.web.run_source import Series

INDEX_ENTRIES = 3_000
"""In one answer, where no name is very long; what does not fit is asked for again."""


def run_index(runs: OpenRuns, offset: Annotated[int, Option("Runs that the page has already.")] = 0) -> RunIndex:
    """All runs that have profiles, or `INDEX_ENTRIES` of them from ``offset`` on; no profile is read."""
    source, logdir, failed = runs.source, runs.logdir, runs.kept.why_unreadable
    series = list(source.series())
    places = {run: natural_order(run) for run in {one.run for one in series}}
    found = sorted(series, key=lambda one: (places[one.run], one.tag.session, one.tag.rank))
    shown = found[offset : offset + INDEX_ENTRIES]
    # The first response covers all runs: by its revision, the page knows whether to ask for any of them again.
    read = found if offset == 0 else shown
    cycles: dict[tuple[str, str, int], dict[int, Hashable]] = {}
    for blob in source.blobs({one.run for one in read}):
        ref = blob.ref
        cycles.setdefault((ref.run, ref.session, ref.rank), {})[ref.cycle] = blob.key
    keys = [cycles.get((one.run, one.tag.session, one.tag.rank), {}) for one in read]
    held = [
        _Held(sorted(of_cycle), one.unreadable or (failed(of_cycle[max(of_cycle)]) if of_cycle else ""))
        for one, of_cycle in zip(read, keys, strict=True)
    ]
    command = _import_command(logdir, places) if offset == 0 else ""
    return RunIndex(
        plugin_version=__version__,
        logdir=logdir,
        runs=[_entry(one, cycles) for one, cycles in zip(shown, held, strict=False)],
        offset=offset,
        total=len(found),
        revision=_revision(read, held) if offset == 0 else "",
        import_command=command,
    )


def _import_command(logdir: str, runs: Iterable[str]) -> str:
    """The command that imports what TensorFlow's and JAX' profilers wrote into the log directory; "" where all of it is
    imported, and for one that is no local directory."""
    if not logdir or not os.path.isdir(logdir):
        return ""
    imported = {run.rpartition("/")[2] for run in runs}
    if all(session in imported for session in sessions_below(Path(logdir))):
        return ""
    path = shlex.quote(logdir)
    return f"tb-dlprof import {path} --logdir {path}"


@dataclass(frozen=True, slots=True)
class _Held:
    """The cycles of a series, and why the last of them cannot be read."""

    cycles: list[int]
    unreadable: str


def _revision(series: list[Series], held: list[_Held]) -> str:
    parts = [
        (one.run, one.tag.session, one.tag.rank, of_one.cycles, of_one.unreadable, one.header)
        for one, of_one in zip(series, held, strict=True)
    ]
    return hashlib.blake2s(msgspec.msgpack.encode(parts), digest_size=12).hexdigest()


def _entry(series: Series, held: _Held) -> RunEntry:
    header = parse_header(series.header)
    return RunEntry(
        run=series.run,
        session=series.tag.session,
        rank=series.tag.rank,
        cycles=held.cycles,
        unreadable=held.unreadable,
        model=(header.model or None) if header else None,
        precision=(header.precision or None) if header else None,
        device=(header.device or None) if header else None,
        created_unix_ns=(header.created_unix_ns or None) if header else None,
        iterations=(header.iterations or None) if header else None,
        recorded_iteration_ns=(header.average_iteration_ns or None) if header else None,
        world_size=(header.world_size or None) if header else None,
    )
