"""Collectives of a job by operation, parallel dimension, size and module: transfer, waiting and what binds each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.fleet.answers.bandwidth import bus_gb_s, link_gb_s
from tb_dlprof_plugin.fleet.answers.calls import Calls
from tb_dlprof_plugin.fleet.answers.numbering import numbered
from tb_dlprof_plugin.fleet.job import CollectiveRow
from tb_dlprof_plugin.fleet.rank_facts import SYNCHRONISING, UNKNOWN, Operation, RankFacts
from tb_dlprof_plugin.model.profile import Ints

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


def collective_rows(facts: Sequence[RankFacts], calls: Calls) -> list[CollectiveRow]:
    """Rows with most exposed time first. Times are means per step and rank that takes part (ms)."""
    if not len(calls.rank):
        return []
    names: list[tuple[str, str]] = [("", "")]
    number_of: dict[tuple[str, str], int] = {("", ""): 0}
    kind, size, members = (np.zeros(len(calls.rank), dtype=np.int64) for _ in range(3))
    # Ranks of one program have the very same columns: they are numbered once.
    seen: tuple[Ints, Ints, Ints] | None = None
    found: tuple[Ints, Ints] | None = None
    for index, one in enumerate(facts):
        at = calls.of_rank(index)
        rows = calls.row[at]
        table = one.collectives
        dimension = [group.dimension or group.description for group in one.groups] + [""]
        group, module = table.group[rows], table.module[rows]
        same = seen is not None and table.group is seen[0] and table.module is seen[1] and np.array_equal(rows, seen[2])
        if found is None or not same:
            seen, found = (table.group, table.module, rows), numbered(group, module)
        pairs, examples = found
        own_kind = np.zeros(len(examples), dtype=np.int64)
        for pair_number, row in enumerate(examples.tolist()):
            pair = (int(group[row]), int(module[row]))
            name = (dimension[pair[0]], one.strings[pair[1]] if pair[1] != UNKNOWN else "")
            if name not in number_of:
                number_of[name] = len(names)
                names.append(name)
            own_kind[pair_number] = number_of[name]
        kind[at] = own_kind[pairs]
        size[at] = table.bytes[rows]
        counts = np.array([len(each.members) for each in one.groups] + [0])
        members[at] = counts[group]
    joined = np.bincount(calls.collective)[calls.collective]
    members = np.maximum(members, joined)
    sizes = np.searchsorted([limit for limit, _ in _SIZES], size, side="left")
    sizes[size < 0] = -1
    number, example = numbered(calls.operation, kind, sizes)
    order = np.argsort(number, kind="stable")
    bounds = np.searchsorted(number[order], np.arange(len(example) + 1))
    rates = _rates(calls.operation, size, members, calls.transfer)
    link = {link_gb_s(one.gpu) for one in facts}
    hosts = {one.host for one in facts}
    attainable = link.pop() if len(link) == 1 and len(hosts) == 1 else None
    result = []
    for index, at in enumerate(example.tolist()):
        here = order[bounds[index] : bounds[index + 1]]
        operation, name, size_class = int(calls.operation[at]), names[kind[at]], int(sizes[at])
        result.append(_row(calls, here, operation, name, size_class, size, rates, attainable))
    return sorted(result, key=lambda row: -row.exposed_ms)


def _row(
    calls: Calls,
    here: Ints,
    operation: int,
    name: tuple[str, str],
    size_class: int,
    size: Ints,
    rates: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    link: float | None,
) -> CollectiveRow:
    ranks = int(np.count_nonzero(np.bincount(calls.rank[here])))
    per = 1e6 * ranks * max(calls.steps, 1)
    transfer, waiting = float(calls.transfer[here].sum()), float((calls.duration - calls.transfer)[here].sum())
    known = rates[here][(rates[here] > 0) & (size[here] >= _LATENCY_BYTES)]
    exposed = np.clip(calls.exposed[here] - calls.waiting[here], 0, calls.transfer[here])
    hidden = transfer - float(exposed.sum())
    bus = float(np.median(known)) if len(known) else None
    return CollectiveRow(
        operation=Operation(operation).name.lower(),
        dimension=name[0],
        size="" if size_class < 0 else _SIZES[size_class][1] if size_class < len(_SIZES) else "over 256 MiB",
        module=name[1],
        calls_per_step=len(here) / ranks / max(calls.steps, 1),
        bytes=int(size[here].sum() / ranks / max(calls.steps, 1)) if size[here].min() >= 0 else None,
        transfer_ms=transfer / per,
        waiting_ms=None if operation in SYNCHRONISING and not calls.coupled[here].any() else waiting / per,
        exposed_ms=float(calls.exposed[here].sum()) / per,
        bus_gb_s=bus,
        attainable_gb_s=max(float(known.max()), link or 0.0) if len(known) else None,
        verdict=_verdict(calls, here, transfer, waiting),
        # More than that is no statement about a link.
        hiding_gb_s=None if bus is None or hidden < _LEAST_HIDDEN * transfer else bus * transfer / hidden,
    )


def _verdict(calls: Calls, here: Ints, transfer: float, waiting: float) -> str:
    if not calls.coupled[here].any() or len(here) < FEW_CALLS or not transfer + waiting:
        return "inconclusive"
    share = waiting / (transfer + waiting)
    if share >= SKEW:
        return "skew-bound"
    return "transfer-bound" if share <= TRANSFER else "mixed"


def _rates(
    operation: Ints, size: Ints, members: Ints, transfer: Ints
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Bus bandwidth of each call in GB/s, 0 where unknown."""
    number, example = numbered(operation, members)
    units = [bus_gb_s(int(operation[at]), 1, int(members[at]), 1.0) or 0.0 for at in example.tolist()]
    factor = np.array(units)[number]
    return np.where(size > 0, size * factor / np.maximum(transfer, 1), 0.0)
