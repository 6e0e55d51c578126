"""The buffers of reductions: the formula against what torch 2.11 allocated on an H200 with 132 multiprocessors."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.planning.memory.reductions import reductions_of, threads_per_sm

THREADS = 132 * threads_per_sm((9, 0))


@pytest.mark.parametrize(
    ("shape", "batch", "kept", "recorded", "twice"),
    [
        # Bias gradients of linear layers: recorded with a batch and with twice as many samples.
        ((8192, 2048), 8192, 2048, 134_217_728, 138_412_032),
        ((4096, 2048), 16, 2048, 67_108_864, 134_217_728),
        ((12544, 1152), 64, 1152, 115_605_504, 138_608_640),
        ((200704, 768), 64, 768, 138_412_032, 154_140_672),
        ((200704, 192), 64, 192, 103_809_024, 103_809_024),
    ],
)
def test_buffer_of_a_sum_over_rows_is_what_was_allocated(
    shape: tuple[int, int], batch: int, kept: int, recorded: int, twice: int
) -> None:
    found = next(one for one in reductions_of(shape, batch, THREADS) if one.outputs == kept and not one.contiguous)
    # Blocks of more than 1 MiB keep up to as much behind the request.
    assert 0 <= recorded - found.bytes() <= 1 << 20
    assert 0 <= twice - found.bytes(2.0) <= 1 << 20


def test_few_rows_need_no_buffer_and_neither_does_a_single_dimension() -> None:
    assert {one.bytes() for one in reductions_of((64, 1000), 64, THREADS)} == {0}
    assert reductions_of((4096,), 16, THREADS) == []


def test_reduced_dimensions_without_the_batch_do_not_grow() -> None:
    found = reductions_of((5461, 192), 64, THREADS)[0]
    assert found.bytes() == found.bytes(4.0) > 0


def test_a_consumer_gpu_holds_fewer_threads() -> None:
    assert (threads_per_sm((8, 9)), threads_per_sm((7, 5)), threads_per_sm(None)) == (1536, 1024, 2048)
