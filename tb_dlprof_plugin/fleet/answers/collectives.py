"""Collectives of a job: transfer, waiting, what binds them, and links that are slower than others.

Bus bandwidth is on the last arriver's time, by the formulas of nccl-tests, doc/PERFORMANCE.md. It is independent of the
number of ranks and comparable with the hardware's; with in-network reduction (NVLink SHARP) an all-reduce may exceed
the link. Latency is by the model that NCCL itself chooses algorithms by (`src/graph/tuning.cc` of NVIDIA/nccl): a
ring's grows with its members, a tree's, which joins hosts, with the logarithm of their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.alike import kinds_of, members_of, rank_sets
from tb_dlprof_plugin.fleet.answers.calls import JobCalls
from tb_dlprof_plugin.fleet.job import CollectiveRow
from tb_dlprof_plugin.fleet.rank_facts import SYNCHRONISING, UNKNOWN, Operation, RankFacts
from tb_dlprof_plugin.model.profile import Floats, Ints

SKEW, TRANSFER = 0.6, 0.3
"""Share of waiting in the time of a collective, from which it is skew-bound and up to which it is transfer-bound. Ours:
between them neither explains two thirds."""
FEW_CALLS = 3
"""Fewer calls leave the verdict open."""
_SIZES = ((1 << 10, "up to 1 KiB"), (1 << 20, "up to 1 MiB"), (1 << 24, "up to 16 MiB"), (1 << 28, "up to 256 MiB"))
_LEAST_HIDDEN = 0.01
"""Share of the transfers next to which other work runs, below which no bandwidth would hide them."""
_LATENCY_BYTES = 1 << 20
"""Below it latency binds, and a bandwidth says little."""


def collective_rows(facts: Sequence[RankFacts], calls: JobCalls) -> list[CollectiveRow]:
    """Rows with most exposed time first. Times are means per step and rank that takes part (ms)."""
    if not len(calls.rank):
        return []
    names: list[tuple[str, str]] = [("", "")]
    number_of: dict[tuple[str, str], int] = {("", ""): 0}
    kind = np.zeros(len(calls.rank), dtype=np.int64)
    # Ranks of one program have the very same columns: they are numbered once.
    seen: tuple[Ints, Ints, Ints] | None = None
    numbers: tuple[Ints, Ints] | None = None
    for index, rank in enumerate(facts):
        at = calls.of_rank(index)
        rows = calls.row[at]
        table = rank.collectives
        dimension = [group.dimension or group.description for group in rank.groups] + [""]
        group, module = table.group[rows], table.module[rows]
        same = seen is not None and table.group is seen[0] and table.module is seen[1] and np.array_equal(rows, seen[2])
        if numbers is None or not same:
            seen, numbers = (table.group, table.module, rows), kinds_of(group, module)
        pairs, examples = numbers
        own_kind = np.zeros(len(examples), dtype=np.int64)
        for pair_number, row in enumerate(examples.tolist()):
            pair = (int(group[row]), int(module[row]))
            name = (dimension[pair[0]], rank.strings[pair[1]] if pair[1] != UNKNOWN else "")
            if name not in number_of:
                number_of[name] = len(names)
                names.append(name)
            own_kind[pair_number] = number_of[name]
        kind[at] = own_kind[pairs]
    sizes = np.searchsorted([limit for limit, _ in _SIZES], calls.bytes, side="left")
    sizes[calls.bytes < 0] = -1
    number, example = kinds_of(calls.operation, kind, sizes)
    order = np.argsort(number, kind="stable")
    bounds = np.searchsorted(number[order], np.arange(len(example) + 1))
    rates = bus_rates(calls.operation, calls.bytes, members_of(facts, calls), calls.transfer)
    link = {link_gb_s(rank.gpu) for rank in facts}
    hosts = {rank.host for rank in facts}
    attainable = link.pop() if len(link) == 1 and len(hosts) == 1 else None
    result = []
    for index, at in enumerate(example.tolist()):
        here = order[bounds[index] : bounds[index + 1]]
        operation, name, size_class = int(calls.operation[at]), names[kind[at]], int(sizes[at])
        result.append(_row(calls, here, operation, name, size_class, rates, attainable))
    return sorted(result, key=lambda row: -row.exposed_ms)


def _row(
    calls: JobCalls,
    here: Ints,
    operation: int,
    name: tuple[str, str],
    size_class: int,
    rates: Floats,
    link: float | None,
) -> CollectiveRow:
    ranks = int(np.count_nonzero(np.bincount(calls.rank[here])))
    per = 1e6 * ranks * max(calls.steps, 1)
    size = calls.bytes[here]
    transfer, waiting = float(calls.transfer[here].sum()), float((calls.duration - calls.transfer)[here].sum())
    # Without another member a call's waiting is not told from its transfer.
    alone = operation in SYNCHRONISING and not calls.coupled[here].any()
    large = rates[here][(rates[here] > 0) & (size >= _LATENCY_BYTES) & (not alone)]
    exposed = np.clip(calls.exposed[here] - calls.waiting[here], 0, calls.transfer[here])
    hidden = transfer - float(exposed.sum())
    bus = float(np.median(large)) if len(large) else None
    return CollectiveRow(
        operation=Operation(operation).name.lower(),
        dimension=name[0],
        size="" if size_class < 0 else _SIZES[size_class][1] if size_class < len(_SIZES) else "over 256 MiB",
        module=name[1],
        calls_per_step=len(here) / ranks / max(calls.steps, 1),
        bytes=int(size.sum() / ranks / max(calls.steps, 1)) if size.min() >= 0 else None,
        transfer_ms=transfer / per,
        waiting_ms=None if alone else waiting / per,
        exposed_ms=float(calls.exposed[here].sum()) / per,
        bus_gb_s=bus,
        attainable_gb_s=max(float(large.max()), link or 0.0) if len(large) else None,
        verdict=_verdict(calls, here, transfer, waiting),
        # More than that is no statement about a link.
        hiding_gb_s=None if bus is None or hidden <= _LEAST_HIDDEN * transfer else bus * transfer / hidden,
    )


def _verdict(calls: JobCalls, here: Ints, transfer: float, waiting: float) -> str:
    if not calls.coupled[here].any() or len(here) < FEW_CALLS or not transfer + waiting:
        return "inconclusive"
    share = waiting / (transfer + waiting)
    if share >= SKEW:
        return "skew-bound"
    return "transfer-bound" if share <= TRANSFER else "mixed"


def bus_rates(operation: Ints, size: Ints, members: Ints, transfer: Ints | Floats) -> Floats:
    """Bus bandwidth of each call in GB/s, 0 where unknown."""
    number, example = kinds_of(operation, members)
    units = [bus_gb_s(int(operation[at]), 1, int(members[at]), 1.0) or 0.0 for at in example.tolist()]
    factor = np.array(units)[number]
    return np.where(size > 0, size * factor / np.maximum(transfer, 1), 0.0)


SLOWER = 1.5
"""Transfers of a group over the median of groups with equal calls, from which its link is slow. Ours: transfers of
equal groups differ by up to a third where they share switches."""
LEAST_BYTES = 1_000_000
"""A smaller transfer takes its latency, which says little about a link."""
LEAST_GROUPS = 3
LARGE_BYTES = 8_000_000
USED = 0.15
"""Share of the link's rate below which large transfers do not use it: without peer access two H200s reach less than a
tenth, with it a half at 30 MB."""
USUAL = 0.5


@dataclass(frozen=True, slots=True)
class SlowLink:
    """A rank on a slow link: index into the facts, the rows of its group's calls, by what factor they are slower."""

    index: int
    rows: Ints
    slowdown: float
    why: str


def slow_links(facts: Sequence[RankFacts], calls: JobCalls) -> list[SlowLink]:
    """Ranks whose group transfers `SLOWER` times as long as other groups do, at equal operation, size and bytes."""
    if not calls.coupled.any():
        return []
    rows = np.flatnonzero(calls.coupled & (calls.bytes >= LEAST_BYTES))
    if not len(rows):
        return []
    members = np.bincount(calls.collective)[calls.collective[rows]]
    group, example = kinds_of(rank_sets(calls)[rows])
    if len(example) < LEAST_GROUPS:
        return _below_link(facts, calls, rows, members)
    like, _ = kinds_of(calls.operation[rows], calls.bytes[rows], members)
    slow: list[SlowLink] = []
    for kind in np.unique(like).tolist():
        here = np.flatnonzero(like == kind)
        groups = np.unique(group[here])
        if len(groups) < LEAST_GROUPS:
            continue
        median = {
            number: float(np.median(calls.transfer[rows[here[group[here] == number]]])) for number in groups.tolist()
        }
        usual = float(np.median(list(median.values())))
        for number, value in median.items():
            if usual and value >= SLOWER * usual:
                at = rows[here[group[here] == number]]
                ranks = np.unique(calls.rank[at])
                names = ", ".join(str(facts[index].rank) for index in ranks[:8].tolist())
                why = (
                    f"Equal transfers between ranks {names} take {value / usual:.1f} times as long as in other groups."
                )
                slow += [SlowLink(int(index), at, value / usual, why) for index in ranks.tolist()]
    return slow


def _below_link(facts: Sequence[RankFacts], calls: JobCalls, rows: Ints, members: Ints) -> list[SlowLink]:
    """All ranks of one host whose largest transfers use a small part of what its GPUs' link carries."""
    link = {link_gb_s(rank.gpu) for rank in facts}
    large = calls.bytes[rows] >= LARGE_BYTES
    attainable = link.pop()
    if link or attainable is None or len({rank.host for rank in facts}) > 1 or not large.any():
        return []
    best = float(bus_rates(calls.operation[rows], calls.bytes[rows], members, calls.transfer[rows])[large].max())
    if not best or best >= USED * attainable:
        return []
    why = f"Large transfers reach {best:,.0f} GB/s on links that carry {attainable:,.0f}: they may not use NVLink."
    slowdown = USUAL * attainable / best
    return [SlowLink(index, rows[calls.rank[rows] == index], slowdown, why) for index in range(len(facts))]


_TWICE = (Operation.ALL_REDUCE,)
_ONCE = (
    Operation.ALL_GATHER,
    Operation.REDUCE_SCATTER,
    Operation.ALL_TO_ALL,
    Operation.GATHER,
    Operation.SCATTER,
)
_WHOLE = (Operation.BROADCAST, Operation.REDUCE, Operation.SEND, Operation.RECEIVE)
"""Operations that move (n - 1) / n of the bytes twice, once, and all of them."""
LINKS = {"B200": 900.0, "GH200": 450.0, "H200": 450.0, "H100 80GB HBM3": 450.0, "A100-SXM": 300.0, "V100-SXM2": 150.0}
"""GB/s one way of all NVLinks of a GPU, by a part of the name that CUDA reports: half of the bidirectional rates in
NVIDIA's data sheets (1.8 TB/s, 900, 900, 900, 600 and 300 GB/s). PCIe cards are left out: their bridges vary."""


def bus_gb_s(operation: int, size: int, members: int, transfer_ns: float) -> float | None:
    """GB/s; None where operation, bytes or members are unknown."""
    passes = 2 if operation in _TWICE else 1 if operation in (*_ONCE, *_WHOLE) else 0
    if not passes or size <= 0 or members < 2 or transfer_ns <= 0:
        return None
    part = 1.0 if operation in _WHOLE else (members - 1) / members
    return size * passes * part / transfer_ns


def link_gb_s(gpu: str) -> float | None:
    """What a GPU's links carry one way; None where it is not known."""
    return next((rate for name, rate in LINKS.items() if name in gpu), None)


_NVLINK_STEP_NS = (470.0, 1900.0, 3400.0)
_NETWORK_STEP_NS = (2700.0, 4000.0, 9600.0)
TREE_RATE = 0.92
"""A tree's bus bandwidth as a share of a ring's."""
ESTIMATE = 1
"""The point of the estimate."""


def ring_ns(passes: Floats | float, members: Floats | float, hosts: Floats | float, point: int) -> Floats:
    """Nanoseconds; ``passes`` are 2 for an all-reduce, 1 for an all-gather or reduce-scatter. Each pass crosses the
    network once for each further host."""
    far = passes * (np.maximum(hosts, 1.0) - 1.0)
    near = np.maximum(passes * (np.asarray(members, dtype=np.float64) - 1.0) - far, 0.0)
    return near * _NVLINK_STEP_NS[point] + far * _NETWORK_STEP_NS[point]


def tree_ns(members: Floats | float, hosts: Floats | float, point: int) -> Floats:
    """Nanoseconds of an all-reduce, up and down; infinite within one host, where NCCL takes no tree."""
    some = np.maximum(hosts, 1.0)
    near = np.maximum(members / some - 1.0, 0.0)
    both = 2.0 * (near * _NVLINK_STEP_NS[point] + np.log2(some) * _NETWORK_STEP_NS[point])
    return np.where(some > 1.0, both, np.inf)


def all_reduce_ns(members: int, hosts: int) -> float:
    """Expected latency of an all-reduce among so many members on so many hosts, by the better of both."""
    return float(min(ring_ns(2, members, hosts, ESTIMATE), tree_ns(members, hosts, ESTIMATE)))
