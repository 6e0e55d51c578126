"""Hostile inputs of each kind that other tests do not try; a campaign counts each once and goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile import campaign, event_files, outcome
from hostile.campaign import Counts

from tb_dlprof_plugin.fleet.run_writer import write_run
from tb_dlprof_plugin.store.codec import decode, encode
from tb_dlprof_plugin.store.event_file import read_blobs

_SHORT = [
    ("event-files", 150), ("blobs", 250), ("requests", 80), ("names", 4), ("ranks", 10), ("several-jobs", 3),
    ("job-files", 20), ("databases", 30), ("xplanes", 30), ("trials", 60), ("plans", 10), ("exports", 1),
]  # fmt: skip
_LONG = [
    ("event-files", 20_000), ("blobs", 50_000), ("requests", 4_000), ("names", 200), ("traces", 4_000),
    ("ranks", 2_000), ("several-jobs", 500), ("job-files", 4_000), ("databases", 3_000), ("xplanes", 3_000),
    ("trials", 4_000), ("plans", 1_000), ("exports", 40),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "count"),
    [*_SHORT, *(pytest.param(*one, marks=[pytest.mark.long, pytest.mark.timeout(3600)]) for one in _LONG)],
)
def test_hostile_inputs_are_answered_or_refused_in_one_sentence(kind: str, count: int) -> None:
    found = campaign.try_block(kind, 0, count)
    assert found.faults == {}
    assert 0 < found.let_in <= found.tried == count


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "number"),
    [
        # Calls without a path, of a rank that is repaired to others which do nothing: minus infinity times 0.
        ("ranks", 5109),
        # A forecast of the step whose interval begins at 0 ms.
        ("several-jobs", 4),
        # A batch size and FLOPs of no training: five times the GPUs' peak.
        ("several-jobs", 479),
        # A GPU's compute capability of 2**32.
        ("databases", 2616),
        # An occupancy of 2**31 - 1 % in a stored profile.
        ("answers", 30_002_856),
        # A rank of -1 in a process group, which the stored profile was refused for.
        ("traces", 30_914_308),
        # A gain above 100 % in a stored trial.
        ("trials", 63),
        # Facts of a rank without a path to its calls, and with a step whose interval begins at infinity.
        ("blobs", 311_307),
        ("blobs", 857_621),
    ],
)
def test_inputs_that_broke_something_once_break_nothing(kind: str, number: int) -> None:
    assert campaign.attempt(kind, number).faults == []


def test_an_input_is_always_the_same() -> None:
    first, again = (campaign.source_of("traces", 7).random() for _ in range(2))
    assert first == again != campaign.source_of("traces", 8).random()


def test_a_campaign_goes_on_with_the_blocks_that_were_not_finished(tmp_path: Path) -> None:
    counts = {"names": Counts(next=2 * campaign.BLOCK["names"], unfinished=[0, campaign.BLOCK["names"]])}
    campaign.save(tmp_path, counts)
    again = campaign.load(tmp_path)["names"]
    assert again == counts["names"]
    assert campaign.block_to_try(again, "names", going=[0]) == campaign.BLOCK["names"]
    assert campaign.block_to_try(again, "names", going=[0, campaign.BLOCK["names"]]) == 2 * campaign.BLOCK["names"]
    assert again.unfinished == [0, campaign.BLOCK["names"], 2 * campaign.BLOCK["names"]]


def test_the_first_input_of_each_fault_is_kept() -> None:
    counts = Counts(faults={"a": [2, 50]})
    counts.add(Counts(tried=10, faults={"a": [1, 7], "b": [1, 9]}))
    assert counts.faults == {"a": [3, 7], "b": [1, 9]}
    assert "10" in campaign.table({"names": counts})


def test_an_event_file_out_of_its_gzip_becomes_the_same_file_again(tmp_path: Path) -> None:
    (profile, *_) = outcome.small_profiles()
    sound = write_run(tmp_path / "run", profile)
    changed = tmp_path / "again" / sound.name
    changed.parent.mkdir()
    changed.write_bytes(event_files.packed_again(event_files.unpacked(sound.read_bytes())))
    before, after = ([decode(one.blob) for one in read_blobs(path, "run")] for path in (sound, changed))
    assert len(before) == len(after) == 1
    assert encode(before[0]) == encode(after[0])
