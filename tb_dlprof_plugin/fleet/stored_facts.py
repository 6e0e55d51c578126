"""The facts of ranks as they are stored with profiles; of a profile without them they are computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tb_dlprof_plugin.fleet.chosen_steps import steps_with_room, with_calls_of
from tb_dlprof_plugin.fleet.facts_check import sizes_of_parts
from tb_dlprof_plugin.fleet.facts_codec import FORMAT, OtherFormat, decode_ranks, encode_facts, too_large
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.packed_columns import SharedParts
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.allowance import Allowance, JobAllowance, TooLarge
from tb_dlprof_plugin.store.choice import StoredBlob, common_cycle
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.reclassify import opened

_CYCLES = 2
"""Of each rank that are held: ranks are at most one recording apart."""
_TOGETHER, _MOST_TOGETHER = 64, 1_000_000
"""Ranks that are decoded together, and bytes of their facts, which are unpacked to some twenty times as many."""
_OPENED = 64
"""Ranks of a job whose profiles are opened where an earlier version stored less: each takes some tenths of a second."""


class _Stored(NamedTuple):
    """A profile with its stored facts, or why they cannot be read; None without any."""

    blob: StoredBlob
    data: bytes | ProfileError | None
    allowance: Allowance


def facts_to_store(view: ProfileView) -> bytes | None:
    """The facts to store with a profile; None of a process that is alone and does not communicate."""
    facts = facts_of_profile(view)
    return encode_facts(facts) if facts.world_size > 1 or len(facts.collectives) else None


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What is stored of the ranks of a job.

    Attributes:
        facts: of each rank, by rank.
        unreadable: a sentence for each that cannot be read.
        numbers: of the steps whose calls are among the facts; None: of all.
        size: bytes of memory that the facts take.
    """

    facts: list[RankFacts]
    unreadable: list[str]
    numbers: Ints | None = None
    size: int = 0


def stored_facts(
    blob: StoredBlob, numbers: Ints | None = None, shared: SharedParts | None = None, oldest: int = FORMAT
) -> RankFacts:
    """The facts of a stored profile, which is opened only where they are missing, or an earlier version wrote less.

    Args:
        blob: the profile.
        numbers: of the steps whose calls are wanted; all by default.
        shared: parts of other ranks, which take the place of equal ones of this.
        oldest: format of the stored facts that will do.

    Raises:
        ProfileError: neither can be read.
    """
    (found,) = _stored_facts([_stored(blob, None)], numbers, shared, oldest)
    if isinstance(found, ProfileError):
        raise found
    return found


def _stored(blob: StoredBlob, of_job: JobAllowance | None) -> _Stored:
    try:
        data = blob.read_facts()
    except ProfileError as error:
        return _Stored(blob, error, Allowance(0, of_job))
    return _Stored(blob, data, Allowance(len(data or b""), of_job))


def _stored_facts(
    stored: Sequence[_Stored],
    numbers: Ints | None,
    shared: SharedParts | None,
    oldest: int,
) -> list[RankFacts | ProfileError]:
    """`stored_facts` of profiles with what is stored of each."""
    data_of = {index: one.data for index, one in enumerate(stored) if isinstance(one.data, bytes)}
    allowances = [stored[index].allowance for index in data_of]
    decoded = iter(decode_ranks(list(data_of.values()), numbers, shared, oldest, allowances))
    result: list[RankFacts | ProfileError] = []
    for blob, data, allowance in stored:
        if isinstance(data, ProfileError):
            result.append(data)
            continue
        found = None if data is None else next(decoded)
        if isinstance(found, RankFacts):
            result.append(found)
            continue
        try:
            result.append(_of_profile(blob, numbers, allowance))
        except ProfileError as error:
            if data is not None and isinstance(found, OtherFormat):
                # Less than today's version stores has to do.
                (found,) = decode_ranks([data], numbers, shared, 1, [allowance])
            result.append(found or error)
    return result


def _of_profile(blob: StoredBlob, numbers: Ints | None, allowance: Allowance) -> RankFacts:
    """The facts that are made of the profile itself.

    Raises:
        ProfileError: it cannot be read, or they take too much.
    """
    data = blob.read()
    allowance.grow(len(data))
    facts = facts_of_profile(ProfileView(opened(data)))
    if numbers is not None:
        facts = with_calls_of(facts, numbers)
    try:
        allowance.take(sum(sizes_of_parts(facts).values()))
    except TooLarge as error:
        raise too_large(error) from None
    return facts


def facts_of_job(blobs: Iterable[StoredBlob], ranks: int, numbers: Ints | None = None) -> JobFacts:
    """The facts of the ranks of a job: of the newest session the newest cycle that most ranks have.

    A rank without it has its last one: while a training runs, some ranks are further than others. Of a job of many
    ranks what an earlier version stored will do.

    Of a job of many ranks the calls of a few steps are read (`chosen_steps`).

    Args:
        blobs: profiles of the job. They are taken one after the other, and few are held at a time.
        ranks: about how many there are, for a recording that does not say its world size.
        numbers: of the steps whose calls are wanted; by default as many as there is room for.
    """
    allowance = JobAllowance()
    found, numbers = _read(blobs, ranks, numbers, allowance)
    facts = [one for one in found.values() if isinstance(one, RankFacts)]
    by_rank: dict[int, RankFacts] = {}
    for one in facts:
        by_rank.setdefault(one.rank, one)
    unreadable = [one for one in found.values() if isinstance(one, str)]
    return JobFacts([by_rank[rank] for rank in sorted(by_rank)], unreadable, numbers, allowance.taken)


def _read(
    blobs: Iterable[StoredBlob], ranks: int, numbers: Ints | None, of_job: JobAllowance
) -> tuple[dict[int, RankFacts | str], Ints | None]:
    """The facts or an error by stored rank, in their order, and the steps whose calls they have."""
    shared = SharedParts()
    allowances: dict[tuple[str, int], dict[int, Allowance]] = {}
    oldest = FORMAT if ranks <= _OPENED else 1
    chosen = numbers is not None
    # By session, since which one is meant shows at the end; of each rank its last two cycles.
    newest: dict[str, dict[int, dict[int, RankFacts | str]]] = {}
    for stored in _batches(_wanted(blobs, newest), of_job):
        found = _stored_facts(stored, numbers, shared, oldest)
        if not chosen:
            first = next((one for one in found if isinstance(one, RankFacts)), None)
            if first is not None:
                chosen, numbers = True, _steps_with_room(first, ranks)
                if numbers is not None:
                    found = [with_calls_of(one, numbers) if isinstance(one, RankFacts) else one for one in found]
        for (blob, _, allowance), facts in zip(stored, found, strict=True):
            ref = blob.ref
            cycles = newest.setdefault(ref.session, {}).setdefault(ref.rank, {})
            cycles[ref.cycle] = (
                f"Rank {ref.rank} cannot be read: {facts}." if isinstance(facts, ProfileError) else facts
            )
            of_cycles = allowances.setdefault((ref.session, ref.rank), {})
            if ref.cycle in of_cycles:  # recorded again
                of_cycles[ref.cycle].keep(0)
            of_cycles[ref.cycle] = allowance
            if len(cycles) > _CYCLES:
                del cycles[min(cycles)]
                of_cycles.pop(min(of_cycles)).keep(0)
    of_newest = newest[max(newest)] if newest else {}
    read = {rank: [at for at, one in of.items() if isinstance(one, RankFacts)] for rank, of in of_newest.items()}
    cycle = common_cycle(read)
    return {rank: of[cycle if cycle in of else max(of)] for rank, of in sorted(of_newest.items())}, numbers


def _steps_with_room(first: RankFacts, ranks: int) -> Ints | None:
    """Of the steps of a job those that it has room for, by its first rank; None: all."""
    count = min(first.world_size, ranks) if first.world_size > 0 else ranks
    return steps_with_room(first, count * len(first.collectives), np.unique(first.steps.number))


def _wanted(
    blobs: Iterable[StoredBlob], newest: dict[str, dict[int, dict[int, RankFacts | str]]]
) -> Iterator[StoredBlob]:
    """Without cycles that are older than those that were read."""
    for blob in blobs:
        cycles = newest.get(blob.ref.session, {}).get(blob.ref.rank, {})
        if len(cycles) < _CYCLES or blob.ref.cycle >= min(cycles):
            yield blob


def _batches(blobs: Iterable[StoredBlob], of_job: JobAllowance) -> Iterator[list[_Stored]]:
    """The profiles with what is stored of each, as many as can be decoded and held together.

    The first is alone: it says which steps' calls are wanted of the others.
    """
    batch: list[_Stored] = []
    size, most = 0, 1
    for blob in blobs:
        batch.append(_stored(blob, of_job))
        data = batch[-1].data
        size += len(data) if isinstance(data, bytes) else _MOST_TOGETHER
        if len(batch) >= most or size >= _MOST_TOGETHER:
            yield batch
            batch, size, most = [], 0, _TOGETHER
    if batch:
        yield batch
