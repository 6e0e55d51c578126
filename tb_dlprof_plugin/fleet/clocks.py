"""Offsets and drift of the ranks' clocks, from collectives that end on all members together. No clock is asked.

The method is that of NVIDIA's JAX-Toolbox (nsys_jax, align_profiler_data_timestamps) over several groups: differences
of ends between members, their medians, and robust least squares over the graph of all ranks. Broadcasts and reductions
do not end together; the ends of large collectives are less sharp than those of small ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.fleet.job import Clocks
from tb_dlprof_plugin.fleet.matching import Matched
from tb_dlprof_plugin.fleet.rank_facts import SYNCHRONISING, Operation, RankFacts
from tb_dlprof_plugin.model.grouping import grouped_median
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints

_SAME_CLOCK_NS = 5_000
"""Ranks of one host whose offsets differ by less have one clock: ends on one host spread over 0.04 to 7 us."""
_FEW = 8
"""Collectives of two ranks from which on a drift is looked for, and large ones are left out."""
_SURE = 5.0
"""Standard errors by which a drift has to differ from none: ranks are many."""
_OUTLIER = 5.0
_SHARPEST_NS = 100.0
"""No end is known better: the resolution of GPU timestamps is 32 ns and more."""
_PASSES = 5
_MOST_CALLS = 200_000
"""Clocks need no more: a rank of ten thousand has twenty of them."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Where the ranks' clocks stand, by index into the facts.

    Attributes:
        offset_ns: of a rank's clock at ``reference_ns``: how far it is ahead of that of its component's first.
        drift: how much faster it runs (ns per ns).
        component: ranks with the same number are connected by collectives; those of others cannot be compared.
        uncertainty_ns: median deviation of single ends after the alignment, as a standard deviation; None without any.
        reference_ns: unix time at which the offsets hold: the end of the first of these collectives.
        collectives: how many were used.
        impossible: receives that ended before their send began, on the aligned clocks.
    """

    ranks: tuple[int, ...]
    offset_ns: Floats
    drift: Floats
    component: Ints
    uncertainty_ns: float | None
    reference_ns: int
    collectives: int
    impossible: int

    def aligned_ns(self, index: int, unix_ns: Ints) -> Ints:
        """Times of a rank (unix ns on its own clock) on the clock of its component."""
        late = unix_ns - self.reference_ns
        return unix_ns - np.rint(self.offset_ns[index] + self.drift[index] * late).astype(np.int64)

    def summary(self) -> Clocks:
        """For the answers about the job; ranks that nothing connects with the first have no offset."""
        first = self.component == (self.component[0] if len(self.component) else -1)
        return Clocks(
            uncertainty_us=None if self.uncertainty_ns is None else self.uncertainty_ns / 1e3,
            offsets_us={
                rank: float(offset) / 1e3
                for rank, offset, own in zip(self.ranks, self.offset_ns, first.tolist(), strict=True)
                if own
            },
            components=len(set(self.component.tolist())),
        )


@dataclass(slots=True)
class _Edges:
    """Pairs of ranks with the median difference of their ends at the reference, its change with time, and its error."""

    one: Ints
    two: Ints
    offset: Floats
    drift: Floats
    error: Floats


def align(facts: Sequence[RankFacts], matched: Matched) -> Alignment:
    """The clocks of ranks.

    Args:
        facts: of the ranks, the lowest first: its clock is the reference.
        matched: their collectives.
    """
    count = len(facts)
    matched = _fewer(matched)
    one, two, end_one, end_two, size = _pairs(facts, matched)
    used = len(np.unique(end_one)) if len(end_one) else 0
    reference = int(end_one.min()) if len(end_one) else min((fact.base_ns for fact in facts), default=0)
    if len(one):
        edges = _edges(one, two, end_one, end_two, size, reference, count)
        component = _components(edges, count)
        offset, drift = _solved(edges, component, count)
        offset = _by_host(facts, offset, drift, component)
    else:
        component = np.arange(count, dtype=np.int64)
        offset = drift = np.zeros(count)
    late_one, late_two = end_one - reference, end_two - reference
    rest = (late_two - offset[two] - drift[two] * late_two) - (late_one - offset[one] - drift[one] * late_one)
    # The difference of two ends varies as both together.
    spread = 1.4826 * float(np.median(np.abs(rest))) / math.sqrt(2) if len(rest) else None
    result = Alignment(
        tuple(fact.rank for fact in facts), offset, drift, component, spread, reference, used, impossible=0
    )
    wrong, bound = _impossible(facts, matched, result)
    if wrong and spread is not None:
        spread = max(spread, bound)
    return Alignment(result.ranks, offset, drift, component, spread, reference, used, wrong)


def _fewer(matched: Matched) -> Matched:
    """At most `_MOST_CALLS` calls, of collectives that are spread evenly."""
    every = -(-len(matched.rank_index) // _MOST_CALLS)
    if every < 2:
        return matched
    chosen = np.arange(0, len(matched), every)
    size = np.diff(matched.first)[chosen]
    first = np.concatenate(([0], np.cumsum(size)))
    at = np.repeat(matched.first[chosen] - first[:-1], size) + np.arange(int(first[-1]))
    return replace(
        matched,
        first=first,
        rank_index=matched.rank_index[at],
        row=matched.row[at],
        iteration=matched.iteration[chosen],
        operation=matched.operation[chosen],
    )


def _pairs(facts: Sequence[RankFacts], matched: Matched) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """The first member of each synchronising collective and each other: ranks, ends (unix ns) and bytes."""
    kept = np.isin(matched.operation, list(SYNCHRONISING))
    sizes = np.diff(matched.first)
    member = np.repeat(kept, sizes)
    head = np.repeat(matched.first[:-1], sizes)
    end, size = _ends(facts, matched)
    rows = np.flatnonzero(member & (np.arange(len(member)) != head))
    return matched.rank_index[head[rows]], matched.rank_index[rows], end[head[rows]], end[rows], size[rows]


def _ends(facts: Sequence[RankFacts], matched: Matched) -> tuple[Ints, Ints]:
    """End (unix ns) and bytes of each member of each collective."""
    end, size = np.zeros(len(matched.row), dtype=np.int64), np.zeros(len(matched.row), dtype=np.int64)
    order = np.argsort(matched.rank_index, kind="stable")
    bounds = np.searchsorted(matched.rank_index[order], np.arange(len(facts) + 1))
    for index, fact in enumerate(facts):
        here = order[bounds[index] : bounds[index + 1]]
        rows, calls = matched.row[here], fact.collectives
        end[here] = fact.base_ns + calls.start_ns[rows] + calls.duration_ns[rows]
        size[here] = calls.bytes[rows]
    return end, size


def _edges(one: Ints, two: Ints, end_one: Ints, end_two: Ints, size: Ints, reference: int, count: int) -> _Edges:
    pair = one * count + two
    order = np.argsort(pair, kind="stable")
    one, two, pair, size = one[order], two[order], pair[order], size[order]
    difference = (end_two - end_one)[order].astype(np.float64)
    late = (end_one[order] - reference).astype(np.float64)
    keys, edge = np.unique(pair, return_inverse=True)
    edge = edge.reshape(-1)
    small = _smaller_half(edge, size, len(keys))
    edge, difference, late = edge[small], difference[small], late[small]
    median = grouped_median(edge, difference, len(keys))
    spread = grouped_median(edge, np.abs(difference - median[edge]), len(keys))
    inlier = np.abs(difference - median[edge]) <= _OUTLIER * spread[edge] + _SHARPEST_NS
    number = np.bincount(edge, inlier, len(keys))
    middle = np.bincount(edge, late * inlier, len(keys)) / np.maximum(number, 1)
    mean = np.bincount(edge, difference * inlier, len(keys)) / np.maximum(number, 1)
    away = (late - middle[edge]) * inlier
    length = np.bincount(edge, away * away, len(keys))
    slope = np.bincount(edge, away * (difference - mean[edge]), len(keys)) / np.maximum(length, 1)
    line = mean[edge] + slope[edge] * (late - middle[edge])
    left = grouped_median(edge, np.abs(difference - line), len(keys))
    # The standard error of a slope; 1.4826 median deviations are a standard deviation.
    sure = np.abs(slope) * np.sqrt(length) > _SURE * (1.4826 * left + _SHARPEST_NS)
    drifts = (number >= _FEW) & sure
    error = np.where(drifts, left, spread) / np.sqrt(np.maximum(number, 1))
    return _Edges(
        keys // count,
        keys % count,
        np.where(drifts, mean - slope * middle, median),
        np.where(drifts, slope, 0.0),
        np.maximum(error, _SHARPEST_NS),
    )


def _smaller_half(edge: Ints, size: Ints, edges: int) -> Bools:
    """Of the collectives of two ranks those of the smaller sizes, where there are enough."""
    half = grouped_median(edge, size.astype(np.float64), edges)
    small: Bools = size <= half[edge]
    enough = np.bincount(edge, small, edges) >= _FEW
    return small | ~enough[edge]


def _components(edges: _Edges, count: int) -> Ints:
    """For each rank the lowest index that edges connect it with."""
    result = np.arange(count, dtype=np.int64)
    while True:
        low = np.minimum(result[edges.one], result[edges.two])
        further = result.copy()
        np.minimum.at(further, edges.one, low)
        np.minimum.at(further, edges.two, low)
        further = further[further]
        if np.array_equal(further, result):
            return result
        result = further


def _solved(edges: _Edges, component: Ints, count: int) -> tuple[Floats, Floats]:
    """Offsets and drifts by least squares, in which an edge counts less the less it fits (Huber's weights)."""
    offset = np.zeros(count)
    weight = 1.0 / edges.error**2
    for _ in range(_PASSES):
        offset = _least_squares(edges, edges.offset, weight, component, offset)
        rest = np.abs(offset[edges.two] - offset[edges.one] - edges.offset) / edges.error
        weight = np.minimum(1.0, 3.0 / np.maximum(rest, 1e-9)) / edges.error**2
    drift = np.zeros(count)
    if edges.drift.any():
        drift = _least_squares(edges, edges.drift, weight, component, drift)
    return offset, drift


def _least_squares(edges: _Edges, target: Floats, weight: Floats, component: Ints, start: Floats) -> Floats:
    """The values whose differences along the edges come closest to ``target``, by conjugate gradients; 0 for the first
    of each component."""
    count = len(component)
    weight = weight / weight.max()
    free = component != np.arange(count)

    def pulled(difference: Floats) -> Floats:
        force = weight * difference
        both = np.bincount(edges.two, force, count) - np.bincount(edges.one, force, count)
        return np.where(free, both, 0.0)

    scale = np.bincount(edges.one, weight, count) + np.bincount(edges.two, weight, count)
    scale = np.where(scale > 0, scale, 1.0)
    value = start - start[component]
    rest = pulled(target - (value[edges.two] - value[edges.one]))
    step = rest / scale
    energy = float(rest @ step)
    enough = 1e-12 * max(energy, 1e-300)
    for _ in range(2 * count):
        if energy <= enough:
            break
        change = pulled(step[edges.two] - step[edges.one])
        length = energy / max(float(step @ change), 1e-300)
        value = value + length * step
        rest = rest - length * change
        scaled = rest / scale
        energy, before = float(rest @ scaled), energy
        step = scaled + (energy / before) * step
    return value


def _by_host(facts: Sequence[RankFacts], offset: Floats, drift: Floats, component: Ints) -> Floats:
    """Ranks of one host have one clock, where the offsets do not say otherwise: it is known by all of them."""
    result = offset.copy()
    hosts: dict[tuple[str, int], list[int]] = {}
    for index, fact in enumerate(facts):
        if fact.host:
            hosts.setdefault((fact.host, int(component[index])), []).append(index)
    for rows in hosts.values():
        own = offset[rows]
        if len(rows) > 1 and own.max() - own.min() <= _SAME_CLOCK_NS and not drift[rows].any():
            result[rows] = np.median(own)
    return result - result[component]


def _impossible(facts: Sequence[RankFacts], matched: Matched, found: Alignment) -> tuple[int, float]:
    """How many receives ended before their send began, and by how much at most (ns)."""
    wrong, bound = 0, 0.0
    for collective in np.flatnonzero(matched.operation == Operation.SEND).tolist():
        rows = range(int(matched.first[collective]), int(matched.first[collective + 1]))
        starts, ends = [], []
        for at in rows:
            index, row = int(matched.rank_index[at]), matched.row[at : at + 1]
            calls = facts[index].collectives
            start = facts[index].base_ns + calls.start_ns[row]
            if int(calls.operation[row[0]]) == Operation.SEND:
                starts.append(int(found.aligned_ns(index, start)[0]))
            else:
                ends.append(int(found.aligned_ns(index, start + calls.duration_ns[row])[0]))
        late = max(starts, default=0) - min(ends, default=2**62) if starts and ends else 0
        wrong += late > 0
        bound = max(bound, float(late))
    return wrong, bound
