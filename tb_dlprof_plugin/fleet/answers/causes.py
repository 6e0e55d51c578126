"""Why a rank is late: what it has more of than ranks with the same work.

More GPU time at equal kernels is a slow GPU, more time in other kernels uneven data or experts. More of what the host
does besides launching is its data loader, the garbage collector, or what else it runs.

A host that does not wait for its GPU runs ahead, and its lead stays for good: a rank that began 40 ms later is last in
every collective though its host is as fast. What hosts do between launches tells them apart. Their pace from step to
step does not: in a job with a slow host all have one, as the others wait for room in their queues of launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.fleet.answers.kernel_speed import SLOWER, KernelSpeed, kernel_speed
from tb_dlprof_plugin.fleet.answers.lateness import Lateness
from tb_dlprof_plugin.fleet.job import Cause
from tb_dlprof_plugin.fleet.rank_facts import Operation, RankFacts
from tb_dlprof_plugin.model.profile import Floats, Ints

MORE_SENT = 1.02
"""Bytes exchanged over those of the others, from which experts get more tokens."""
SAME_KERNELS = 0.8
"""Share of the others' launches that a rank makes too, at the same shapes, from which it does their work and more."""
STEADY = 0.5
"""Standard deviation over mean of the additional work of a step, below which it is the same in every step."""
EXPLAINED = 0.5
"""Share of a rank's additional time that a measured pause must explain to be its cause."""


OF_HOST: tuple[Cause, ...] = ("slow_host", "slow_input", "garbage_collection")
"""Causes in which the host is at fault, not its GPU or what that has to do."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A cause in a sentence.

    ``certain``: the recording shows the cause itself, beyond what steps vary by. ``excess_ms``: by how much it makes a
    step of the rank longer.
    """

    cause: Cause
    why: str
    certain: bool
    excess_ms: float = 0.0


def cause_of(facts: Sequence[RankFacts], index: int, others: Ints, numbers: Ints, late: Lateness) -> Explained:
    """What makes a rank late: the larger excess, of its GPU's work or of its host.

    Args:
        facts: of all ranks.
        index: the rank's.
        others: indices of the ranks to compare with.
        numbers: steps that all of them recorded.
        late: of all ranks.
    """
    work_ms, host_ms = (each / 1e6 for each in late.of(index))
    rank, speed = facts[index], kernel_speed(facts, index, others)
    # Where launches are not recorded, idling is no evidence against more work: the others' hosts hide where they wait.
    seen = late.launches or rank.on_cpu
    of_host = host_ms > work_ms and (seen or work_ms * 1e6 < late.least_ns[0])
    # Where kernels of several streams overlap less, the same ones cover more time.
    of_host |= speed is not None and speed.same_work
    certain = bool(late.beyond_chance(of_host)[index])
    longer = _longer_host(host_ms, rank.on_cpu, late.launches)
    if of_host:
        collector_ms, loading_ms = (_more(facts, index, others, numbers, name) for name in ("garbage_ns", "input_ns"))
        if host_ms * 1e6 >= late.even_host_ns and collector_ms >= max(EXPLAINED * host_ms, loading_ms):
            # Python collects garbage again and again: what one step shows comes back.
            why = f"Python's garbage collector runs {collector_ms:.2f} ms: {longer}."
            return Explained("garbage_collection", why, True, host_ms)
    if (host_ms if of_host else work_ms) * 1e6 < late.least_ns[of_host]:
        if rank.on_cpu:
            why = "It computes no longer than the others, nor does it anything else longer."
        else:
            more = f"Its GPU works {max(work_ms, 0.0):.2f} ms and its host {max(host_ms, 0.0):.2f} ms a step longer"
            why = f"{more} than the others'. Even ranks differ by as much."
        return Explained("unknown", why, False)
    if not of_host:
        cause, why = (
            _on_cpu(facts, index, others, work_ms, numbers)
            if rank.on_cpu
            else _of_gpu(facts, index, others, work_ms, late.work[:, index], speed)
        )
        return Explained(cause, why, certain and cause != "unknown", work_ms)
    if loading_ms >= EXPLAINED * host_ms:
        why = f"It waits {loading_ms:.2f} ms longer for its data loader: {longer}."
        return Explained("slow_input", why, certain, host_ms)
    return Explained("slow_host", f"{longer[0].upper()}{longer[1:]}.", certain, host_ms)


def _more(facts: Sequence[RankFacts], index: int, others: Ints, numbers: Ints, column: str) -> float:
    """By how much more of a column a rank has in a step than the others (ms); 0 where one of them did not record it."""
    own, *rest = (_by_step(facts[each], column, numbers) for each in (index, *others.tolist()))
    known = [each for each in rest if each is not None]
    if own is None or len(known) < len(rest) or not known:
        return 0.0
    return float((own - np.median(np.stack(known), axis=0)).mean()) / 1e6


def _longer_host(host_ms: float, on_cpu: bool, launches: bool) -> str:
    if on_cpu:
        return f"its process runs no tensor op for {host_ms:.2f} ms a step longer than the others"
    if launches:
        return f"its host does other work than launching for {host_ms:.2f} ms a step longer than the others"
    return f"its GPU idles {host_ms:.2f} ms a step longer than the others'"


def _on_cpu(facts: Sequence[RankFacts], index: int, others: Ints, work_ms: float, numbers: Ints) -> tuple[Cause, str]:
    """Of a process without a GPU."""
    longer = f"its tensor ops take {work_ms:.2f} ms a step longer than the others'"
    own, *rest = (_by_step(facts[each], "work_hash", numbers) for each in (index, *others.tolist()))
    if own is not None and all(each is not None and np.array_equal(each, own) for each in rest):
        return "slow_host", f"Its CPU is slower, or busy with something else: {longer}, and are equal."
    return _of_experts(facts, index, others, longer) or _of_data(longer)


def _of_gpu(
    facts: Sequence[RankFacts], index: int, others: Ints, work_ms: float, work: Floats, speed: KernelSpeed | None
) -> tuple[Cause, str]:
    more = f"its GPU works {work_ms:.2f} ms a step longer than the others'"
    if speed is not None and speed.slowdown is not None and _slower(speed.slowdown, facts[index], work_ms):
        slower = 100 * (speed.slowdown - 1)
        return "slow_gpu", f"The same kernels take {slower:.1f} % longer: {more}."
    if speed is not None and speed.same_kernels:
        return "unknown", f"It runs the same kernels as the others, which differ next to communication only: {more}."
    experts = _of_experts(facts, index, others, more)
    if experts is not None:
        return experts
    steady = len(work) > 1 and float(work.std()) < STEADY * abs(float(work.mean()))
    if speed is not None and speed.shared >= SAME_KERNELS and steady:
        why = "Its GPU runs additional kernels in every step, while the kernels that all ranks run are as fast"
        return "slow_gpu", f"{why}: {more}."
    return _of_data(more)


def _of_data(more: str) -> tuple[Cause, str]:
    return "uneven_data", f"It has more work, at other shapes or more often: {more}."


def _of_experts(facts: Sequence[RankFacts], index: int, others: Ints, more: str) -> tuple[Cause, str] | None:
    """Where its experts exchange more than theirs."""
    sent = [_all_to_all(facts[each]) for each in (index, *others.tolist())]
    usual = float(np.median(sent[1:]))
    if not sent[0] or (usual and sent[0] < MORE_SENT * usual):
        return None
    text = f", and exchanges {sent[0] / usual:.2f} times their bytes" if usual > 0 else ""
    return "expert_load", f"Its experts get more tokens: {more}{text}."


def _slower(slowdown: float, rank: RankFacts, work_ms: float) -> bool:
    compute_ms = float(rank.steps.compute_ns.mean()) / 1e6
    return slowdown >= SLOWER and compute_ms * (1 - 1 / slowdown) >= EXPLAINED * work_ms


def _all_to_all(rank: RankFacts) -> int:
    calls = rank.collectives
    here = (calls.operation == Operation.ALL_TO_ALL) & (calls.bytes > 0)
    return int(calls.bytes[here].sum())


def _by_step(rank: RankFacts, column: str, numbers: Ints) -> Floats | None:
    """A column of the steps with these numbers; None where one is not recorded."""
    values = getattr(rank.steps, column)[np.isin(rank.steps.number, numbers)]
    return None if len(values) != len(numbers) or (values < 0).any() else values.astype(np.float64)
