"""Profiles in memory: the routes answer from them as from what TensorBoard has loaded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.store.choice import StoredBlob, ranks_together
from tb_dlprof_plugin.store.codec import encode
from tb_dlprof_plugin.store.header import header_of
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.store.tags import Tag
from tb_dlprof_plugin.web.run_source import Series


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """The profile of a run that a file shows: one session, rank and cycle.

    ``header`` is its summary metadata, ``ranks`` the stored profiles of that session and cycle by
    rank, this rank's among them: some pages set the ranks side by side.
    """

    name: str
    session: str
    rank: int
    cycle: int
    header: bytes
    ranks: dict[int, bytes]


def exported(stored: Sequence[StoredBlob], chosen: StoredBlob, profile: Profile) -> ExportedRun:
    """The chosen one of the stored profiles of a run, read as ``profile``, with those of its other ranks."""
    ref = chosen.ref
    ranks = {one.ref.rank: one.read() for one in ranks_together(stored, chosen) or [chosen]}
    return ExportedRun(ref.run, ref.session, ref.rank, ref.cycle, header_of(profile).encode(), ranks)


def exported_alone(name: str, profile: Profile) -> ExportedRun:
    """A profile that is not stored, or without the other ranks of its run."""
    made_by, header = profile.source, header_of(profile).encode()
    return ExportedRun(name, made_by.session, made_by.rank, made_by.cycle, header, {made_by.rank: encode(profile)})


@dataclass(frozen=True, slots=True)
class _MemoryBlob(StoredBlob):
    blob: bytes

    def read(self) -> bytes:
        return self.blob


class ExportedRuns:
    """Where the routes find the profiles of runs in memory."""

    def __init__(self, runs: Sequence[ExportedRun]) -> None:
        self._runs = {run.name: run for run in runs}

    def series(self) -> Iterable[Series]:
        """Each run's own rank: the file shows no other."""
        return [Series(run.name, Tag(run.session, run.rank), run.header) for run in self._runs.values()]

    def blobs(self, runs: Collection[str] | None = None) -> Iterable[StoredBlob]:
        """The profiles of these runs with all their ranks; of all runs the rank that the file shows of each."""
        return [
            _MemoryBlob(RunRef(name, run.session, rank, run.cycle), (name, rank), blob)
            for name, run in self._runs.items()
            if runs is None or name in runs
            for rank, blob in run.ranks.items()
            if runs is not None or rank == run.rank
        ]
