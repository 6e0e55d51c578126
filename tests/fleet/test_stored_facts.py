"""Facts that an earlier version stored: of a few ranks they are made again, of many they do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tb_dlprof_plugin.fleet.stored_facts import facts_of_job
from tb_dlprof_plugin.store.choice import StoredBlob
from tb_dlprof_plugin.store.codec import ProfileError
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
