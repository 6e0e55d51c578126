"""Factors of parallel efficiency from one job: the POP metrics, and the share of GPU time that uneven ranks waste.

Source: Performance Optimisation and Productivity, https://pop-coe.eu/node/69. Useful time is a rank's own time: all but
exposed communication.
"""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.fleet.answers.scenarios import Scenarios
from tb_dlprof_plugin.fleet.job import Efficiency, JobStep
from tb_dlprof_plugin.fleet.rank_facts import RankFacts
from tb_dlprof_plugin.names.gpu_peaks import ceilings_of

_HOURS = 24


def efficiency(scenarios: Scenarios) -> Efficiency:
    """Unknown for one rank: nothing says what the others do."""
    calls, step = scenarios.calls, scenarios.step
    used = flops_utilization(scenarios.facts, step)
    if calls.ranks < 2 or not calls.coupled.any() or step is None or not scenarios.base_ns:
        return Efficiency(None, None, None, None, None, None, used)
    own = scenarios.own_ns
    largest = min(float(own.max()), scenarios.base_ns)
    balance = float(own.mean()) / float(own.max()) if own.max() else None
    communication = largest / scenarios.base_ns
    free = scenarios.free_network_ms
    even = scenarios.even_ms
    wasted = None if even is None else max(1 - even / step.ms, 0.0)
    world = max(max(one.world_size for one in scenarios.facts), calls.ranks)
    no_gpus = all(one.on_cpu for one in scenarios.facts)
    transfer = None if free is None else min(free / step.ms, 1.0)
    return Efficiency(
        parallel=None if balance is None else balance * communication,
        load_balance=balance,
        communication=communication,
        serialisation=None if not transfer else min(communication / transfer, 1.0),
        transfer=transfer,
        wasted_gpu_share=wasted,
        flops_utilization=used,
        wasted_gpu_hours_per_day=None if wasted is None or no_gpus else wasted * _HOURS * world,
    )


def flops_utilization(facts: Sequence[RankFacts], step: JobStep | None) -> float | None:
    """FLOPs of the ranks' matrix products over what their GPUs could compute in the step in BF16; None where the shapes
    of a rank's products, its GPU's peak or the step are not known, or the step cannot hold them."""
    if step is None or not step.ms or not facts:
        return None
    done = possible = 0.0
    for one in facts:
        flops = one.steps.matrix_flops
        peak = ceilings_of(one.gpu)
        if not len(flops) or (flops < 0).any() or peak is None or not peak.bf16:
            return None
        done += float(flops.mean())
        possible += peak.bf16 * 1e12 * step.ms / 1e3
    return done / possible if done <= possible else None
