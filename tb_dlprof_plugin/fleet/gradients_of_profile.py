"""When gradients that DistributedDataParallel exchanges are ready, from a profile: `rank_facts.Gradients`.

Autograd accumulates one gradient after the other, and DDP's reducer puts each into its bucket. Both are ops with the
gradient's shape, so that a bucket's all-reduce is the one of as many bytes that follows them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.calls_of_profile import CommunicationCalls
from tb_dlprof_plugin.fleet.paths_of_profile import Moments, RankGpuWork, paths_between
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Gradients, Operation
from tb_dlprof_plugin.metrics.communication import input_bytes
from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.names.parallel_ranges import DDP_FORWARD, INTO_BUCKET
from tb_dlprof_plugin.profile_view import ProfileView

_ACCUMULATED = "torch::autograd::AccumulateGrad"
"""Where a gradient is a view of its bucket already, the reducer has no op that is named after it."""
MOST_PARTS = 64
"""Rows of an exchange. Ours: buckets are then right within 2 % of all bytes."""
_MOST_ROWS = 1920
"""In all steps: of the last of them where there are more."""
_ALIKE = 0.05
"""Relative difference between a bucket's bytes and those of its gradients, for padding and unused parameters."""
_OF_HOOK = (1.0, 0.5)
"""Bytes that are exchanged over those of the gradients: a hook may send half of them (``bf16_compress_hook``)."""


@dataclass(frozen=True, slots=True)
class _Bucket:
    """An all-reduce with the gradients that it exchanges.

    Attributes:
        row: of the calls.
        exchange: number in the iteration.
        until: when each of its parts but the last is in the bucket, on the host.
        bytes: of each part.
    """

    row: int
    exchange: int
    until: list[int]
    bytes: list[int]


def gradients_of(view: ProfileView, work: RankGpuWork, calls: CommunicationCalls) -> Gradients:
    """The gradients of the steps whose every exchange is understood; none without launches or shapes.

    Args:
        view: of the profile.
        work: what the GPU ran besides communication.
        calls: of the GPU, in order of start.
    """
    if not len(calls.iteration) or (calls.launched_ns == UNKNOWN).any():
        return Gradients()
    # Of parameters that are not exchanged gradients are accumulated, too.
    of_ops = [_all_buckets(view, calls, names) for names in (INTO_BUCKET, (_ACCUMULATED,))]
    best = max(of_ops, key=len)
    return _table(view, work, calls, best) if best else Gradients()


def _all_buckets(view: ProfileView, calls: CommunicationCalls, names: tuple[str, ...]) -> list[_Bucket]:
    """Those of the last steps, by the ops with these names."""
    marks = _marks(view, names)
    forward = np.sort(view.profile.calls.start_ns[_rows_of(view, (DDP_FORWARD,))])
    kept: list[_Bucket] = []
    if marks is None or not len(forward):
        return kept
    marks_of, nothing = dict(rows_of_each(marks[0])), np.zeros(0, dtype=np.int64)
    for iteration, rows in reversed(list(rows_of_each(calls.iteration))):
        here = marks_of.get(iteration, nothing)
        own = _buckets(calls, rows, marks[1][here], marks[2][here], forward)
        if sum(len(bucket.bytes) for bucket in (*kept, *own)) > _MOST_ROWS:
            break
        kept = own + kept
    return kept


def _rows_of(view: ProfileView, names: tuple[str, ...]) -> Ints:
    """Rows of the calls of ops with one of these names."""
    return np.flatnonzero(view.profile.ops_named(lambda name: name in names)[view.profile.calls.op])


def _marks(view: ProfileView, names: tuple[str, ...]) -> tuple[Ints, Ints, Ints] | None:
    """Iteration, end on the host and bytes of each gradient's op, in order; None where they are not known."""
    rows = _rows_of(view, names)
    rows = rows[view.call_iteration[rows] >= 0]
    calls = view.profile.calls
    end = calls.start_ns[rows] + calls.duration_ns[rows]
    order = np.argsort(end, kind="stable")
    rows, end = rows[order], end[order]
    of_op = {
        op: input_bytes(view.profile.shapes_of(op)[:1], view.profile.dtypes_of(op)[:1])
        for op in np.unique(calls.op[rows]).tolist()
    }
    size = np.array([of_op[op] for op in calls.op[rows].tolist()], dtype=np.int64)
    return None if not len(rows) or (size < 0).any() else (view.call_iteration[rows], end, size)


def _buckets(calls: CommunicationCalls, rows: Ints, end: Ints, size: Ints, forward: Ints) -> list[_Bucket]:
    """The buckets of an iteration, whose calls ``rows`` are; none where one of its exchanges has gradients that no
    all-reduce fits."""
    rows = rows[calls.operation[rows] == Operation.ALL_REDUCE]
    rows = rows[np.argsort(calls.launched_ns[rows], kind="stable")]
    exchange = np.searchsorted(forward, calls.launched_ns[rows], side="right")
    of_mark = np.searchsorted(forward, end, side="right")
    earlier = int(exchange.min(initial=len(forward)))
    result: list[_Bucket] = []
    for number in np.unique(exchange).tolist():
        marks = np.flatnonzero(of_mark == number)
        sum_of = np.r_[0, np.cumsum(size[marks])]
        target = int(sum_of[-1]) // MOST_PARTS
        at = 0
        for row in rows[exchange == number].tolist():
            until = int(np.searchsorted(end[marks], calls.launched_ns[row], side="right"))
            wanted, summed = int(calls.bytes[row]), int(sum_of[until] - sum_of[at])
            share = next((factor for factor in _OF_HOOK if abs(summed * factor - wanted) <= _ALIKE * wanted), None)
            if share is None or until == at:
                continue
            parts, moments = _parts(size[marks[at:until]], end[marks[at:until]], target)
            scaled = [round(part * wanted / summed) for part in parts]
            scaled[-1] += wanted - sum(scaled)
            result.append(_Bucket(row, number - earlier, moments, scaled))
            at = until
        # With no_sync() a backward pass exchanges nothing.
        if at and at < len(marks):
            return []
    return result


def _parts(size: Ints, end: Ints, target: int) -> tuple[list[int], list[int]]:
    """Bytes of the parts, each at least ``target`` but for the last one, and when each but the last ends."""
    parts, moments, open_bytes = [], [], 0
    for one, at in zip(size.tolist(), end.tolist(), strict=True):
        open_bytes += one
        if open_bytes >= target:
            parts.append(open_bytes)
            moments.append(at)
            open_bytes = 0
    if open_bytes:
        parts.append(open_bytes)
    return parts, moments[: len(parts) - 1]


def _table(view: ProfileView, work: RankGpuWork, calls: CommunicationCalls, buckets: list[_Bucket]) -> Gradients:
    """The rows with the paths from each to the next, the other calls being moments, too."""
    of_row = {bucket.row: bucket for bucket in buckets}
    start: list[int] = []
    launched: list[int] = []
    row_at: list[int] = []
    for row in range(len(calls.iteration)):
        moments = [*(of_row[row].until if row in of_row else ()), int(calls.launched_ns[row])]
        launched += moments
        start += [int(calls.start_ns[row])] * len(moments)
        row_at += [row] * len(moments)
    paths = paths_between(view, work, Moments(np.array(start), np.array(launched)))
    place = np.zeros(len(calls.iteration), dtype=np.int64)
    for _, own in rows_of_each(calls.iteration):
        place[own] = np.arange(len(own))
    at = np.array(row_at)
    chosen = np.isin(at, list(of_row))
    rows: Ints = at[chosen]
    return Gradients(
        iteration=calls.iteration[rows],
        call=place[rows],
        exchange=np.array([of_row[one].exchange for one in rows.tolist()], dtype=np.int64),
        bytes=np.concatenate([of_row[one].bytes for one in sorted(of_row)]).astype(np.int64),
        **{name: column[chosen] for name, column in paths.items()},
    )
