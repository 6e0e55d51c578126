"""Data provider over profiles in memory, so that the routes work as with a logdir."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tensorboard.data.provider import (
    BlobReference,
    BlobSequenceDatum,
    BlobSequenceTimeSeries,
    RunTagFilter,
)

from tb_dlprof_plugin.store.tags import Tag


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


class ExportedRuns:
    """A data provider over runs in memory, as far as the routes ask for it."""

    def __init__(self, runs: Sequence[ExportedRun]) -> None:
        self._runs = {run.name: run for run in runs}

    def list_blob_sequences(self, context: Any, *, experiment_id: str, plugin_name: str) -> dict[str, Any]:
        """Metadata of each run's own rank: the file shows no other."""
        return {
            name: {
                str(Tag(run.session, run.rank)): BlobSequenceTimeSeries(
                    max_step=run.cycle,
                    max_wall_time=0.0,
                    max_length=1,
                    plugin_content=run.header,
                    description="",
                    display_name="",
                )
            }
            for name, run in self._runs.items()
        }

    def read_blob_sequences(
        self,
        context: Any,
        *,
        experiment_id: str,
        plugin_name: str,
        downsample: int,
        run_tag_filter: RunTagFilter | None = None,
    ) -> dict[str, dict[str, list[Any]]]:
        """References to the profiles of all ranks, by run and tag."""
        wanted: Collection[str] | None = run_tag_filter.runs if run_tag_filter else None
        return {
            name: {
                str(Tag(run.session, rank)): [
                    BlobSequenceDatum(step=run.cycle, wall_time=0.0, values=(BlobReference(blob_key=f"{rank} {name}"),))
                ]
                for rank in run.ranks
            }
            for name, run in self._runs.items()
            if wanted is None or name in wanted
        }

    def read_blob(self, context: Any, *, blob_key: str) -> bytes:
        """A stored profile."""
        rank, name = blob_key.split(" ", 1)
        return self._runs[name].ranks[int(rank)]
