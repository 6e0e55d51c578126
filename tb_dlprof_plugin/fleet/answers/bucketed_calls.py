"""The calls of a job with DDP's gradients in other buckets: which all-reduces there are, and the paths to each.

Ranks put gradients into buckets in one order, and a bucket is exchanged when its last gradient is in it. So the calls
of other buckets are runs of the recorded gradients (`rank_facts.Gradients`), and the paths to them those of the runs,
one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.fleet.answers.call_paths import PathTimes, lacks_paths
from tb_dlprof_plugin.fleet.answers.calls import JobCalls
from tb_dlprof_plugin.fleet.rank_facts import NO_PATH, PATHS, UNPROFILED, RankFacts
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints

MOST_ATOMS = 200_000
"""Calls and gradients of all ranks: more take seconds."""


@dataclass(frozen=True, slots=True)
class Atoms:
    """Calls and, of calls that exchange gradients, these, in order. They are the same ones on all ranks.

    Attributes:
        calls: as recorded.
        row: of each atom the call that it belongs to, counted on its rank.
        bytes: of gradients; 0 of other calls.
        exchange: number of the exchange in all steps; -1 of other calls.
        paths: of all atoms of the first rank, then of the second, ...
        contended: part of the GPU's path that communication makes longer.
    """

    calls: JobCalls
    row: Ints
    bytes: Ints
    exchange: Ints
    paths: PathTimes
    contended: Floats

    @property
    def buckets(self) -> list[tuple[int, ...]]:
        """Bytes of the recorded buckets of each exchange."""
        result = []
        for number in range(int(self.exchange.max(initial=-1)) + 1):
            own = self.exchange == number
            rows, at = np.unique(self.row[own], return_inverse=True)
            result.append(tuple(np.bincount(at, weights=self.bytes[own], minlength=len(rows)).astype(int).tolist()))
        return result


@dataclass(frozen=True, slots=True)
class Bucketed:
    """The calls with other buckets, in the order of `JobCalls`.

    Attributes:
        calls: with the collectives and streams of these; times only where a replay needs them.
        paths: to each, without what communication costs the kernels next to it.
        bytes: of the bucket; 0 of other calls.
        exchange: of a bucket; -1 of other calls.
        recorded: the call is a recorded one, with its transfer.
    """

    calls: JobCalls
    paths: PathTimes
    bytes: Ints
    exchange: Ints
    recorded: Bools


def atoms_of(facts: Sequence[RankFacts], calls: JobCalls, faster: Floats) -> Atoms | str:
    """The atoms of a job, or a sentence why they are not known.

    Args:
        facts: of all ranks.
        calls: of some steps, of which the first only begins the replay.
        faster: of `CallPaths.between`.
    """
    if any(not len(rank.gradients) or lacks_paths(rank.gradients).any() for rank in facts):
        return "the recording does not show when each gradient was ready (it takes shapes and launches)"
    if len(calls.rank) + sum(len(rank.gradients) for rank in facts) > MOST_ATOMS:
        return "the job has too many calls"
    of_rank = [_atoms_of_rank(rank, calls, index) for index, rank in enumerate(facts)]
    row, size, exchange, _ = of_rank[0]
    if not (exchange >= 0).any():
        return "gradients and steps of the recording do not fit together"
    for index, other in enumerate(of_rank):
        at = calls.of_rank(index)
        same = all(np.array_equal(mine, its) for mine, its in zip((row, size, exchange), other[:3], strict=True))
        if not same or not np.array_equal(calls.operation[at], calls.operation[calls.of_rank(0)]):
            return "the ranks exchange different gradients"
    paths = calls.paths
    whole = paths.between(faster)
    columns: list[list[Floats]] = [[] for _ in PATHS]
    contended = []
    for index, (rank, (_, _, _, gradient)) in enumerate(zip(facts, of_rank, strict=True)):
        at = calls.of_rank(index)
        is_gradient = gradient >= 0
        for of_column, name, column in zip(columns, PATHS, whole.columns, strict=True):
            recorded, expected = (
                _known(getattr(rank.gradients, prefix + name)[gradient[is_gradient]]) for prefix in ("", UNPROFILED)
            )
            here = column[at][row]
            both = np.isfinite(recorded) & np.isfinite(expected)
            moved = np.where(both, expected, 0.0) - np.where(both, recorded, 0.0)
            here[is_gradient] = np.where(both, recorded + faster[index] * moved, -np.inf)
            of_column.append(here)
        gpu = np.maximum(columns[0][-1], 0.0)
        whole_gpu = np.bincount(row, weights=gpu)[row]
        share = np.divide(gpu, whole_gpu, out=np.ones(len(gpu)), where=is_gradient & (whole_gpu > 0))
        contended.append(paths.contended[at][row] * share)
    return Atoms(
        calls,
        row,
        size,
        exchange,
        PathTimes(*(np.concatenate(column) for column in columns)),
        np.concatenate(contended),
    )


def _known(column: Ints) -> Floats:
    return np.where(column == NO_PATH, -np.inf, column.astype(np.float64))


def _atoms_of_rank(rank: RankFacts, calls: JobCalls, index: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Of each atom its call, bytes, exchange and row of the gradients, -1 for none."""
    at, parts = calls.of_rank(index), rank.gradients
    rows, step = calls.row[at], calls.step[at]
    iteration = rank.collectives.iteration
    order = np.argsort(iteration, kind="stable")
    sorted_iteration = iteration[order]
    place = np.empty(len(iteration), dtype=np.int64)
    place[order] = np.arange(len(order)) - np.searchsorted(sorted_iteration, sorted_iteration)
    of_call: dict[tuple[int, int], list[int]] = {}
    for part, key in enumerate(zip(parts.iteration.tolist(), parts.call.tolist(), strict=True)):
        of_call.setdefault(key, []).append(part)
    numbers: dict[tuple[int, int], int] = {}
    result: list[tuple[int, int, int, int]] = []
    for row, (of_facts, of_step) in enumerate(zip(rows.tolist(), step.tolist(), strict=True)):
        own = of_call.get((int(iteration[of_facts]), int(place[of_facts])), []) if of_step else []
        if not 0 < int(parts.bytes[own].sum()) == rank.collectives.bytes[of_facts]:
            # Another call than the one whose gradients these are.
            own = []
        for part in own:
            exchange = numbers.setdefault((of_step, int(parts.exchange[part])), len(numbers))
            result.append((row, int(parts.bytes[part]), exchange, part))
        if not own:
            result.append((row, 0, -1, -1))
    columns = np.array(result, dtype=np.int64).reshape(-1, 4)
    return columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3]


def bucketed(atoms: Atoms, cap: int | None) -> Bucketed:
    """The calls with buckets that are exchanged when they have this many bytes; None: as recorded.

    Only the last bucket of an exchange is waited for: it ends after the others, which are on its stream.
    """
    calls = atoms.calls
    ends = _ends(atoms, cap)
    begins = np.r_[0, np.flatnonzero(ends[:-1]) + 1]
    last = np.flatnonzero(ends)
    exchange = atoms.exchange[last]
    # Gradients that are followed by another call are in the bucket that is full after it.
    until = np.cumsum(atoms.bytes)[last]
    buckets = np.flatnonzero(exchange >= 0)
    size = np.zeros(len(last), dtype=np.int64)
    size[buckets] = np.diff(until[buckets], prepend=0)
    columns = _composed(atoms, begins, last)
    row = atoms.row[last]
    # Several buckets of one recorded call differ in their place before its end.
    before_last = _place_from_end(row)
    recorded = size == np.bincount(atoms.row, weights=atoms.bytes).astype(np.int64)[row]
    closes = _last_of_exchange(exchange)
    source = (calls.first[:-1, None] + row[None, :]).reshape(-1)
    ranks = calls.ranks
    inside = np.tile((exchange >= 0) & ~closes, ranks)
    ready = calls.ready[source]
    key = calls.collective[source] * (int(before_last.max(initial=0)) + 1) + np.tile(before_last, ranks)
    changed = replace(
        calls,
        first=np.arange(ranks + 1) * len(row),
        collective=np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64),
        blocks=np.where(inside, False, calls.blocks[source] | np.tile(closes, ranks)),
        block=np.where(inside, ready, calls.block[source]),
        **{
            name: getattr(calls, name)[source]
            for name in (
                "rank", "row", "step", "coupled", "leads", "operation", "bytes", "duration", "exposed", "transfer",
                "waiting", "bubble", "ready", "gap", "idle", "stream", "stop", "lead",
            )
        },
    )  # fmt: skip
    return Bucketed(
        changed, PathTimes(*columns), np.tile(size, ranks), np.tile(exchange, ranks), np.tile(recorded, ranks)
    )


def _ends(atoms: Atoms, cap: int | None) -> Bools:
    """Of each atom whether a call ends with it."""
    after = np.r_[atoms.row[1:], -1]
    ends: Bools = atoms.row != after
    if cap is None:
        return ends
    result = np.where(atoms.exchange >= 0, _last_of_exchange(atoms.exchange), ends)
    filled, of = 0, -1
    for at in np.flatnonzero(atoms.exchange >= 0).tolist():
        filled = (filled if atoms.exchange[at] == of else 0) + int(atoms.bytes[at])
        of = int(atoms.exchange[at])
        if filled >= cap:
            result[at], filled = True, 0
    return result


def _last_of_exchange(exchange: Ints) -> Bools:
    result = np.zeros(len(exchange), dtype=np.bool_)
    rows = np.flatnonzero(exchange >= 0)
    # Exchanges are one after the other.
    result[rows[np.r_[exchange[rows][1:] != exchange[rows][:-1], [True] * (len(rows) > 0)].astype(np.bool_)]] = True
    return result


def _place_from_end(row: Ints) -> Ints:
    """Of each entry how many further ones of the same row follow it."""
    after = np.r_[row[1:] != row[:-1], True]
    last_of = np.flatnonzero(after)[np.cumsum(np.r_[0, after[:-1]])]
    return last_of - np.arange(len(row))


def _composed(atoms: Atoms, begins: Ints, last: Ints) -> list[Floats]:
    """The paths through runs of atoms, without contention: the product of their matrices in the max-plus algebra."""
    ranks = atoms.calls.ranks
    shape = (ranks, len(atoms.row))
    gpu, after_host, host, after_gpu = (
        column.reshape(shape) for column in atoms.paths.with_less_work(atoms.contended).columns
    )
    result = [column[:, begins].copy() for column in (gpu, after_host, host, after_gpu)]
    length = last - begins + 1
    for turn in range(1, int(length.max(initial=1))):
        longer = np.flatnonzero(length > turn)
        at = begins[longer] + turn
        gpu_gpu, host_gpu, host_host, gpu_host = (column[:, longer] for column in result)
        result[0][:, longer] = np.maximum(gpu_gpu + gpu[:, at], gpu_host + after_host[:, at])
        result[1][:, longer] = np.maximum(host_gpu + gpu[:, at], host_host + after_host[:, at])
        result[2][:, longer] = np.maximum(host_host + host[:, at], host_gpu + after_gpu[:, at])
        result[3][:, longer] = np.maximum(gpu_host + host[:, at], gpu_gpu + after_gpu[:, at])
    return [column.reshape(-1) for column in result]
