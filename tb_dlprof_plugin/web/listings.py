"""What is stored, listed once for all requests of a moment.

Listing 1,600 runs takes TensorBoard's loaders 50 to 100 ms of the interpreter, and every request needs to know which
profiles there are.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Collection, Hashable, Iterable
from functools import cached_property

from tb_dlprof_plugin.store.choice import StoredBlob
from tb_dlprof_plugin.store.last_used import LastUsed
from tb_dlprof_plugin.web.run_source import RunSource, Series

_FRESH_S = 2.0
"""How old a listing may be: TensorBoard itself looks for new data every five seconds by default."""
_FRESH_SHARE, _MOST_FRESH_S = 10, 30.0
"""One that took long may be so many times as old as that, up to a limit: listing the 10,000 ranks of a job takes some
seconds, which the page would else wait for with each piece of the list of runs."""
_EXPERIMENTS = 8


class Listing:
    """The profiles of a moment, a `RunSource`."""

    def __init__(self, source: RunSource) -> None:
        self._source, self._lock = source, threading.Lock()
        began = time.monotonic()
        by_run: dict[str, list[StoredBlob]] = {}
        for blob in source.blobs():
            by_run.setdefault(blob.ref.run, []).append(blob)
        self._by_run = by_run
        self.made_s = time.monotonic()
        self._took_s = self.made_s - began

    @property
    def is_fresh(self) -> bool:
        """Whether it may still be used."""
        return time.monotonic() - self.made_s < min(max(_FRESH_S, _FRESH_SHARE * self._took_s), _MOST_FRESH_S)

    def blobs(self, runs: Collection[str] | None = None) -> Iterable[StoredBlob]:
        """The profiles of these runs, or of all."""
        names = self._by_run if runs is None else [run for run in self._by_run if run in runs]
        return [blob for run in names for blob in self._by_run[run]]

    def holds(self, runs: Collection[str]) -> bool:
        """Whether all of these runs have profiles."""
        return all(run in self._by_run for run in runs)

    def series(self) -> Iterable[Series]:
        """What is stored, as metadata says."""
        with self._lock:
            return self._series

    @cached_property
    def _series(self) -> list[Series]:
        began = time.monotonic()
        series = list(self._source.series())
        self._took_s += time.monotonic() - began
        return series

    def content(self, runs: Iterable[str] | None = None) -> Hashable:
        """What changes with the profiles of these runs, or of any."""
        if runs is None:
            with self._lock:
                return self._revision
        return tuple(blob.key for blob in self.blobs(frozenset(runs)))

    @cached_property
    def _revision(self) -> str:
        digest = hashlib.blake2s(digest_size=16)
        for blob in self.blobs():
            digest.update(repr((blob.ref.run, blob.key)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


class Listings:
    """The last listing of each experiment. Safe to call from several threads."""

    def __init__(self) -> None:
        self._kept: LastUsed[Listing] = LastUsed(_EXPERIMENTS)

    def of(self, experiment: str, source: RunSource, runs: Collection[str] = ()) -> Listing:
        """The listing of an experiment, a new one where the last is not fresh or one of ``runs`` is not in it."""
        known = self._kept.known(experiment)
        if known is not None and known.is_fresh and known.holds(runs):
            return known
        # Each refresh has a key of its own, so that all who find the same listing too old wait for one new one.
        fresh = self._kept.get((experiment, known and known.made_s), lambda: Listing(source), is_kept=lambda _: False)
        self._kept.keep(experiment, fresh)
        return fresh
