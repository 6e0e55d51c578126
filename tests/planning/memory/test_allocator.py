"""The replay of the caching allocator, rule by rule."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_dlprof_plugin.model.plan_request import PlanError
from tb_dlprof_plugin.planning.memory.allocator import (
    MIB,
    AllocatorSettings,
    CachingAllocator,
    OutOfMemory,
    rounded,
    settings_of,
)


@pytest.mark.parametrize(
    ("requested", "divisions", "taken"),
    [(1, 0, 512), (512, 0, 512), (513, 0, 1024), (1200 * 1024, 4, 1280 * 1024), (1 << 20, 4, 1 << 20)],
)
def test_requests_are_rounded_up(requested: int, divisions: int, taken: int) -> None:
    assert rounded(requested, divisions) == taken


@pytest.mark.parametrize(
    ("requested", "segment"),
    [
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 1, 12 * MIB),
    ],
)
def test_the_segment_depends_on_the_request(requested: int, segment: int) -> None:
    allocator = CachingAllocator()
    allocator.allocate(requested)
    assert allocator.reserved == segment


def test_a_large_block_keeps_a_rest_of_up_to_one_mib() -> None:
    allocator = CachingAllocator()
    allocator.release(allocator.allocate(12 * MIB))
    assert allocator.allocate(11 * MIB).size == 12 * MIB
    allocator = CachingAllocator()
    allocator.release(allocator.allocate(14 * MIB))
    assert allocator.allocate(11 * MIB).size == 11 * MIB
    assert allocator.reserved == 14 * MIB


def test_the_smallest_free_block_that_holds_it_is_taken() -> None:
    allocator = CachingAllocator()
    blocks = [allocator.allocate(size * MIB) for size in (40, 20, 30)]
    for block in blocks:
        allocator.release(block)
    assert allocator.allocate(19 * MIB).address == blocks[1].address
    assert allocator.allocate(19 * MIB).address == blocks[2].address


def test_freed_neighbours_are_one_block_again() -> None:
    allocator = CachingAllocator()
    first, second = allocator.allocate(6 * MIB), allocator.allocate(6 * MIB)
    allocator.release(first)
    allocator.release(second)
    allocator.allocate(18 * MIB)
    assert allocator.reserved == 20 * MIB


def test_under_a_limit_free_segments_are_given_back_and_the_request_is_repeated() -> None:
    allocator = CachingAllocator(limit=40 * MIB)
    allocator.release(allocator.allocate(20 * MIB))
    allocator.allocate(30 * MIB)
    assert (allocator.reserved, allocator.retries, allocator.peak_reserved) == (30 * MIB, 1, 30 * MIB)


def test_a_segment_with_a_block_in_use_is_not_given_back() -> None:
    allocator = CachingAllocator(limit=40 * MIB)
    allocator.release(allocator.allocate(20 * MIB))
    allocator.allocate(2 * MIB)
    with pytest.raises(OutOfMemory):
        allocator.allocate(30 * MIB)
    assert allocator.retries == 1


def test_blocks_above_the_largest_split_stay_whole() -> None:
    allocator = CachingAllocator(AllocatorSettings(max_split_size=32 * MIB))
    allocator.release(allocator.allocate(64 * MIB))
    allocator.allocate(16 * MIB)
    assert allocator.reserved == 80 * MIB
    assert allocator.allocate(50 * MIB).size == 64 * MIB


def test_an_expandable_segment_grows_by_pages_where_it_ends() -> None:
    expandable, fixed = CachingAllocator(AllocatorSettings(expandable=True)), CachingAllocator()
    for allocator in (expandable, fixed):
        for size in (30, 50, 70):
            allocator.release(allocator.allocate(size * MIB))
    assert expandable.reserved == 80 * MIB
    assert fixed.reserved == 150 * MIB


def test_a_retry_gives_back_whole_pages_of_an_expandable_segment() -> None:
    allocator = CachingAllocator(AllocatorSettings(expandable=True), limit=80 * MIB)
    first, _ = allocator.allocate(50 * MIB), allocator.allocate(10 * MIB)
    allocator.release(first)
    allocator.allocate(55 * MIB)
    # Two of the three pages; the third has the block in use.
    assert (allocator.retries, allocator.reserved) == (1, 80 * MIB)


def test_settings_are_those_of_the_environment() -> None:
    assert settings_of("expandable_segments:True, max_split_size_mb:128") == AllocatorSettings(True, 128 * MIB)
    assert settings_of("roundup_power2_divisions:8,garbage_collection_threshold:0.8").power2_divisions == 8
    assert settings_of(None) == settings_of("") == AllocatorSettings()


@pytest.mark.parametrize("text", ["backend:cudaMallocAsync", "roundup_power2_divisions:[256:1,>:8]"])
def test_an_allocator_that_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(PlanError):
        settings_of(text)


@given(
    st.lists(st.tuples(st.integers(1, 40 * MIB), st.booleans()), max_size=60),
    st.booleans(),
    st.one_of(st.none(), st.integers(40 * MIB, 400 * MIB)),
)
def test_what_is_freed_is_there_again(requests: list[tuple[int, bool]], expandable: bool, limit: int | None) -> None:
    allocator = CachingAllocator(AllocatorSettings(expandable=expandable), limit)
    held = []
    for size, free_one in requests:
        if free_one and held:
            allocator.release(held.pop(size % len(held)))
        try:
            held.append(allocator.allocate(size))
        except OutOfMemory:
            break
        assert allocator.allocated == sum(block.size for block in held)
        assert allocator.allocated <= allocator.reserved <= (limit or allocator.reserved)
        spans = sorted((block.address, block.address + block.size) for block in held)
        assert all(stop <= start for (_, stop), (start, _) in itertools.pairwise(spans))
    for block in held:
        allocator.release(block)
    assert allocator.allocated == 0
