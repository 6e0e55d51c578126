"""Which stored profile of a run is meant: one that is named in part or not at all, and those of its other ranks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tb_dlprof_plugin.model.natural_order import natural_order
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.run_ref import RunRef

MOST_RANKS = 8
"""Of a training that are looked at together: reading more would take longer than a page may."""


@dataclass(frozen=True, slots=True)
class StoredBlob(ABC):
    """A profile that is stored and not read yet.

    ``key`` names these very bytes: a profile that is recorded over them has another key.
    """

    ref: RunRef
    key: Hashable

    @abstractmethod
    def read(self) -> bytes:
        """The bytes, as `codec.encode` made them."""

    def read_facts(self) -> bytes | None:
        """What is stored with it for answers about all ranks of a job, as `fleet.facts_codec` made it; None without."""
        return None


class NoSuchProfile(ProfileError):
    """There is no profile of the run, session, rank or cycle that is asked for; the message is one sentence."""


class _Named(Protocol):
    @property
    def ref(self) -> RunRef: ...


_Blob = TypeVar("_Blob", bound=_Named)


def newest(blobs: Iterable[_Blob]) -> _Blob | None:
    """Of the newest session the lowest rank, of that the last cycle; of one recorded twice what was written last."""
    ordered = enumerate(blobs)
    chosen = max(
        ordered, key=lambda one: (one[1].ref.session, -one[1].ref.rank, one[1].ref.cycle, one[0]), default=None
    )
    return None if chosen is None else chosen[1]


def choose(
    blobs: Iterable[_Blob],
    run: str,
    session: str | None = None,
    rank: int | None = None,
    cycle: int | None = None,
    any_session: bool = False,
) -> _Blob:
    """The profile of a run with these parts; each part that is not given is chosen as `newest` chooses.

    Args:
        blobs: of the run.
        run: its name, for the error.
        session: by default the newest, even where an older one has the rank or cycle that is asked for.
        rank: by default the lowest.
        cycle: by default the last.
        any_session: without a session, search all of them for the rank or cycle, as commands do.

    Raises:
        NoSuchProfile: none fits; the sentence names the first part that is not there.
    """
    of_run = list(blobs)
    first = newest(of_run)
    if first is None:
        raise NoSuchProfile(f"Run {run!r} holds no profile; check the run's name or reload the data.")
    chosen = first.ref.session if session is None else session
    any_session = any_session and session is None
    of_session = of_run if any_session else [one for one in of_run if one.ref.session == chosen]
    of_rank = [one for one in of_session if rank in (None, one.ref.rank)]
    lowest = newest(of_rank)
    if lowest is None:
        what = f"session {session!r}" if rank is None else f"rank {rank} in session {chosen!r}"
        raise NoSuchProfile(f"Run {run!r} has no {what}; pick another in the list.")
    of_cycle = [
        one for one in of_rank if cycle in (None, one.ref.cycle) and (any_session or one.ref.rank == lowest.ref.rank)
    ]
    found = newest(of_cycle)
    if found is None:
        raise NoSuchProfile(f"Run {run!r} has no cycle {cycle}; pick another in the list.")
    return found


def sessions_of(blobs: Iterable[_Named]) -> list[str]:
    """The sessions of a run, newest first: their names sort by time."""
    return sorted({one.ref.session for one in blobs}, reverse=True)


def newest_of_runs(blobs: Iterable[_Blob]) -> list[_Blob]:
    """One profile for each run that has any, in natural order of the runs' names."""
    runs: dict[str, list[_Blob]] = {}
    for one in blobs:
        runs.setdefault(one.ref.run, []).append(one)
    return [found for run in sorted(runs, key=natural_order) if (found := newest(runs[run]))]


def newest_of_ranks(blobs: Iterable[_Blob]) -> list[_Blob]:
    """One profile for each rank, by rank: processes that a script starts by itself may have sessions of their own."""
    ranks: dict[int, list[_Blob]] = {}
    for one in blobs:
        ranks.setdefault(one.ref.rank, []).append(one)
    return [found for rank in sorted(ranks) if (found := newest(ranks[rank]))]


def common_cycle(cycles: Mapping[int, Iterable[int]]) -> int | None:
    """The cycle that most ranks have, of several the newest: while a training runs, some ranks are further than others.

    Args:
        cycles: by rank.
    """
    counts = Counter(cycle for of_rank in cycles.values() for cycle in set(of_rank))
    return max(counts, key=lambda cycle: (counts[cycle], cycle), default=None)


def of_common_cycle(blobs: Iterable[_Blob]) -> list[_Blob]:
    """Of one session, by rank: the profile of `common_cycle`, or of a rank without it the newest."""
    ranks: dict[int, list[_Blob]] = {}
    for one in blobs:
        ranks.setdefault(one.ref.rank, []).append(one)
    cycle = common_cycle({rank: [one.ref.cycle for one in found] for rank, found in ranks.items()})
    chosen = ([one for one in ranks[rank] if one.ref.cycle == cycle] or ranks[rank] for rank in sorted(ranks))
    return [found for one in chosen if (found := newest(one))]


def ranks_together(blobs: Iterable[_Blob], own: _Named) -> list[_Blob]:
    """The profiles of ``own``'s session and cycle that are looked at together, by rank, ``own``'s rank among them.

    They are `MOST_RANKS` at most, evenly spread; none where there is no other rank.
    """
    cycle = (own.ref.run, own.ref.session, own.ref.cycle)
    same = {one.ref.rank: one for one in blobs if (one.ref.run, one.ref.session, one.ref.cycle) == cycle}
    others = sorted(same.keys() - {own.ref.rank})
    return [same[rank] for rank in sorted({own.ref.rank, *_evenly_spread(others)})] if others else []


def _evenly_spread(ranks: Sequence[int]) -> list[int]:
    count = min(len(ranks), MOST_RANKS - 1)
    return [ranks[index * len(ranks) // count] for index in range(count)]
