"""Stores what tables of many runs show of one with its profile, so that such a table opens no profile.

A summary holds what this very code computed: another version, which may compute better, opens the profile.
"""

from __future__ import annotations

import contextlib
import gzip
import math
import os
import time
from pathlib import Path

import msgspec

from tb_dlprof_plugin.comparison.run_table import NamedRun
from tb_dlprof_plugin.fleet.run_writer import as_read, facts_beside
from tb_dlprof_plugin.metrics.run_figures import RunFigures
from tb_dlprof_plugin.model import addresses
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.pages.recorded_run import RecordedRun, RunAdvice, recorded_run
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.allowance import GZIP, Allowance
from tb_dlprof_plugin.store.choice import StoredBlob
from tb_dlprof_plugin.store.code_version import code_version
from tb_dlprof_plugin.store.codec import ProfileError, encode
from tb_dlprof_plugin.store.event_file import event_file_content, own_event_file_name, write_profile
from tb_dlprof_plugin.store.run_ref import RunRef

_BYTES_OF_JSON = 25
"""Of memory for each byte of JSON, at most; that of a real run has 3 to 20 kB."""


class _StoredSummary(msgspec.Struct):
    code_version: str
    figures: RunFigures
    advice: list[RunAdvice]


_STORED = msgspec.json.Decoder(_StoredSummary)


def write_summarized_run(directory: str | os.PathLike[str], profile: Profile) -> Path:
    """`write_profile` with a summary and the facts of its rank. What cannot be made of the profile is left out.

    For a process that no user waits for: a summary takes as long as the rest. Without one a table opens the profile.

    Raises:
        OSError: the directory cannot be written.
    """
    return write_profile(directory, profile, *stored_with(profile))


def write_summarized_run_to(address: str, profile: Profile) -> str:
    """`write_summarized_run` at a remote address; the address of the event file.

    Raises:
        AddressError: it cannot be written.
    """
    now_ns = time.time_ns()
    written = addresses.join(address, own_event_file_name(now_ns))
    addresses.write(written, event_file_content(profile, now_ns, *stored_with(profile)))
    return written


def stored_with(profile: Profile) -> tuple[bytes | None, bytes | None, bytes]:
    """The summary and the facts of a rank that are stored with a profile, None where they cannot be made of it; and the
    encoded profile, which they are made of.

    Tables of many runs show the lowest rank of each: of a job, rank 0 alone has a summary. Where rank 0 is missing, a
    table opens the lowest rank's profile.
    """
    blob, summary = encode(profile), None
    view: ProfileView | None = None
    if profile.source.rank == 0 or (profile.facts.world_size or 1) == 1:
        # What is recorded must not be lost for the sake of a faster table.
        with contextlib.suppress(Exception):
            view = as_read(blob)
            ref = RunRef("", profile.source.session, profile.source.rank, profile.source.cycle)
            summary = encode_summary(recorded_run(view, ref, view.selection()))
    return summary, facts_beside(profile, blob, view), blob


def encode_summary(recorded: RecordedRun) -> bytes:
    """The bytes to store."""
    stored = _StoredSummary(code_version(), recorded.run.figures, recorded.advice)
    return gzip.compress(msgspec.json.encode(stored), compresslevel=6, mtime=0)


def stored_summary(blob: StoredBlob) -> RecordedRun | None:
    """What tables show of a stored profile; None where that is not stored, or cannot be read: the profile says why."""
    try:
        data = blob.read_summary()
    except ProfileError:
        return None
    return None if data is None else decode_summary(data, blob.ref)


def decode_summary(data: bytes, ref: RunRef) -> RecordedRun | None:
    """What `encode_summary` stored, of a run that may have been renamed since.

    None where other code wrote it, and where it is damaged or holds what no run has: the profile is asked then.
    """
    try:
        allowance = Allowance(len(data))
        unpacked = allowance.unpack(data, GZIP)
        allowance.take(_BYTES_OF_JSON * len(unpacked))
        stored = _STORED.decode(unpacked)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if stored.code_version != code_version() or not _can_be(stored.figures):
        return None
    return RecordedRun(ref, NamedRun(ref.run, stored.figures), stored.advice)


def _can_be(figures: RunFigures) -> bool:
    """Whether tables can be made of the figures: anybody may have written the file."""
    step = figures.step
    times = (step.ns, step.low_ns, step.high_ns, step.recorded_ns, *figures.iteration_ns)
    return (
        figures.iterations == len(figures.iteration_ns) >= 1
        and all(math.isfinite(time) and 0 <= time < 1 << 63 for time in times)
        and step.low_ns <= step.high_ns
    )
