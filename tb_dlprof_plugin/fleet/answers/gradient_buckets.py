"""What-if: DDP's gradients in buckets of another size.

The job is replayed with the calls of other buckets (`bucketed_calls`). A bucket that was not recorded takes a latency
and its bytes at the recorded bandwidth; what is exchanged next to kernels makes these slower, as the recording shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.fleet.answers.bucketed_calls import Atoms, Bucketed, atoms_of, bucketed
from tb_dlprof_plugin.fleet.answers.collectives import all_reduce_ns, bus_gb_s, link_gb_s
from tb_dlprof_plugin.fleet.answers.replay import Course, Times, replay, waves
from tb_dlprof_plugin.fleet.answers.scenarios import Scenarios
from tb_dlprof_plugin.fleet.job import WhatIf
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Operation, RankFacts
from tb_dlprof_plugin.metrics.parallel_settings import DDP
from tb_dlprof_plugin.model.profile import Floats, Ints

DEFAULT_BYTES = 25 << 20
"""PyTorch's default of ``bucket_cap_mb``."""
_LARGE_BYTES = 100 << 20
_SLOWDOWN = (0.05, 0.4, 0.8)
"""Time that an exchange adds to kernels next to it, per time of its own, where the recording does not show it. On two
H200s 0.12 over the host's memory, 0.34 of the recorded steps over NVLink, and 0.52 of the steps without a profiler."""
_OF_RECORDED = (0.5, 1.0, 2.0)
"""The interval of a recorded slowdown: that of the steps without the profiler was 1.5 times as large."""
_SEEN = 0.3
"""Share of the transfers next to which kernels have to run before the recording shows what they cost."""
_FASTER = 2.0
"""The most by which large buckets are faster than the recorded ones. Ours: 1.2 GB at once took 1.2 times as few ns a
byte on two H200s as 64 MB next to kernels."""
_TURNS = 3
_APART = 1.5
"""The largest bucket over the smallest one, from which the recording shows a latency in addition to the bandwidth."""


@dataclass(frozen=True, slots=True)
class _Link:
    """Time of a bucket: ``latency_ns`` and its bytes at ``ns_per_byte``."""

    latency_ns: float
    ns_per_byte: float


class _Replays:
    """Replays of a job with buckets of several sizes."""

    def __init__(self, scenarios: Scenarios, atoms: Atoms) -> None:
        self._scenarios, self.atoms = scenarios, atoms
        self._prepared: dict[int | None, tuple[Bucketed, Course]] = {}
        self._before: dict[float, float] = {}

    def sizes(self, cap: int) -> list[tuple[int, ...]]:
        """Bytes of the buckets of each exchange."""
        buckets = self._with(cap)[0]
        count = len(buckets.bytes) // self.atoms.calls.ranks
        size, exchange = buckets.bytes[:count], buckets.exchange[:count]
        return [tuple(size[exchange == number].tolist()) for number in range(int(exchange.max()) + 1)]

    def step_ms(self, cap: int, slowdown: float, link: _Link) -> float | None:
        """The job's step with buckets that are exchanged when they have this many bytes."""
        if slowdown not in self._before:
            self._before[slowdown] = _replayed_ns(*self._with(None), slowdown, link)
        before, after = self._before[slowdown], _replayed_ns(*self._with(cap), slowdown, link)
        step = self._scenarios.step
        return step.ms * after / before if before and step is not None else None

    def _with(self, cap: int | None) -> tuple[Bucketed, Course]:
        if cap not in self._prepared:
            buckets = bucketed(self.atoms, cap)
            self._prepared[cap] = buckets, Course(buckets.calls, waves(buckets.calls))
        return self._prepared[cap]


def other_buckets(facts: Sequence[RankFacts], scenarios: Scenarios) -> tuple[list[WhatIf], list[str]]:
    """The job's step with other buckets, and notes: why it is not known."""
    if scenarios.step is None or len(facts) < 2 or any(rank.wrapper != DDP for rank in facts):
        return [], []
    replays = _replays(scenarios)
    if isinstance(replays, str):
        return [], [f"Other bucket sizes of DDP: {replays}, so what they change is unknown."]
    return _rows(facts, scenarios, replays), []


def bucket_row(scenarios: Scenarios, cap: int) -> WhatIf | None:
    """The job's step with buckets of this many bytes; None where it is not known, or they are the recorded ones."""
    replays = _replays(scenarios)
    if isinstance(replays, str) or replays[scenarios].sizes(cap) == replays[scenarios].atoms.buckets:
        return None
    return _row(scenarios, replays, cap)


def _replays(scenarios: Scenarios) -> dict[Scenarios, _Replays] | str:
    """Of each pace of the hosts, or why there are none."""
    result: dict[Scenarios, _Replays] = {}
    for paced in scenarios.paces:
        if not paced.replayed.paths.launches:
            return "launches on a GPU were not recorded, or only one step"
        atoms = atoms_of(paced.facts, paced.replayed, paced.faster)
        if isinstance(atoms, str):
            return atoms
        result[paced] = _Replays(paced, atoms)
    return result


def _rows(facts: Sequence[RankFacts], scenarios: Scenarios, replays: dict[Scenarios, _Replays]) -> list[WhatIf]:
    replayed = replays[scenarios]
    recorded = replayed.atoms.buckets
    whole = max(sum(exchange) for exchange in recorded)
    cap = min(_capacity(facts[0], replayed), whole)
    asked = sorted({cap // 2, min(cap * 2, whole), DEFAULT_BYTES, _LARGE_BYTES})
    done, rows = [_counts(recorded)], []
    for each in (whole, *(size for size in asked if 0 < size < whole)):
        counts = _counts(replayed.sizes(each))
        if counts in done:
            continue
        done.append(counts)
        row = _row(scenarios, replays, each)
        if row is not None:
            rows.append(row)
    return rows


def _capacity(rank: RankFacts, replayed: _Replays) -> int:
    """Bytes at which a bucket is full: as recorded, else PyTorch's default where it gives the recorded buckets."""
    recorded = replayed.atoms.buckets
    if rank.bucket_bytes != UNKNOWN:
        return rank.bucket_bytes
    # By default the first bucket is full with 1 MiB.
    with_default = zip(_counts(recorded), _counts(replayed.sizes(DEFAULT_BYTES)), strict=True)
    if all(count in (there, there - 1) for there, count in with_default):
        return DEFAULT_BYTES
    # A bucket is full when it has at least so many bytes; the last one need not be.
    return min((size for exchange in recorded for size in exchange[1:-1]), default=max(map(sum, recorded)))


def _counts(sizes: Sequence[tuple[int, ...]]) -> list[int]:
    return [len(exchange) for exchange in sizes]


def _row(scenarios: Scenarios, replays: dict[Scenarios, _Replays], cap: int) -> WhatIf | None:
    replayed = replays[scenarios]
    slowdowns, links = _slowdowns(replayed.atoms), _links(scenarios.facts, replayed.atoms)

    def asked(slowdown: int, link: int) -> Callable[[Scenarios], float | None]:
        return lambda paced: replays[paced].step_ms(cap, slowdowns[slowdown], links[link])

    counts = max(_counts(replayed.sizes(cap))), max(_counts(replayed.atoms.buckets))
    middle = scenarios.row(_name(*counts, cap), asked(1, 1))
    # Slower kernels make it shorter to exchange less next to them.
    corners = [scenarios.won_ms(asked(slowdown, link)) for slowdown in (0, 2) for link in (0, 2)]
    if middle is None or scenarios.step is None:
        return None
    ends = [scenarios.step.ms - won for won in corners if won is not None]
    return replace(middle, low_ms=min(middle.low_ms, *ends), high_ms=max(middle.high_ms, *ends))


def _name(buckets: int, before: int, cap: int) -> str:
    if buckets == 1:
        return f"all gradients in one bucket instead of {before}"
    return f"gradients in {buckets} buckets instead of {before} (bucket_cap_mb={max(round(cap / 2**20), 1)})"


def _replayed_ns(buckets: Bucketed, course: Course, slowdown: float, link: _Link) -> float:
    """The step, with kernels that are slower while gradients are exchanged."""
    calls = buckets.calls
    is_bucket = buckets.exchange >= 0
    own = calls.transfer.astype(np.float64)
    transfer = np.where(is_bucket & ~buckets.recorded, link.latency_ns + buckets.bytes * link.ns_per_byte, own)
    exchanges = int(buckets.exchange.max(initial=-1)) + 1
    of = np.where(is_bucket, calls.rank * exchanges + buckets.exchange, -1)
    count = exchanges * calls.ranks
    # Kernels run next to an exchange from its first bucket to its last.
    beside = is_bucket.copy()
    beside[np.unique(of, return_index=True)[1]] = False
    work = np.where(beside, np.maximum(buckets.paths.gpu, 0.0), 0.0)
    whole = _sum(of, work, count)
    share = np.divide(work, whole[of], out=np.zeros(len(work)), where=beside & (whole[of] > 0))
    more, step = np.zeros(len(work)), 0.0
    for _ in range(_TURNS):
        replayed = replay(course, Times(buckets.paths.with_less_work(-more), transfer))
        step = replayed.step
        hidden = np.maximum(_sum(of, transfer, count) - _sum(of, replayed.stalled, count), 0.0)
        more = slowdown * np.where(is_bucket, hidden[of], 0.0) * share
    return step


def _sum(of: Ints, column: Floats, count: int) -> Floats:
    """By exchange."""
    inside = of >= 0
    return np.bincount(of[inside], weights=column[inside], minlength=count).astype(np.float64)


def _slowdowns(atoms: Atoms) -> tuple[float, ...]:
    """Time that an exchange adds to kernels next to it, per time of its own: low, expected, high."""
    calls = atoms.calls
    own = np.unique(atoms.row[atoms.exchange >= 0])
    rows = (calls.first[:-1, None] + own[None, :]).reshape(-1)
    beside = float((calls.duration - calls.exposed)[rows].sum())
    if beside < _SEEN * float(calls.transfer[rows].sum()):
        return _SLOWDOWN
    # What the last gradients' calls cost shows in the calls after them.
    recorded = float(atoms.contended.sum()) / beside
    return tuple(factor * recorded for factor in _OF_RECORDED)


def _links(facts: Sequence[RankFacts], atoms: Atoms) -> tuple[_Link, ...]:
    """How long buckets take: fewest, expected, most. Larger ones may go as fast as the link."""
    calls = atoms.calls
    own, place = np.unique(atoms.row[atoms.exchange >= 0], return_inverse=True)
    size = np.bincount(place, weights=atoms.bytes[atoms.exchange >= 0])
    taken = np.maximum(calls.transfer[calls.first[0] + own].astype(np.float64), 1.0)
    members = max(int(np.bincount(calls.collective).max()), 2)
    least = all_reduce_ns(members, hosts=len({rank.host for rank in facts}))
    ns_per_byte = float(np.min(taken / size))
    latency = least
    if size.max() >= _APART * size.min():
        latency = max(float(np.median(taken - size * ns_per_byte)), least)
    usual = _Link(latency, ns_per_byte)
    at_best = link_gb_s(facts[0].gpu)
    one_byte = bus_gb_s(int(Operation.ALL_REDUCE), 1, members, 1.0) or 1.0
    fastest = min(ns_per_byte, max(one_byte / at_best, ns_per_byte / _FASTER)) if at_best else ns_per_byte
    slowest = float(np.median(taken / size))
    return _Link(latency, fastest), usual, _Link(latency, max(slowest, ns_per_byte))
