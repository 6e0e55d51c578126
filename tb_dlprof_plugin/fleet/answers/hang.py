"""What dumps of PyTorch's flight recorder say about a job that stands still: the ranks that it waits for."""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.fleet.flight_recorder import FlightRecord, contradictions, ranks_behind
from tb_dlprof_plugin.fleet.job import Job, MatchedShare
from tb_dlprof_plugin.fleet.world import missing_of, world_of
from tb_dlprof_plugin.model.formatting import listed


def hang_notes(records: Sequence[FlightRecord]) -> list[str]:
    """A sentence for each rank that others wait for, and for each call about which members disagree."""
    notes = [
        f"Rank {behind.rank} has not made call {behind.sequence} of {behind.group or 'its group'}, which ranks "
        f"{listed(behind.waiting)} wait for, directly or through others."
        for behind in ranks_behind(records)
    ]
    return notes + [
        f"{its.word}: ranks {listed(its.ranks)} disagree about call {its.sequence} of {its.group or 'their group'}."
        for its in contradictions(records)
    ]


def job_of_dumps(records: Sequence[FlightRecord]) -> Job:
    """A job of which there are dumps and no recording: who is behind, and nothing about times."""
    ranks = sorted(record.rank for record in records)
    named = {rank for record in records for own in record.members.values() for rank in own}
    world = world_of((), [*ranks, *named])
    behind = [late.rank for late in ranks_behind(records)]
    return Job(
        world_size=world,
        ranks=ranks,
        missing_ranks=missing_of(world, ranks),
        sentence=f"The job stands still and waits for rank{'s' if len(behind) > 1 else ''} {listed(behind)}."
        if behind
        else "The dumps show no rank that others wait for.",
        collectives=MatchedShare(contradictions=len(contradictions(records)), by="sequence"),
        notes=[*hang_notes(records), "Dumps of the flight recorder hold calls, no times on the GPU."],
    )
