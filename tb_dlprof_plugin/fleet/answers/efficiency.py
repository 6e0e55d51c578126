"""Factors of parallel efficiency from one job: the POP metrics, and the share of GPU time that uneven ranks waste.

Source: Performance Optimisation and Productivity, https://pop-coe.eu/node/69. Useful time is a rank's own time: all but
exposed communication.
"""

from __future__ import annotations

from tb_dlprof_plugin.fleet.answers.what_if import Scenarios
from tb_dlprof_plugin.fleet.job import Efficiency


def efficiency(scenarios: Scenarios) -> Efficiency:
    """Unknown for one rank: nothing says what the others do."""
    calls, step = scenarios.calls, scenarios.step
    if calls.ranks < 2 or not calls.coupled.any() or step is None or not scenarios.base_ns:
        return Efficiency(None, None, None, None, None, None)
    own = scenarios.own_ns
    largest = min(float(own.max()), scenarios.base_ns)
    balance = float(own.mean()) / float(own.max()) if own.max() else None
    communication = largest / scenarios.base_ns
    free = scenarios.free_network_ms
    even = scenarios.even_ms
    transfer = None if free is None else min(free / step.ms, 1.0)
    return Efficiency(
        parallel=None if balance is None else balance * communication,
        load_balance=balance,
        communication=communication,
        serialisation=None if not transfer else min(communication / transfer, 1.0),
        transfer=transfer,
        wasted_gpu_share=None if even is None else max(1 - even / step.ms, 0.0),
    )
