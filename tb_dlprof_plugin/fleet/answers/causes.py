"""Why a rank is late: what it has more of than ranks with the same work, in the steps in which others wait.

More GPU time at equal kernels is a slow GPU, more time in other kernels uneven data or experts, more idle time the
host: its data loader, the garbage collector, or what it runs.

A host that does not wait for its GPU runs ahead, and its lead stays for good: a rank that began 40 ms later is last in
every collective though its host is as fast. The hosts' own pace tells them apart, or a host that waits for its GPU in
every step, which has no lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.job import Cause
from tb_dlprof_plugin.fleet.rank_facts import Operation, RankFacts
from tb_dlprof_plugin.model.profile import Floats, Ints

SLOWER = 1.02
"""Kernels at equal shapes, from which a GPU is slower than the others: GPUs of one kind differ by about 1 %."""
EQUAL_WORK, MORE_WORK = 0.02, 0.05
"""Shares of a rank's GPU work: up to the first equal work differs by itself, from the second on more of it is a cause
even where the GPU idles longer as well."""
MORE_SENT = 1.02
"""Bytes exchanged over those of the others, from which experts get more tokens."""
SAME_KERNELS = 0.8
"""Share of the others' launches that a rank makes too, at the same shapes, from which it does their work and more."""
EVEN_HOSTS = 0.03
"""Share of the step by which hosts with the same work differ in what they do between launches."""
STEADY = 0.5
"""Standard deviation over mean of the additional work of a step, below which it is the same in every step."""
EXPLAINED = 0.5
"""Share of a rank's additional time that a measured pause must explain to be its cause."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A cause in a sentence. ``measured``: the recording shows the cause itself, not only that the rank is late."""

    cause: Cause
    why: str
    measured: bool


def cause_of(facts: Sequence[RankFacts], index: int, others: Ints, numbers: Ints, weight: Floats) -> Explained:
    """Why others wait for a rank.

    Args:
        facts: of all ranks.
        index: the rank's.
        others: indices of the ranks to compare with.
        numbers: steps that all of them recorded.
        weight: GPU time that others wait because of the rank, by step.
    """
    if not len(others) or not weight.sum():
        return Explained("unknown", "There is no other rank that does the same work.", False)
    share = weight / weight.sum()

    def more(column: str) -> Floats | None:
        own = _by_step(facts[index], column, numbers)
        rest = [_by_step(facts[other], column, numbers) for other in others.tolist()]
        if own is None or any(each is None for each in rest):
            return None
        return own - np.median(np.stack([each for each in rest if each is not None]), axis=0)

    work, idle, collector, loading = (more(name) for name in ("work_ns", "idle_ns", "garbage_ns", "input_ns"))
    work_ms, idle_ms, collector_ms, loading_ms = (
        0.0 if each is None else float(share @ each) / 1e6 for each in (work, idle, collector, loading)
    )
    if facts[index].on_cpu:
        return _on_cpu(facts, index, others, numbers, (work_ms, idle_ms, collector_ms, loading_ms))
    if max(work_ms, idle_ms) <= 0:
        return Explained("unknown", "It has neither more work on its GPU nor more idle time than the others.", False)
    # Idle time is no evidence against more work: the last rank's host is visible, that of the others is hidden where
    # they wait, and the profiler delays all of them.
    compute_ms = float(facts[index].steps.compute_ns.mean()) / 1e6
    if work is not None and idle_ms < work_ms < EQUAL_WORK * compute_ms:
        return Explained("unknown", "Its GPU has no more work than the others, and idles no longer.", False)
    if work is not None and (work_ms > idle_ms or work_ms >= MORE_WORK * compute_ms):
        return _of_gpu(facts, index, others, work_ms, work)
    # The CPU runs ahead of the GPU: others wait for a pause in the step after it, or after the recording's end.
    pauses = [0.0 if each is None else max(float(each.mean()) / 1e6, 0.0) for each in (collector, loading)]
    explained = _of_host(idle_ms, max(collector_ms, pauses[0]), max(loading_ms, pauses[1]))
    if explained.cause == "slow_host" and is_slower(facts, index, others, numbers) is False:
        return Explained(
            "unknown",
            f"Its GPU idles {idle_ms:.2f} ms a step longer than the others', whose hosts have a lead; but "
            "those hosts are no faster, so that this does not show that its own is slow.",
            False,
        )
    return explained


def of_slow_host(delay_ms: Floats, potential_ms: float, step_ms: float) -> Explained:
    """Whether a late host is slow, where its launches are recorded.

    Args:
        delay_ms: of `Scenarios.host_delay_ns`.
        potential_ms: what its repair wins.
        step_ms: the job's step.
    """
    mean = float(delay_ms.mean())
    if mean < max(EXPLAINED * potential_ms, EVEN_HOSTS * step_ms):
        return Explained(
            "unknown",
            "Its GPU idles longer than the others', but its host does no more than theirs: while the profiler records, "
            "hosts with the same work launch at different speeds.",
            False,
        )
    return Explained(
        "slow_host",
        f"Its host is busy with something else than launching {mean:.2f} ms a step longer than the others'.",
        True,
    )


def _on_cpu(
    facts: Sequence[RankFacts], index: int, others: Ints, numbers: Ints, more_ms: tuple[float, float, float, float]
) -> Explained:
    """Of a process without a GPU, whose pauses hide behind nothing.

    Args:
        facts: of all ranks.
        index: the rank's.
        others: indices of the ranks to compare with.
        numbers: steps that all of them recorded.
        more_ms: by how much longer than theirs it runs tensor ops, runs none, collects garbage, waits for input.
    """
    work_ms, idle_ms, collector_ms, loading_ms = more_ms
    if max(work_ms, idle_ms) <= 0:
        return Explained("unknown", "It computes no longer than the others, nor does it anything else longer.", False)
    if idle_ms >= work_ms:
        idle = f"{idle_ms:.2f} ms a step longer than the others it runs no tensor op"
        explained = _of_host(idle_ms, collector_ms, loading_ms, idle)
        if explained.cause != "slow_host":
            return explained
        return Explained("slow_host", f"Its process does something else: {idle}.", True)
    longer = f"its tensor ops take {work_ms:.2f} ms a step longer than the others'"
    own, *rest = (_by_step(facts[each], "work_hash", numbers) for each in (index, *others.tolist()))
    if own is not None and all(each is not None and np.array_equal(each, own) for each in rest):
        return Explained("slow_host", f"Its CPU is slower, or busy with something else: {longer}, and are equal.", True)
    return _of_experts(facts, index, others, longer) or Explained(
        "uneven_data", f"It has more work, at other shapes or more often: {longer}.", True
    )


def _of_host(idle_ms: float, collector_ms: float, loading_ms: float, idle: str = "") -> Explained:
    """``idle`` says how much longer the rank does nothing else."""
    idle = idle or f"its GPU idles {idle_ms:.2f} ms a step longer than the others'"
    if collector_ms >= EXPLAINED * idle_ms and collector_ms >= loading_ms:
        return Explained("garbage_collection", f"Python's garbage collector runs {collector_ms:.2f} ms: {idle}.", True)
    if loading_ms >= EXPLAINED * idle_ms:
        return Explained("slow_input", f"It waits {loading_ms:.2f} ms longer for its data loader: {idle}.", True)
    return Explained("slow_host", f"Its host launches late: {idle}, with equal GPU work.", True)


def _of_gpu(facts: Sequence[RankFacts], index: int, others: Ints, work_ms: float, work: Floats) -> Explained:
    more = f"its GPU works {work_ms:.2f} ms a step longer than the others'"
    speed = kernel_speed(facts, index, others)
    if speed is not None and speed.slowdown is not None and _slower(speed.slowdown, facts[index], work_ms):
        slower = 100 * (speed.slowdown - 1)
        return Explained("slow_gpu", f"The same kernels take {slower:.1f} % longer: {more}.", True)
    experts = _of_experts(facts, index, others, more)
    if experts is not None:
        return experts
    steady = len(work) > 1 and float(work.std()) < STEADY * abs(float(work.mean()))
    if speed is not None and speed.shared >= SAME_KERNELS and steady:
        return Explained(
            "slow_gpu",
            f"Its GPU runs additional kernels in every step, while those that it shares with the others are as fast: "
            f"{more}.",
            True,
        )
    return Explained("uneven_data", f"It has more work, at other shapes or more often: {more}.", True)


def _of_experts(facts: Sequence[RankFacts], index: int, others: Ints, more: str) -> Explained | None:
    """Where its experts exchange more than theirs."""
    sent = [_all_to_all(facts[each]) for each in (index, *others.tolist())]
    usual = float(np.median(sent[1:]))
    if not sent[0] or (usual and sent[0] < MORE_SENT * usual):
        return None
    text = f", and exchanges {sent[0] / usual:.2f} times their bytes" if usual > 0 else ""
    return Explained("expert_load", f"Its experts get more tokens: {more}{text}.", True)


def _slower(slowdown: float, rank: RankFacts, work_ms: float) -> bool:
    compute_ms = float(rank.steps.compute_ns.mean()) / 1e6
    return slowdown >= SLOWER and compute_ms * (1 - 1 / slowdown) >= EXPLAINED * work_ms


def _all_to_all(rank: RankFacts) -> int:
    calls = rank.collectives
    here = (calls.operation == Operation.ALL_TO_ALL) & (calls.bytes > 0)
    return int(calls.bytes[here].sum())


def _by_step(rank: RankFacts, column: str, numbers: Ints) -> Floats | None:
    """A column of the steps with these numbers, or the GPU's work; None where one is not recorded."""
    table = _work(rank) if column == "work_ns" else getattr(rank.steps, column)
    values = table[np.isin(rank.steps.number, numbers)]
    return None if len(values) != len(numbers) or (values < 0).any() else values.astype(np.float64)


def _work(rank: RankFacts) -> Ints:
    """Compute by step, as if no communication had run at the same time where that is known of all calls."""
    contended = rank.collectives.contended_ns
    if (contended < 0).any():
        return rank.steps.compute_ns
    lost = np.zeros(len(rank.steps.number), dtype=np.int64)
    np.add.at(lost, rank.collectives.iteration, contended)
    return rank.steps.compute_ns - lost


SLOWER_HOST = 1.1
"""A host's time from step to step over the others', from which it is slower. Ours: while the profiler records, hosts of
equal ranks differ by 7 %."""


def is_slower(facts: Sequence[RankFacts], index: int, others: Ints, numbers: Ints) -> bool | None:
    """None where launches are not recorded, or there are too few steps.

    True too where the others' hosts wait for their GPUs in most steps: then lateness in a step is made in that step.
    """
    pace = _pace(facts[index], numbers)
    rest = [facts[other] for other in others.tolist()]
    paces = [_pace(rank, numbers) for rank in rest]
    if pace is None or any(paced is None for paced in paces):
        return None
    if 2 * sum(_waits_for_gpu(rank, numbers) for rank in rest) > len(rest):
        return True
    return pace >= SLOWER_HOST * float(np.median([paced for paced in paces if paced is not None]))


def _first_launches(rank: RankFacts, numbers: Ints) -> tuple[Ints, Ints] | None:
    """Rows of the first and the last call of each step; None where a step has none or launches are unknown."""
    calls = rank.collectives
    steps = np.flatnonzero(np.isin(rank.steps.number, numbers))
    if len(steps) < 2 or (calls.launched_ns < 0).any() or not np.isin(steps, calls.iteration).all():
        return None
    first = np.array([np.flatnonzero(calls.iteration == step)[0] for step in steps])
    last = np.array([np.flatnonzero(calls.iteration == step)[-1] for step in steps])
    return first, last


def _pace(rank: RankFacts, numbers: Ints) -> float | None:
    """Mean time of the host from a step's first call to the next step's (ns)."""
    rows = _first_launches(rank, numbers)
    if rows is None:
        return None
    return float(np.diff(rank.collectives.launched_ns[rows[0]]).mean())


def _waits_for_gpu(rank: RankFacts, numbers: Ints) -> bool:
    """Whether the host launched most steps' first call after the last call of the step before had ended."""
    rows = _first_launches(rank, numbers)
    if rows is None:
        return False
    calls = rank.collectives
    end = calls.start_ns[rows[1]] + calls.duration_ns[rows[1]]
    return bool((calls.launched_ns[rows[0][1:]] >= end[:-1]).mean() > 0.5)


@dataclass(frozen=True, slots=True)
class KernelSpeed:
    """A rank's kernels compared with the median of the other ranks.

    Attributes:
        slowdown: time of the kernels in common over what they would take at the others' speed; 1 is as fast. None where
            none of them ran outside of collectives.
        shared: share of the others' launches that this rank makes too, at the same shapes.
    """

    slowdown: float | None
    shared: float


def kernel_speed(facts: Sequence[RankFacts], index: int, others: Ints) -> KernelSpeed | None:
    """None where no kernel is known, of the rank or of the others."""
    counts: dict[int, list[int]] = {}
    times: dict[int, list[int]] = {}
    for other in others.tolist():
        table = facts[other].kernels
        for key, count, mean in zip(table.key.tolist(), table.count.tolist(), table.mean_ns.tolist(), strict=True):
            counts.setdefault(key, []).append(count)
            if mean > 0:
                times.setdefault(key, []).append(mean)
    table = facts[index].kernels
    own = dict(zip(table.key.tolist(), table.count.tolist(), strict=True))
    if not counts or not own:
        return None
    usual = {key: float(np.median(numbers)) for key, numbers in counts.items()}
    shared = sum(min(own.get(key, 0), count) for key, count in usual.items()) / sum(usual.values())
    both = [
        (count * mean, count * float(np.median(times[key])))
        for key, count, mean in zip(own, own.values(), table.mean_ns.tolist(), strict=True)
        if mean > 0 and key in times
    ]
    slowdown = sum(mine for mine, _ in both) / sum(expected for _, expected in both) if both else None
    return KernelSpeed(slowdown, shared)
