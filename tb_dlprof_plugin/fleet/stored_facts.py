"""The facts of ranks as they are stored with profiles; of a profile without them they are computed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from tb_dlprof_plugin.fleet.facts_codec import FORMAT, decode_facts, encode_facts
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.choice import StoredBlob
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.profile_store import read_profile


def facts_to_store(view: ProfileView) -> bytes | None:
    """The facts to store with a profile; None of a process that is alone and does not communicate."""
    facts = facts_of_profile(view)
    return encode_facts(facts) if facts.world_size > 1 or len(facts.collectives) else None


def stored_facts(blob: StoredBlob) -> RankFacts:
    """The facts of a stored profile, which is opened only where they are missing, or an earlier version wrote less.

    Raises:
        ProfileError: neither can be read.
    """
    data = blob.read_facts()
    if data is not None:
        with contextlib.suppress(ProfileError):
            return decode_facts(data, FORMAT)
    try:
        return facts_of_profile(ProfileView(read_profile(blob)))
    except ProfileError:
        if data is None:
            raise
        return decode_facts(data)


def facts_of_job(blobs: Iterable[StoredBlob]) -> tuple[list[RankFacts], list[str]]:
    """The facts of the ranks of a job, by rank, and a sentence for each that cannot be read.

    Args:
        blobs: one profile for each rank, as `store.choice.newest_of_ranks` chooses.
    """
    found: dict[int, RankFacts] = {}
    unreadable: list[str] = []
    for blob in blobs:
        try:
            facts = stored_facts(blob)
        except ProfileError as error:
            unreadable.append(f"Rank {blob.ref.rank} cannot be read: {error}.")
        else:
            found.setdefault(facts.rank, facts)
    return [found[rank] for rank in sorted(found)], unreadable


def missing_ranks(facts: Sequence[RankFacts]) -> list[int]:
    """Ranks of the job that are not among these; none where its size is not known."""
    size = max((one.world_size for one in facts), default=0)
    return sorted(set(range(size)) - {one.rank for one in facts})
