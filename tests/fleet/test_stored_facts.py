"""Facts that an earlier version stored: of a few ranks they are made again, of many they do."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hostile.bombs import stored as hostile_facts

from tb_dlprof_plugin.fleet.facts_codec import decode_facts, encode_facts
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.fleet.stored_facts import facts_of_job
from tb_dlprof_plugin.store.choice import StoredBlob
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.facts_ahead import facts_ahead
from tb_dlprof_plugin.store.run_ref import RunRef

FACTS = gzip.decompress((Path(__file__).parent / "recorded" / "h200_ddp_even.rank1.facts.gz").read_bytes())
"""Of format 1."""


class Old(StoredBlob):
    """A profile with facts of an earlier version, that counts how often it is opened."""

    opened = 0

    def read_facts(self) -> bytes:
        return FACTS

    def read(self) -> bytes:
        Old.opened += 1
        raise ProfileError("it is damaged")


@pytest.mark.parametrize(("ranks", "opened"), [(2, 1), (1_000, 0)])
def test_profiles_of_many_ranks_are_not_opened_for_what_an_earlier_version_did_not_store(
    monkeypatch: pytest.MonkeyPatch, ranks: int, opened: int
) -> None:
    monkeypatch.setattr(Old, "opened", 0)
    found = facts_of_job([Old(RunRef("run", "s", 1, 0), "key")], ranks)
    # Where the profile is damaged, too, what was stored has to do.
    assert [one.rank for one in found.facts] == [1]
    assert not len(found.facts[0].gradients)
    assert Old.opened == opened


@dataclass(frozen=True, slots=True)
class WithFacts(StoredBlob):
    """Facts, or an error on reading them; the profile itself cannot be read."""

    facts: bytes | None

    def read_facts(self) -> bytes:
        if self.facts is None:
            raise ProfileError("the loader does not hand it out")
        return self.facts

    def read(self) -> bytes:
        raise ProfileError("it is damaged")


def test_a_rank_that_cannot_be_read_is_named_and_the_others_are_there(new_rank: Any) -> None:
    calls = [{"start": 100 * k, "end": 100 * k + 50} for k in range(4)]
    stored: list[bytes | None] = [encode_facts(new_rank(rank, calls, world_size=100)) for rank in range(100)]
    stored[3], stored[0], stored[70] = b"damaged", None, stored[70][:60]  # type: ignore[index]
    blobs = [WithFacts(RunRef("run", "s", rank, 0), rank, facts) for rank, facts in enumerate(stored)]
    for read in (blobs, list(facts_ahead(blobs))):
        found = facts_of_job(read, 100)
        assert [one.rank for one in found.facts] == [rank for rank in range(100) if rank not in (0, 3, 70)]
        assert [sentence[:8] for sentence in found.unreadable] == ["Rank 0 c", "Rank 3 c", "Rank 70 "]
        assert "does not hand it out" in found.unreadable[0]
        assert "damaged" in found.unreadable[1]


def test_ranks_that_ask_for_too_much_are_named_and_the_others_are_there(new_rank: Any) -> None:
    calls = [{"start": 100 * k, "end": 100 * k + 50} for k in range(400)]
    sound = {rank: encode_facts(new_rank(rank, calls, world_size=100)) for rank in range(0, 100, 2)}
    # Each would be let in alone.
    greedy = hostile_facts(strings=["", "Float", *map(str, range(45_000))])
    assert isinstance(decode_facts(greedy), RankFacts)
    blobs = [WithFacts(RunRef("run", "s", rank, 0), rank, sound.get(rank, greedy)) for rank in range(100)]
    found = facts_of_job(blobs, 100)
    assert set(sound) <= {0, *(one.rank for one in found.facts)}
    assert 45 <= len(found.unreadable) < 50
    assert all("takes, with the other ranks of its job, more memory than" in one for one in found.unreadable)


def test_earlier_cycles_take_no_room(new_rank: Any) -> None:
    facts = encode_facts(new_rank(0, [{"start": 100 * k, "end": 100 * k + 50} for k in range(400)]))
    sizes = [
        facts_of_job([WithFacts(RunRef("run", "s", 0, cycle), cycle, facts) for cycle in range(cycles)], 1).size
        for cycles in (2, 50)
    ]
    assert sizes[0] == sizes[1] > 400 * 15 * 8


def test_facts_are_read_several_at_a_time_and_come_in_order() -> None:
    together = threading.Barrier(4, timeout=10)

    class Slow(Old):
        def read_facts(self) -> bytes:
            together.wait()
            return str(self.ref.rank).encode()

    found = list(facts_ahead([Slow(RunRef("run", "s", rank, 0), rank) for rank in range(8)]))
    assert [one.read_facts() for one in found] == [str(rank).encode() for rank in range(8)]
    assert [one.ref.rank for one in found] == list(range(8))
