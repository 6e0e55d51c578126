"""Where a rank's step goes, how far it is from the best, and how much work that is.

Compute, transfer, waiting, bubble and host add up to the step. The factors of efficiency are the POP metrics
(Performance Optimisation and Productivity, https://pop-coe.eu/node/69), in which useful time is a rank's own time: all
but exposed communication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tb_dlprof_plugin.fleet.answers.calls import JobCalls
from tb_dlprof_plugin.fleet.answers.scenarios import Scenarios
from tb_dlprof_plugin.fleet.chosen_steps import among
from tb_dlprof_plugin.fleet.job import Efficiency, Heat, JobStep, JobWork, RankAccount
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, RankFacts
from tb_dlprof_plugin.model.profile import Bools, Ints
from tb_dlprof_plugin.names.gpu_peaks import ceilings_of

_PARTS = ("compute", "transfer", "waiting", "bubble", "host")


@dataclass(frozen=True, slots=True)
class Recorded:
    """Of each rank, sums over the chosen steps as recorded (ns): ``step`` is the sum of the other columns."""

    step: Ints
    compute: Ints
    transfer: Ints
    waiting: Ints
    bubble: Ints
    host: Ints


def recorded_account(facts: Sequence[RankFacts], calls: JobCalls) -> Recorded:
    """Exact in ns. ``host`` is the time in which the GPU ran no kernel: it idled, or copied what the host gave it.

    Waiting never exceeds the exposed communication that the rank's own steps state; the rest of that is transfer.
    """
    bubble = calls.per_rank(np.where(calls.bubble, calls.waiting, 0)).astype(np.int64)
    waiting = calls.per_rank(np.where(calls.bubble, 0, calls.waiting)).astype(np.int64)
    return _recorded(*_sums(facts, calls.numbers), waiting, bubble)


def recorded_account_of_all(facts: Sequence[RankFacts], compared: Ints, recorded: Recorded, numbers: Ints) -> Recorded:
    """That of all ranks where the calls of some were compared: the transfer of another rank is the median of those that
    make as many calls, and the rest of its exposed communication is waiting and bubble in their proportion.

    Args:
        facts: of all ranks.
        compared: indices of those that were compared.
        recorded: their account.
        numbers: of the steps.
    """
    step, compute, communication = _sums(facts, numbers)
    count = np.array([len(rank.collectives) for rank in facts])
    waiting, bubble = np.zeros_like(step), np.zeros_like(step)
    for number in np.unique(count):
        here, own = np.flatnonzero(count == number), count[compared] == number
        # Ranks like none that was compared are as all that were.
        own = own if own.any() else np.ones_like(own)
        rest = np.maximum(communication[here] - int(np.median(recorded.transfer[own])), 0)
        both = max(int((recorded.waiting + recorded.bubble)[own].sum()), 1)
        bubble[here] = rest * (int(recorded.bubble[own].sum()) / both)
        waiting[here] = rest - bubble[here]
    waiting[compared], bubble[compared] = recorded.waiting, recorded.bubble
    return _recorded(step, compute, communication, waiting, bubble)


def _sums(facts: Sequence[RankFacts], numbers: Ints) -> tuple[Ints, Ints, Ints]:
    """Of each rank: steps, compute and exposed communication, over these steps."""
    sums = np.zeros((3, len(facts)), dtype=np.int64)
    for index, (rank, here) in enumerate(zip(facts, among(facts, numbers), strict=True)):
        steps = rank.steps
        sums[0, index] = (steps.end_ns - steps.start_ns)[here].sum()
        sums[1, index] = np.maximum(steps.compute_ns, 0)[here].sum()
        sums[2, index] = np.maximum(steps.communication_ns, 0)[here].sum()
    return sums[0], sums[1], sums[2]


def _recorded(step: Ints, compute: Ints, communication: Ints, waiting: Ints, bubble: Ints) -> Recorded:
    waiting = np.minimum(waiting, communication)
    bubble = np.minimum(bubble, communication - waiting)
    host = step - compute - communication
    return Recorded(step, compute, communication - waiting - bubble, waiting, bubble, host)


def account(
    facts: Sequence[RankFacts], recorded: Recorded, steps: int, step: JobStep | None, matched: Bools
) -> list[RankAccount]:
    """Means per step of each rank (ms), by rank; ``matched``: whether waiting of a rank is known apart from transfer.

    The profiler delays the host, and ranks that wait for it: what the recorded step is longer by is taken from the
    host's part, then from waiting, and what is left of it from all parts in proportion.
    """
    rows = []
    for index, rank in enumerate(facts):
        parts = {name: int(getattr(recorded, name)[index]) / 1e6 / max(steps, 1) for name in _PARTS}
        total = sum(parts.values())
        target = total if step is None else step.ms
        more = total - target
        for name in ("host", "waiting"):
            less = min(max(more, 0.0), max(parts[name], 0.0))
            parts[name] -= less
            more -= less
        left = sum(parts.values())
        if left > 0 and step is not None:
            parts = {name: value * target / left for name, value in parts.items()}
        is_known = matched[index] or not parts["transfer"]
        rows.append(
            RankAccount(
                rank=rank.rank,
                step_ms=sum(parts.values()),
                compute_ms=parts["compute"],
                transfer_ms=parts["transfer"],
                waiting_ms=parts["waiting"] if is_known else None,
                bubble_ms=parts["bubble"],
                host_ms=parts["host"],
            )
        )
    return sorted(rows, key=lambda row: row.rank)


_HOURS = 24


def efficiency(scenarios: Scenarios) -> Efficiency:
    """Unknown for one rank: nothing says what the others do."""
    calls, step = scenarios.calls, scenarios.step
    used = flops_utilization(scenarios.facts, step)
    if calls.ranks < 2 or not calls.coupled.any() or step is None or not scenarios.base_ns:
        return Efficiency(flops_utilization=used)
    own = scenarios.own_ns
    largest = min(float(own.max()), scenarios.base_ns)
    balance = float(own.mean()) / float(own.max()) if own.max() else None
    communication = largest / scenarios.base_ns
    free = scenarios.free_network_ms
    even = scenarios.even_ms
    wasted = None if even is None else max(1 - even / step.ms, 0.0)
    world = max(max(rank.world_size for rank in scenarios.facts), calls.ranks)
    no_gpus = all(rank.on_cpu for rank in scenarios.facts)
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
    for rank in facts:
        flops = rank.steps.matrix_flops
        peak = ceilings_of(rank.gpu)
        if not len(flops) or (flops < 0).any() or peak is None or not peak.bf16:
            return None
        done += float(flops.mean())
        possible += peak.bf16 * 1e12 * step.ms / 1e3
    return done / possible if done <= possible else None


_SAME_DATA = ("tp", "pp", "cp")
"""Dimensions whose ranks read the same samples."""


def job_work(facts: Sequence[RankFacts], mesh: Mapping[str, int], world_size: int) -> JobWork:
    """Samples, FLOPs and kernels of a step of the whole job.

    Args:
        facts: of the recorded ranks.
        mesh: size of each parallel dimension.
        world_size: ranks of the job, recorded or not.
    """
    return JobWork(_samples(facts, mesh, world_size), _flops(facts, world_size), _kernels(facts))


def _samples(facts: Sequence[RankFacts], mesh: Mapping[str, int], world_size: int) -> float | None:
    sizes = [rank.batch_size for rank in facts]
    if UNKNOWN in sizes:
        return None
    readers = world_size / prod(mesh.get(name, 1) for name in _SAME_DATA)
    return float(np.mean(sizes)) * readers


def _flops(facts: Sequence[RankFacts], world_size: int) -> float | None:
    if any(not len(rank.steps.matrix_flops) or (rank.steps.matrix_flops < 0).any() for rank in facts):
        return None
    mean = float(np.mean([rank.steps.matrix_flops.mean() for rank in facts]))
    return mean * world_size if mean > 0 else None


def _kernels(facts: Sequence[RankFacts]) -> int | None:
    hashes = np.unique(np.concatenate([rank.steps.work_hash for rank in facts]))
    return int(hashes[0]) if len(hashes) == 1 and hashes[0] > 0 else None


MOST_CELLS = 100_000
"""With up to seven characters a cell an answer stays below 1 MB."""


def heat(facts: Sequence[RankFacts], numbers: Ints) -> Heat | None:
    """Of the iterations with these numbers; None without any.

    Where there are more than `MOST_CELLS` cells, evenly spread iterations are shown.
    """
    if not len(numbers) or not facts:
        return None
    numbers = numbers[:: -(-len(facts) * len(numbers) // MOST_CELLS)]
    own = np.full((len(facts), len(numbers)), np.nan)
    for index, (rank, here) in enumerate(zip(facts, among(facts, numbers), strict=True)):
        rows = np.flatnonzero(here)
        place = np.searchsorted(numbers, rank.steps.number[rows])
        steps = rank.steps
        own[index, place] = (steps.end_ns - steps.start_ns - np.maximum(steps.communication_ns, 0))[rows]
    recorded = ~np.isnan(own).all(axis=0)
    middle = np.ones(len(numbers))
    middle[recorded] = np.maximum(np.nanmedian(own[:, recorded], axis=0), 1.0)
    percent = 100 * (own / middle - 1)
    return Heat(
        [rank.rank for rank in facts],
        numbers.tolist(),
        [[None if np.isnan(value) else round(value, 2) for value in row] for row in percent.tolist()],
    )
