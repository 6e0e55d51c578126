"""The list of runs with what the metadata says of each."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from tb_dlprof_plugin.model.natural_order import natural_order
from tb_dlprof_plugin.pages.run_index import RunEntry, RunIndex
from tb_dlprof_plugin.readers.log_directory import sessions_below
from tb_dlprof_plugin.store.header import parse_header
from tb_dlprof_plugin.version import __version__
from tb_dlprof_plugin.web.run_source import RunSource, Series

INDEX_ENTRIES = 3_000
"""In one answer, where no name is very long; what does not fit is asked for again."""


def run_index(source: RunSource, logdir: str, offset: int) -> RunIndex:
    """All runs that have profiles, or `INDEX_ENTRIES` of them from ``offset`` on; no profile is read."""
    series = list(source.series())
    places = {run: natural_order(run) for run in {one.run for one in series}}
    found = sorted(series, key=lambda one: (places[one.run], one.tag.session, one.tag.rank))
    shown = found[offset : offset + INDEX_ENTRIES]
    # The first response covers all runs: by its revision, the page knows whether to ask for any of them again.
    read = found if offset == 0 else shown
    cycles: dict[tuple[str, str, int], set[int]] = {}
    for ref in (blob.ref for blob in source.blobs({one.run for one in read})):
        cycles.setdefault((ref.run, ref.session, ref.rank), set()).add(ref.cycle)
    held = [sorted(cycles.get((one.run, one.tag.session, one.tag.rank), ())) for one in read]
    command = _import_command(logdir, places) if offset == 0 else ""
    return RunIndex(
        plugin_version=__version__,
        logdir=logdir,
        runs=[_entry(one, numbers) for one, numbers in zip(shown, held, strict=False)],
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


def _revision(series: list[Series], cycles: list[list[int]]) -> str:
    parts = [
        (one.run, one.tag.session, one.tag.rank, numbers, one.header)
        for one, numbers in zip(series, cycles, strict=True)
    ]
    return hashlib.blake2s(msgspec.msgpack.encode(parts), digest_size=12).hexdigest()


def _entry(series: Series, cycles: list[int]) -> RunEntry:
    header: Any = parse_header(series.header)
    return RunEntry(
        run=series.run,
        session=series.tag.session,
        rank=series.tag.rank,
        cycles=cycles,
        model=(header.model or None) if header else None,
        precision=(header.precision or None) if header else None,
        device=(header.device or None) if header else None,
        created_unix_ns=(header.created_unix_ns or None) if header else None,
        iterations=(header.iterations or None) if header else None,
        recorded_iteration_ns=(header.average_iteration_ns or None) if header else None,
    )
