"""What a blob may take is in proportion to its size, and no blob of a job takes from the others."""

from __future__ import annotations

import gzip
import zlib

import pytest

from tb_dlprof_plugin.store.allowance import BYTES_PER_BYTE, GZIP, ZLIB, Allowance, JobAllowance, TooLarge

_ALWAYS, _BY_JOB = 8 << 20, 5 << 20


def test_a_blob_takes_what_its_size_allows_and_no_more() -> None:
    allowance = Allowance(1000)
    allowance.take(_ALWAYS + 1000 * BYTES_PER_BYTE)
    with pytest.raises(TooLarge, match="memory"):
        allowance.take(1)
    allowance.reset()
    allowance.take(1)


def test_what_a_blob_can_do_without_is_left_out() -> None:
    allowance = Allowance(0)
    assert [allowance.may_take(size) for size in (_ALWAYS + 1, _ALWAYS, 1)] == [False, True, False]


def test_rows_are_in_proportion_to_the_size() -> None:
    Allowance(400).check_rows(5_100, 4)
    with pytest.raises(TooLarge, match="5,101 rows in 400 bytes"):
        Allowance(400).check_rows(5_101, 4)


@pytest.mark.parametrize(("packing", "pack"), [(GZIP, gzip.compress), (ZLIB, zlib.compress)])
def test_all_that_a_blob_unpacks_to_is_bounded_together(packing: int, pack: object) -> None:
    half = pack(bytes(2 << 20))  # type: ignore[operator]
    allowance = Allowance(2 * len(half))
    assert [len(allowance.unpack(half, packing)) for _ in range(2)] == [2 << 20, 2 << 20]
    with pytest.raises(TooLarge, match="8 times"):
        allowance.unpack(pack(b"x"), packing)  # type: ignore[operator]
    with pytest.raises(ValueError, match="cut short"):
        Allowance(0).unpack(half[:-1], packing)
    with pytest.raises(ValueError, match="header"):
        Allowance(0).unpack(b"damaged", packing)


def test_greedy_ranks_take_nothing_from_the_others() -> None:
    job = JobAllowance()
    first, second, third = (Allowance(1000, job) for _ in range(3))
    first.take(_BY_JOB)
    with pytest.raises(TooLarge, match="other ranks"):
        second.take(_BY_JOB)
    for _ in range(1000):
        third.take(BYTES_PER_BYTE)


def test_what_is_dropped_is_given_back() -> None:
    job = JobAllowance()
    for _ in range(100):
        allowance = Allowance(1000, job)
        allowance.take(_BY_JOB)
        allowance.keep(300, shared=20)
        allowance.keep(0)
    # What blobs of other ranks may use stays.
    assert job.taken == 100 * 20
