"""Moments shared out."""

from __future__ import annotations

import numpy as np
import pytest

from tb_dlprof_plugin.metrics.time_sharing import cut, disjoint, gaps, label, share_out
from tb_dlprof_plugin.model.intervals import exclusive, union


def column(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


WINDOWS = (column(0, 100), column(100, 200))


def test_a_moment_belongs_to_the_earlier_layer_and_in_it_to_what_began_first() -> None:
    first = (column(10, 15), column(20, 30))
    second = (column(0), column(40))
    shares, busy = share_out([first, second], WINDOWS)
    assert list(zip(shares[0].row.tolist(), shares[0].ns.tolist(), strict=True)) == [(0, 10), (1, 10)]
    assert shares[1].ns.tolist() == [20]
    assert [part.tolist() for part in busy] == [[0], [40]]


def test_what_crosses_a_boundary_is_cut_there() -> None:
    pieces = cut((column(7), column(-50), column(250)), WINDOWS)
    assert (pieces.row.tolist(), pieces.window.tolist()) == ([7, 7], [0, 1])
    assert (pieces.start_ns.tolist(), pieces.stop_ns.tolist()) == ([0, 100], [100, 200])


def test_gaps_and_what_is_busy_make_up_the_windows() -> None:
    pieces = gaps((column(10, 90), column(20, 120)), WINDOWS)
    assert list(zip(pieces.window.tolist(), pieces.start_ns.tolist(), pieces.stop_ns.tolist(), strict=True)) == [
        (0, 0, 10),
        (0, 20, 90),
        (1, 120, 200),
    ]
    everything = gaps((column(), column()), WINDOWS)
    assert (everything.stop_ns - everything.start_ns).sum() == 200


def test_pieces_are_cut_where_owners_change() -> None:
    pieces, owner = label(gaps((column(50), column(60)), WINDOWS), (column(4, 5), column(10, 30), column(20, 55)))
    assert list(zip(pieces.start_ns.tolist(), pieces.stop_ns.tolist(), owner.tolist(), strict=True)) == [
        (0, 10, -1),
        (10, 20, 4),
        (20, 30, -1),
        (30, 50, 5),
        (60, 100, -1),
        (100, 200, -1),
    ]


def test_nested_intervals_add_nothing() -> None:
    row, start, stop = disjoint(column(5, 0, 8), column(7, 10, 12))
    assert (row.tolist(), start.tolist(), stop.tolist()) == ([1, 2], [0, 10], [10, 12])


@pytest.mark.parametrize("seed", range(20))
def test_shares_sum_to_what_the_layers_cover(seed: int) -> None:
    random = np.random.default_rng(seed)
    bounds = np.sort(random.integers(0, 1000, 6))
    windows = (bounds[:-1].astype(np.int64), bounds[1:].astype(np.int64))
    layers = []
    for _ in range(3):
        start = random.integers(-50, 1000, 40)
        layers.append((start, start + random.integers(0, 60, 40)))
    shares, busy = share_out(layers, windows)
    expected = exclusive([union(*layer) for layer in layers], *windows)
    for index, share in enumerate(shares):
        assert np.bincount(share.window, share.ns, minlength=5).astype(int).tolist() == expected[:, index].tolist()
    free = gaps(busy, windows)
    idle = np.bincount(free.window, free.stop_ns - free.start_ns, minlength=5)
    assert (idle + expected.sum(axis=1)).tolist() == (windows[1] - windows[0]).tolist()
