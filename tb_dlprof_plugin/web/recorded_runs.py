"""The figures of all runs of a TensorBoard, read in steps and kept.

A profile whose figures are not kept (`pages.kept_runs`) is opened.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec

from tb_dlprof_plugin.pages.kept_runs import computed_run, kept_runs
from tb_dlprof_plugin.pages.recorded_run import FailedRun, RecordedRun
from tb_dlprof_plugin.store.choice import StoredBlob
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.facts_ahead import AT_ONCE
from tb_dlprof_plugin.store.last_used import LastUsed
from tb_dlprof_plugin.store.profile_store import ProfileStore

BUDGET_S = 0.5
"""Time limit of reading for one response: then the page shows a partial result and sends another request."""
_KEPT_BYTES = 64_000_000
"""Of the figures as JSON: 5 to 20 kB each."""
_CHUNK = 64
"""Profiles whose bytes are read between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class ReadRuns:
    """The runs read so far, in natural order of their names, of ``total``."""

    recorded: list[RecordedRun]
    failed: list[FailedRun]
    total: int


class RecordedRuns:
    """Figures by profile. Safe to call from several threads."""

    def __init__(self) -> None:
        self._kept: LastUsed[RecordedRun | FailedRun] = LastUsed(_KEPT_BYTES, lambda run: len(msgspec.json.encode(run)))
        self._asked: set[Hashable] = set()
        self._reading = threading.Lock()
        self.failures = 0

    def why_failed(self, key: Hashable) -> str:
        """Why the profile of this key is none of the recorded runs; "" where it is, or was not read yet."""
        known = self._kept.known(key)
        return known.why if isinstance(known, FailedRun) else ""

    def read(self, store: ProfileStore[StoredBlob], budget_s: float = BUDGET_S) -> ReadRuns:
        """All runs that are known, and as many more as can be read in the time, at least one.

        One thread reads at a time, because the interpreter has one lock. Others wait for it as long as they would read.
        """
        wanted = store.latest()
        stop = time.monotonic() + budget_s
        if any(self._kept.known(latest.key) is None for latest in wanted) and self._reading.acquire(timeout=budget_s):
            try:
                self._read_more(store, wanted, stop)
            finally:
                self._reading.release()
        found = [known for latest in wanted if (known := self._kept.known(latest.key)) is not None]
        return ReadRuns(
            [one for one in found if isinstance(one, RecordedRun)],
            [one for one in found if isinstance(one, FailedRun)],
            len(wanted),
        )

    def _read_more(self, store: ProfileStore[StoredBlob], wanted: Sequence[StoredBlob], stop: float) -> None:
        unknown = [latest for latest in wanted if self._kept.known(latest.key) is None]
        unasked = [latest for latest in unknown if latest.key not in self._asked]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for at in range(0, len(unasked), _CHUNK):
                chunk = unasked[at : at + _CHUNK]
                blobs = pool.map(_bytes_of, chunk)
                found = kept_runs([(latest.ref, blob) for latest, blob in zip(chunk, blobs, strict=True)])
                for latest, kept in zip(chunk, found, strict=True):
                    self._asked.add(latest.key)
                    if kept is not None:
                        self._kept.keep(latest.key, kept)
                if time.monotonic() > stop:
                    break
        # Those whose profiles are opened come last, at least one in each pass: it takes longer than many kept ones.
        for latest in unknown:
            if latest.key not in self._asked or self._kept.known(latest.key) is not None:
                continue
            computed = _figures(latest)
            self.failures += isinstance(computed, FailedRun)
            self._kept.keep(latest.key, computed)
            if time.monotonic() > stop:
                return


def _bytes_of(blob: StoredBlob) -> bytes:
    """The profile's bytes; none where they cannot be read, which `_figures` says."""
    try:
        return blob.read()
    except ProfileError:
        return b""


def _figures(blob: StoredBlob) -> RecordedRun | FailedRun:
    run = blob.ref.run
    try:
        return computed_run(blob.ref, blob.read())
    except ProfileError as error:
        return FailedRun(run, f"Run {run!r} cannot be shown: {error}.")
    except Exception as error:
        # One bad profile must not break the table of all others.
        return FailedRun(run, f"Its figures cannot be computed ({error}); please report it.")
