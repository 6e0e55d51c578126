"""Facts are stored without loss, in little room, and damaged ones are refused."""

from __future__ import annotations

import dataclasses
import gzip
import os
import random
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tb_dlprof_plugin.fleet.facts_codec import decode_facts, decode_ranks, encode_facts
from tb_dlprof_plugin.fleet.packed_columns import SharedParts
from tb_dlprof_plugin.fleet.rank_facts import (
    NO_PATH,
    Collectives,
    Gradients,
    Group,
    KernelTimes,
    RankFacts,
    StepLength,
    Steps,
)
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.store.codec import ProfileError

NewRank = Callable[..., RankFacts]


def assert_same(one: RankFacts, two: RankFacts) -> None:
    for field in dataclasses.fields(RankFacts):
        mine, other = getattr(one, field.name), getattr(two, field.name)
        if isinstance(mine, (Steps, Collectives, Gradients, KernelTimes)):
            for column in dataclasses.fields(mine):
                assert np.array_equal(getattr(mine, column.name), getattr(other, column.name)), column.name
        else:
            assert mine == other, field.name


def paths(source: np.random.Generator, work: Ints, first: int) -> dict[str, Ints]:
    """Those of the calls from ``first`` on are kept. The GPU has small gaps in its work."""
    count = len(work)
    known = np.arange(count) >= first
    host = source.lognormal(11, 0.5, count)
    gpu = work + source.lognormal(7, 1, count)
    columns = {
        "gpu_ns": gpu,
        "gpu_after_host_ns": host + source.lognormal(9, 1, count),
        "host_ns": host,
        "unprofiled_gpu_ns": gpu,
        "unprofiled_gpu_after_host_ns": 0.65 * host + source.lognormal(9, 1, count),
        "unprofiled_host_ns": 0.65 * host,
        "behind_ns": np.where(np.arange(count) % 4 == 0, gpu, 0),
        "contended_ns": np.where(source.random(count) < 0.5, 0.1 * gpu, 0),
    }
    return {name: np.where(known, column // 1000 * 1000, NO_PATH).astype(np.int64) for name, column in columns.items()}


def large(new_rank: NewRank) -> RankFacts:
    """Ten steps of 2,000 collectives with times as scattered as they get."""
    source, each, count = np.random.default_rng(1), 2_000, 20_000
    place = np.arange(count) % each
    duration = source.lognormal(11, 1, count).astype(np.int64) // 32 * 32
    work = np.where(place % 3 == 0, 0, source.lognormal(11.5, 1, count).astype(np.int64) // 32 * 32)
    short, long = source.integers(500, 2000, count), source.lognormal(9, 1, count).astype(np.int64)
    idle = np.where(place % 3 == 0, 0, np.where(source.random(count) < 0.5, short, long))
    stop = np.cumsum(work + idle + duration)
    start = stop - duration
    hidden = np.where(source.random(count) < 0.5, 0, (duration * source.random(count)).astype(np.int64))
    calls = Collectives(
        iteration=np.arange(count) // each,
        group=place % 4,
        operation=1 + place % 3,
        sequence=np.arange(count) // 4,
        bytes=source.integers(10**6, 10**8, 60)[place % 60],
        dtype=np.ones(count, dtype=np.int64),
        peer=np.full(count, -1),
        start_ns=start,
        duration_ns=duration,
        exposed_ns=duration - hidden,
        work_ns=work,
        idle_ns=idle,
        launched_ns=start - source.lognormal(13, 1, count).astype(np.int64) // 1000 * 1000,
        module=place % 60,
        stream=7 + place % 3,
        **paths(source, work, count - each),
    )
    ends = stop[each - 1 :: each]
    columns = {field.name: source.integers(10**6, 10**9, 10) for field in dataclasses.fields(Steps)}
    columns |= {"number": np.arange(5, 15), "start_ns": np.append(0, ends[:-1]), "end_ns": ends}
    return dataclasses.replace(
        new_rank(0, []),
        steps=Steps(**columns),
        step_length=StepLength(1.5, 1.25, 2.0, "measured"),
        collectives=calls,
        groups=tuple(Group(str(k), "mesh_dp", tuple(range(k, 4096, 4)), "dp") for k in range(4)),
        kernels=KernelTimes(*(source.integers(0, 2**62, 200) for _ in range(1)), np.arange(200), np.arange(200)),
        strings=tuple(f"layers.{k}" for k in range(70)),
        mesh=(("pp", 1), ("dp", 3)),
        notes=("a note",),
    )


def test_equal_facts_are_equal_bytes_in_every_process() -> None:
    # Each process has its own order of sets of texts.
    script = (
        "import sys, hashlib; sys.path.insert(0, sys.argv[1]); from conftest import make_rank; "
        "from test_facts_codec import large; from tb_dlprof_plugin.fleet.facts_codec import encode_facts; "
        "print(hashlib.sha256(encode_facts(large(make_rank))).hexdigest())"
    )
    command = [sys.executable, "-c", script, os.path.dirname(__file__)]
    made = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("1", "2")
    }
    assert len(made) == 1


def test_ten_steps_of_2000_collectives_take_200_kb(new_rank: NewRank) -> None:
    facts = large(new_rank)
    data = encode_facts(facts)
    assert len(data) <= 200_000
    assert_same(facts, decode_facts(data))


def test_calls_that_overlap_and_what_is_unknown_come_back(new_rank: NewRank) -> None:
    calls = [
        {"start": 500, "end": 9_000, "step": 0},
        {"start": 700, "end": 800, "step": 0, "group": -1, "bytes": -1},
        {"start": 2_000, "end": 3_000, "step": 1, "sequence": 2**40, "peer": 3},
        {"start": 8_900, "end": 9_500, "step": 0},
    ]
    facts = new_rank(1, calls, steps=(3, 4))
    lost = np.array([-1, 600, -1, 8_000])
    facts = dataclasses.replace(facts, collectives=dataclasses.replace(facts.collectives, launched_ns=lost))
    assert_same(facts, decode_facts(encode_facts(facts)))


def test_facts_that_shrink_more_than_any_recorded_ones_come_back(new_rank: NewRank) -> None:
    facts = new_rank(0, [{"start": 100 * k, "end": 100 * k + 50} for k in range(20_000)])
    assert_same(facts, decode_facts(encode_facts(facts)))


def test_of_facts_that_are_refused_nothing_is_shared(new_rank: NewRank) -> None:
    shared = SharedParts()
    groups = [Group("0", "", (0, 1, 2), "dp")]
    backwards = dataclasses.replace(new_rank(0, [{"start": 100, "end": 50}], groups=groups), rank=3)
    assert isinstance(decode_ranks([encode_facts(backwards)], shared=shared)[0], ProfileError)
    assert shared == SharedParts()
    assert decode_facts(encode_facts(new_rank(0, [], groups=groups)), shared=shared).groups == tuple(groups)
    assert list(shared.members.values()) == [(0, 1, 2)]


def test_groups_with_more_members_than_there_is_room_for_have_none(new_rank: NewRank) -> None:
    groups = [Group(str(k), "", tuple(range(k, 2**17)), "dp") for k in range(4)]
    found = decode_facts(encode_facts(new_rank(0, [], groups=groups)))
    assert [len(group.members) for group in found.groups] == [2**17, 0, 0, 0]


def test_facts_without_calls_come_back(new_rank: NewRank) -> None:
    facts = new_rank(0, [])
    assert_same(facts, decode_facts(encode_facts(facts)))


def test_the_calls_of_single_steps_are_read_alone(new_rank: NewRank) -> None:
    facts = large(new_rank)
    found = decode_facts(encode_facts(facts), (7, 9))
    rows = np.flatnonzero(np.isin(facts.steps.number[facts.collectives.iteration], (7, 9)))
    chosen = {name: getattr(facts.collectives, name)[rows] for name in Collectives.__dataclass_fields__}
    assert_same(dataclasses.replace(facts, collectives=Collectives(**chosen)), found)


def test_ranks_that_are_decoded_together_are_as_alone(new_rank: NewRank) -> None:
    """Of several sizes, of earlier formats, in no order of steps, without calls, and some damaged."""
    calls = [{"start": 100 * k, "end": 100 * k + 50, "step": k % 2} for k in range(6)]
    before = gzip.decompress((Path(__file__).parent / "recorded" / "h200_ddp_even.rank0.facts.gz").read_bytes())
    stored = [
        encode_facts(large(new_rank)),
        encode_facts(new_rank(0, calls, steps=(3, 4))),
        before,
        encode_facts(new_rank(0, [])),
        encode_facts(new_rank(2, sorted(calls, key=lambda one: one["step"]), steps=(3, 4))),
    ]
    for numbers in (None, (4,)):
        shared = SharedParts()
        for data, found in zip(stored, decode_ranks(stored, numbers, shared), strict=True):
            assert not isinstance(found, ProfileError)
            assert_same(decode_facts(data, numbers), found)
    with_damaged = decode_ranks([stored[0], stored[1][:-9], stored[2]])
    assert [isinstance(one, ProfileError) for one in with_damaged] == [False, True, False]
    assert decode_ranks([]) == []


def test_calls_in_no_order_of_steps_are_chosen_too(new_rank: NewRank) -> None:
    calls = [{"start": 100 * k, "end": 100 * k + 50, "step": k % 2} for k in range(6)]
    found = decode_facts(encode_facts(new_rank(0, calls, steps=(3, 4))), (4,))
    assert found.collectives.start_ns.tolist() == [100, 300, 500]


def test_damaged_facts_are_refused_or_harmless(new_rank: NewRank) -> None:
    data = encode_facts(new_rank(0, [{"start": 100 * k, "end": 100 * k + 50} for k in range(20)]))
    kind, head, steps = msgspec.msgpack.decode(data)
    plain, source = [zlib.decompress(part) for part in (head, *steps)], random.Random(5)
    refused = 0
    for _ in range(300):
        broken = [bytearray(part) for part in plain]
        for _ in range(source.choice((1, 2, 8))):
            part = source.choice(broken)
            part[source.randrange(len(part))] = source.randrange(256)
        first, *others = (zlib.compress(bytes(part)) for part in broken)
        try:
            found: Any = decode_facts(msgspec.msgpack.encode([kind, first, others]))
        except ProfileError:
            refused += 1
        else:
            assert found.collectives.iteration.max(initial=0) < len(found.steps.number)
            assert found.collectives.group.max(initial=-1) < len(found.groups)
    assert refused > 30


def test_facts_of_the_format_before_are_read() -> None:
    """Those of the recorded jobs in this folder."""
    data = gzip.decompress((Path(__file__).parent / "recorded" / "h200_ddp_even.rank0.facts.gz").read_bytes())
    facts = decode_facts(data)
    assert len(facts.collectives) > 10
    assert_same(facts, decode_facts(encode_facts(facts)))


@pytest.mark.parametrize("data", [b"", b"x" * 40, zlib.compress(b"\x90")])
def test_other_bytes_are_no_facts(data: bytes) -> None:
    with pytest.raises(ProfileError, match="facts are damaged"):
        decode_facts(data)
