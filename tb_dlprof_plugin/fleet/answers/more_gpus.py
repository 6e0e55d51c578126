"""What-if: the job on more GPUs, each with the same batch, that take part in data parallel training.

Each collective of the data parallel groups is stretched by the model that NCCL itself chooses algorithms by: its bytes
at the bus bandwidth that was recorded, and the latency of the ring or, of an all-reduce across hosts, of the tree,
which is less where there are many (`collective_latency`). The job is replayed with these transfers, so that what
kernels hide stays hidden. More ranks wait longer for the last one of each step, by how much their own times vary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from tb_dlprof_plugin.fleet.answers.alike import members_of
from tb_dlprof_plugin.fleet.answers.collectives import TREE_RATE, bus_rates, link_gb_s, ring_ns, tree_ns
from tb_dlprof_plugin.fleet.answers.scenarios import Scenarios
from tb_dlprof_plugin.fleet.chosen_steps import among
from tb_dlprof_plugin.fleet.dimensions import UNNAMED
from tb_dlprof_plugin.fleet.job import WhatIf
from tb_dlprof_plugin.fleet.rank_facts import Operation, RankFacts
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints

_GROWING = ("dp_replicate", "dp", "dp_shard")
"""The first of these dimensions that a job has gets more members."""
_STEPS = {Operation.ALL_REDUCE: 2, Operation.ALL_GATHER: 1, Operation.REDUCE_SCATTER: 1}
"""Times that a ring passes all of its members."""
_OTHER = (Operation.ALL_TO_ALL, Operation.SEND, Operation.RECEIVE, Operation.UNKNOWN)
"""What a group exchanges that no ring carries."""
_GPUS_OF_HOST = 8
"""That NVLink joins in an HGX board."""
_FACTORS = (2, 4)
"""How many times as many GPUs are asked about without being named."""
_MOST_CALLS = 200_000
"""Of a job that is replayed without being asked: each row takes three replays."""
_SPREAD = (0.0, 0.5, 1.0)
"""Share of the recorded spread of own times that is chance, at the three points of the latency: recording makes some
of it."""


@dataclass(frozen=True, slots=True)
class Growth:
    """``gpus`` are numbers of GPUs to ask about; none: twice and four times as many, where the links were recorded.

    ``network_gb_s`` is the bus bandwidth of collectives across hosts in GB/s, as nccl-tests print it; None where it is
    not known, or recorded.
    """

    gpus: tuple[int, ...] = ()
    network_gb_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Exchanges:
    """Rows of the calls that grow, and of each operation, bytes and members of its group; ``hosts`` are those of a
    group."""

    rows: Ints
    operation: Ints
    bytes: Ints
    members: Ints
    hosts: float


def more_gpus(facts: Sequence[RankFacts], scenarios: Scenarios, growth: Growth) -> tuple[list[WhatIf], list[str]]:
    """The job's step on other numbers of GPUs, and notes: what is assumed, or why it is not known."""
    calls, step = scenarios.calls, scenarios.step
    world = max(max(rank.world_size for rank in facts), len(facts))
    asked = growth.gpus or (tuple(world * factor for factor in _FACTORS) if len(calls.rank) <= _MOST_CALLS else ())
    if step is None or not asked or len(facts) < 2 or not calls.coupled.any():
        return [], [f"More GPUs: {_NOTHING}"] if growth.gpus else []
    dimension = _growing(facts)
    exchanges = None if dimension is None else _exchanges(facts, scenarios, dimension)
    if dimension is None or exchanges is None:
        return [], [f"More GPUs: {_NOTHING}"] if growth.gpus else []
    rows: list[WhatIf] = []
    notes: list[str] = []
    own_spread_ms = _own_spread_ms(facts, scenarios)
    for gpus in asked:
        if gpus <= world or gpus % world:
            notes.append(f"{gpus} GPUs are no multiple of the {world} of the job.")
            continue
        why = _unknown_link(facts, exchanges, gpus, growth)
        if why:
            if growth.gpus:
                notes.append(f"{gpus} GPUs: {why}")
            continue
        rows.append(_row(facts, scenarios, exchanges, (world, gpus), growth, dimension, own_spread_ms))
    if rows:
        notes.append(
            "On more GPUs: each has the same batch; transfers grow as in NCCL's rings and trees at the recorded bus "
            "bandwidth, or that of the network; the new ranks are as fast as the recorded ones; the host's work does "
            "not change."
        )
    return rows, notes


_NOTHING = (
    "no all-reduce, all-gather or reduce-scatter of a data parallel group was found on two ranks, or the group "
    "exchanges other things, too: what more members would take is not known."
)


def _growing(facts: Sequence[RankFacts]) -> str | None:
    """The dimension that gets more members; None where no group is data parallel for certain.

    A group of all ranks that has no description is, where a wrapper makes the model so: without one it may be a tensor
    parallel one.
    """
    there = {
        group.dimension
        for rank in facts
        for group in rank.groups
        if len(group.members) != 1 and (rank.wrapper or group.description.lower() not in UNNAMED)
    }
    return next((name for name in _GROWING if name in there), None)


def _exchanges(facts: Sequence[RankFacts], scenarios: Scenarios, dimension: str) -> _Exchanges | None:
    """The calls that grow; None where there are none, or the group makes others whose time is not known then."""
    calls = scenarios.calls
    grows: Bools = np.zeros(len(calls.rank), dtype=np.bool_)
    for index, rank in enumerate(facts):
        at = calls.of_rank(index)
        inside = np.array([group.dimension == dimension for group in rank.groups] + [False])
        grows[at] = inside[rank.collectives.group[calls.row[at]]]
    if np.isin(calls.operation[grows], _OTHER).any():
        return None
    rows = np.flatnonzero(grows & calls.coupled & np.isin(calls.operation, list(_STEPS)))
    if not len(rows):
        return None
    members = members_of(facts, calls)[rows]
    return _Exchanges(rows, calls.operation[rows], calls.bytes[rows], members, _hosts_of_group(facts, dimension))


def _hosts_of_group(facts: Sequence[RankFacts], dimension: str) -> float:
    """Of a group of the dimension, which are alike: as many for a member as its recorded members have."""
    groups = (group for rank in facts for group in rank.groups)
    group = next(group for group in groups if group.dimension == dimension and len(group.members) != 1)
    inside = set(group.members)
    hosts = [rank.host for rank in facts if not inside or rank.rank in inside]
    return max(1.0, len(set(hosts)) / max(len(hosts), 1) * (len(inside) or len(facts)))


def _unknown_link(facts: Sequence[RankFacts], exchanges: _Exchanges, gpus: int, growth: Growth) -> str:
    """Why the time of these transfers is not known; "" where it is."""
    if _hosts(facts) > 1:
        return ""
    if gpus <= _GPUS_OF_HOST and link_gb_s(facts[0].gpu) is not None:
        return ""
    if growth.network_gb_s is None:
        return (
            "no call of the recording crosses hosts, so how fast that is is not known; --network-gb-s says it, as bus "
            "bandwidth in GB/s."
        )
    return "" if (exchanges.bytes > 0).all() else "how many bytes are exchanged was not recorded."


def _hosts(facts: Sequence[RankFacts]) -> int:
    return len({rank.host for rank in facts})


def _row(
    facts: Sequence[RankFacts],
    scenarios: Scenarios,
    exchanges: _Exchanges,
    worlds: tuple[int, int],
    growth: Growth,
    dimension: str,
    own_spread_ms: float,
) -> WhatIf:
    step = scenarios.step
    assert step is not None
    hosts = _hosts(facts)
    crosses = hosts > 1 or worlds[1] > _GPUS_OF_HOST
    steps_ms = []
    for point in range(3):
        factor = np.ones(len(scenarios.calls.rank))
        factor[exchanges.rows] = _stretch(scenarios, exchanges, worlds, growth, point, crosses and hosts == 1)
        longer = scenarios.transfers_ms(factor)
        waited = _SPREAD[point] * own_spread_ms * (_last_of(worlds[1]) - _last_of(worlds[0]))
        steps_ms.append((step.ms if longer is None else longer) + waited)
    members = int(exchanges.members.max()) * worlds[1] // worlds[0]
    change = f"{worlds[1]} GPUs, {dimension} of {members}, the same batch on each"
    row = scenarios.stated(change, step.ms - steps_ms[1])
    return replace(row, low_ms=min(row.low_ms, steps_ms[0]), high_ms=max(row.high_ms, steps_ms[2]))


def _stretch(
    scenarios: Scenarios,
    exchanges: _Exchanges,
    worlds: tuple[int, int],
    growth: Growth,
    point: int,
    leaves_host: bool,
) -> Floats:
    """How many times as long each transfer takes.

    Args:
        scenarios: of the job.
        exchanges: the calls.
        worlds: GPUs of the job, and then.
        growth: the network.
        point: 0 to 2, the latency: see `collective_latency`.
        leaves_host: whether all recorded ones are within a host, and then not all are.
    """
    now = np.maximum(scenarios.calls.transfer[exchanges.rows].astype(np.float64), 1.0)
    before = exchanges.members.astype(np.float64)
    after = before * worlds[1] / worlds[0]
    passes = ((after - 1) / after) / ((before - 1) / before)
    transfer = now * passes
    if leaves_host and growth.network_gb_s is not None:
        transfer *= np.maximum(
            bus_rates(exchanges.operation, exchanges.bytes, exchanges.members, now) / growth.network_gb_s, 1.0
        )
    steps = np.array([_STEPS.get(operation, 0) for operation in Operation])[exchanges.operation]
    hosts = exchanges.hosts
    if leaves_host:
        later = np.minimum(np.ceil(worlds[1] / _GPUS_OF_HOST), after)
    else:
        later = np.full(len(after), hosts * worlds[1] / worlds[0] if hosts > 1 else 1.0)
    longer = _modelled(steps, transfer, after, later, point) - _modelled(
        steps, now, before, np.full(len(before), hosts), point
    )
    return np.maximum(now + longer, 1.0) / now


def _modelled(passes: Ints, transfer: Floats, members: Floats, hosts: Floats, point: int) -> Floats:
    """Nanoseconds by the better algorithm, of calls whose bytes take ``transfer`` in a ring."""
    ring = transfer + ring_ns(passes.astype(np.float64), members, hosts, point)
    tree = transfer / TREE_RATE + tree_ns(members, hosts, point)
    return np.where(passes == _STEPS[Operation.ALL_REDUCE], np.minimum(ring, tree), ring)


def _own_spread_ms(facts: Sequence[RankFacts], scenarios: Scenarios) -> float:
    """Standard deviation of a rank's own time from step to step, mean over ranks, without the profiler."""
    deviations = []
    for rank, here in zip(facts, among(facts, scenarios.calls.numbers), strict=True):
        steps = rank.steps
        own = (steps.end_ns - steps.start_ns - np.maximum(steps.communication_ns, 0))[here]
        if len(own) > 1:
            deviations.append(float(own.std(ddof=1)))
    if not deviations or scenarios.step is None or not scenarios.recorded_ns:
        return 0.0
    return float(np.mean(deviations)) / scenarios.recorded_ns * scenarios.step.ms


def _last_of(ranks: int) -> float:
    """Expected largest of so many standard normal numbers (Blom, 1958)."""
    return NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25)) if ranks > 1 else 0.0
