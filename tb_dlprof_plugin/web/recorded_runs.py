"""The figures of all runs of a TensorBoard, read in steps and cached: a table of hundreds of runs needs every
profile."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass

from tb_dlprof_plugin.pages.recorded_run import FailedRun, RecordedRun, recorded_run
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.choice import StoredBlob
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.last_used import LastUsed
from tb_dlprof_plugin.store.profile_store import ProfileStore

BUDGET_S = 1.0
"""Time limit of reading for one response: then the page shows a partial result and sends another request."""
_KEPT_RUNS = 5_000
"""At most 5 KB each."""


@dataclass(frozen=True, slots=True)
class ReadRuns:
    """The runs read so far, in natural order of their names, of ``total``."""

    recorded: list[RecordedRun]
    failed: list[FailedRun]
    total: int


class RecordedRuns:
    """Figures by profile. Safe to call from several threads."""

    def __init__(self) -> None:
        self._kept: LastUsed[RecordedRun | FailedRun] = LastUsed(_KEPT_RUNS)

    def why_failed(self, key: Hashable) -> str:
        """Why the profile of this key is none of the recorded runs; "" where it is, or was not read yet."""
        known = self._kept.known(key)
        return known.why if isinstance(known, FailedRun) else ""

    def read(self, store: ProfileStore[StoredBlob], budget_s: float = BUDGET_S) -> ReadRuns:
        """All runs that are known, and as many more as can be read in the time, at least one."""
        wanted = store.latest()
        stop = time.monotonic() + budget_s
        found: list[RecordedRun | FailedRun] = []
        read = 0
        for latest in wanted:
            known = self._kept.known(latest.key)
            if known is None and (read == 0 or time.monotonic() < stop):
                known = _figures(store, latest)
                read += 1
                self._kept.keep(latest.key, known)
            if known is not None:
                found.append(known)
        return ReadRuns(
            [one for one in found if isinstance(one, RecordedRun)],
            [one for one in found if isinstance(one, FailedRun)],
            len(wanted),
        )


def _figures(store: ProfileStore[StoredBlob], blob: StoredBlob) -> RecordedRun | FailedRun:
    run = blob.ref.run
    try:
        # By itself, without its other ranks.
        view = ProfileView(store.profile(blob))
        return recorded_run(view, blob.ref, view.selection())
    except ProfileError as error:
        return FailedRun(run, f"Run {run!r} cannot be shown: {error}.")
    except Exception as error:
        # One bad profile must not break the table of all others.
        return FailedRun(run, f"Its figures cannot be computed ({error}); please report it.")
