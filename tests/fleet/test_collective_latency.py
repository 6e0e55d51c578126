"""Latencies of rings and trees, against NCCL's formulas worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tb_dlprof_plugin.fleet.answers.collectives import ESTIMATE, all_reduce_ns, ring_ns, tree_ns

NVLINK, NETWORK = 1900.0, 4000.0


def test_a_ring_passes_all_members_and_crosses_the_network_once_for_each_further_host() -> None:
    assert ring_ns(2, 8, 1, ESTIMATE) == 14 * NVLINK
    assert ring_ns(2, 16, 2, ESTIMATE) == 28 * NVLINK + 2 * NETWORK
    assert ring_ns(1, 16, 2, ESTIMATE) == 14 * NVLINK + NETWORK
    assert ring_ns(2, 4, 4, ESTIMATE) == 6 * NETWORK


def test_a_tree_doubles_the_hosts_for_one_more_step_up_and_down() -> None:
    assert tree_ns(16, 2, ESTIMATE) == 2 * (7 * NVLINK + NETWORK)
    assert tree_ns(8192, 1024, ESTIMATE) - tree_ns(4096, 512, ESTIMATE) == 2 * NETWORK
    assert tree_ns(8, 1, ESTIMATE) == np.inf


@pytest.mark.parametrize(
    ("members", "hosts", "most_us"), [(8, 1, 27), (16, 2, 35), (4096, 512, 99), (10_000, 1250, 109)]
)
def test_an_all_reduce_takes_the_better_of_both(members: int, hosts: int, most_us: float) -> None:
    found = all_reduce_ns(members, hosts) / 1e3
    assert found == pytest.approx(most_us, abs=1)
    assert found <= ring_ns(2, members, hosts, ESTIMATE) / 1e3
