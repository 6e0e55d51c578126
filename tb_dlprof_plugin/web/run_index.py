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
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.readers.log_directory import sessions_below
from tb_dlprof_plugin.store.header import parse_header
from tb_dlprof_plugin.version import __version__
from tb_dlprof_plugin.web.open_runs import OpenRuns
from tb_dlprof_plugin.web.run_source import Series

_FACTS = ("model", "precision", "device", "created_unix_ns", "iterations", "world_size")
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
    # What was not recorded is 0 or "" in a header.
    facts = {name: header and (getattr(header, name) or None) for name in _FACTS}
    return struct_from(
        RunEntry,
        held,
        series.tag,
        run=series.run,
        recorded_iteration_ns=header and (header.average_iteration_ns or None),
        **facts,
    )


class RunEntry(msgspec.Struct, frozen=True):
    """One (run, session, rank); ``cycles`` are ascending. Unknown facts are None.

    ``world_size`` is that of the job, of which not all ranks need be here. ``recorded_iteration_ns`` is the mean
    recorded step, the profiler's time included. ``unreadable`` says why its last profile cannot be read, where that is
    known; a page that is not told which run to show takes another.
    """

    run: str
    session: str
    rank: int
    cycles: list[int]
    model: str | None
    precision: str | None
    device: str | None
    created_unix_ns: int | None
    iterations: int | None
    recorded_iteration_ns: int | None
    world_size: int | None = None
    unreadable: str = ""


class RunIndex(msgspec.Struct, frozen=True):
    """``runs`` in natural order of run, then session, rank: from the ``offset``-th on as many as fit into an answer.

    There are ``total``; the page asks for the next ones until it has all. ``revision`` changes with any of them, those
    beyond this answer too; it is empty in the answers that continue the first. ``import_command`` makes runs of the
    sessions of TensorFlow's and JAX' profilers that lie in the log directory and are no runs yet; "" without any.
    """

    plugin_version: str
    logdir: str
    runs: list[RunEntry]
    offset: int
    total: int
    revision: str = ""
    import_command: str = ""
