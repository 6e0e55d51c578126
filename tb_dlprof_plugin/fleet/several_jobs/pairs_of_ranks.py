"""Which ranks of two jobs correspond, and with which weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN

PairedBy = Literal["mesh", "rank", "share"]


@dataclass(frozen=True, slots=True)
class Counterpart:
    """Of a rank of the candidate those of the base, with weights that sum to 1."""

    rank: int
    base: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class PairedRanks:
    """``by`` mesh: by the place in each dimension; by rank: by number; by share: by position among all ranks, where the
    jobs have other numbers of ranks. Ranks without counterpart are left out and named in ``alone_base`` and
    ``alone_candidate``.
    """

    by: PairedBy
    pairs: tuple[Counterpart, ...]
    alone_base: tuple[int, ...] = ()
    alone_candidate: tuple[int, ...] = ()


def paired_ranks(base: Job, candidate: Job) -> PairedRanks:
    """The ranks that have an account, each with its counterpart."""
    before, after = [row.rank for row in base.account], [row.rank for row in candidate.account]
    if base.world_size != candidate.world_size:
        return PairedRanks("share", _by_share(before, after))
    places, others = _places(base), _places(candidate)
    if base.mesh and base.mesh == candidate.mesh and places is not None and others is not None:
        at = {place: rank for rank, place in places.items() if rank in before}
        found = {rank: at[others[rank]] for rank in after if others[rank] in at}
        return _paired("mesh", before, after, found)
    return _paired("rank", before, after, {rank: rank for rank in after if rank in set(before)})


def _paired(by: PairedBy, before: Sequence[int], after: Sequence[int], found: dict[int, int]) -> PairedRanks:
    used = set(found.values())
    return PairedRanks(
        by,
        tuple(Counterpart(rank, ((other, 1.0),)) for rank, other in found.items()),
        tuple(rank for rank in before if rank not in used),
        tuple(rank for rank in after if rank not in found),
    )


def _places(job: Job) -> dict[int, tuple[int, ...]] | None:
    """The place of each rank; None where one is unknown or two ranks have the same."""
    places = dict(zip(job.ranks, job.mesh_places, strict=True))
    if any(UNKNOWN in place for place in places.values()) or len(set(places.values())) < len(places):
        return None
    return places


def _by_share(before: Sequence[int], after: Sequence[int]) -> tuple[Counterpart, ...]:
    """Each rank with those that lie at the same part of the list of ranks, so that each list counts whole."""
    if not before:
        return ()
    pairs, own, other = [], len(after), len(before)
    for position, rank in enumerate(after):
        # In units of 1 / (own * other), so that the borders are exact.
        low, high = position * other, (position + 1) * other
        first, last = low // own, -(-high // own)
        weights = [(before[at], (min(high, (at + 1) * own) - max(low, at * own)) / other) for at in range(first, last)]
        pairs.append(Counterpart(rank, tuple(weights)))
    return tuple(pairs)
