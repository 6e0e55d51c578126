"""What is said of a job: its first line, and notes on what cannot be known and why.

The first line says how much of the GPUs' time computes, what the job loses most by, and what a repair wins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.fleet.answers.calls import JobCalls
from tb_dlprof_plugin.fleet.answers.delays import WORTH
from tb_dlprof_plugin.fleet.answers.scenarios import UNRELIABLE_PERCENT, Scenarios
from tb_dlprof_plugin.fleet.chosen_steps import Stall
from tb_dlprof_plugin.fleet.job import Delay, JobStep, PipelineShape, RankAccount, Verdict
from tb_dlprof_plugin.fleet.rank_facts import Operation, RankFacts
from tb_dlprof_plugin.model.formatting import duration, listed

_NAMED_PERCENT = 1.0
_MOST_OF_IT = 2 / 3
"""Of all that ranks owe, from which the ranks of one host are what the job waits for."""
_OF_SEVERAL = {
    "slow_gpu": "slow GPUs",
    "slow_host": "a slow host",
    "slow_input": "slow input",
    "uneven_data": "more work",
    "garbage_collection": "garbage collection",
    "expert_load": "experts with more tokens",
}


def sentence(
    step: JobStep | None,
    account: Sequence[RankAccount],
    found: Verdict | None,
    on_cpu: bool = False,
) -> str:
    """The verdict, then where the step goes; what is not known is not in it. ``on_cpu``: of no GPUs."""
    if step is None or not account:
        return "Where the steps of this job go is not known: no rank recorded a whole step."
    total = sum(row.step_ms for row in account) or 1.0
    parts = {
        "waiting for other ranks": sum(row.waiting_ms or 0.0 for row in account),
        "pipeline bubble": sum(row.bubble_ms for row in account),
        "exposed transfers": sum(row.transfer_ms for row in account),
        "outside of tensor ops" if on_cpu else "idle for the host": sum(row.host_ms for row in account),
    }
    compute = 100 * sum(row.compute_ms for row in account) / total
    count = len(account)
    losses = [
        f"{100 * value / total:.0f} % {name}"
        for name, value in sorted(parts.items(), key=lambda part: -part[1])
        if 100 * value / total >= _NAMED_PERCENT
    ]
    name = (
        ("processes compute" if count > 1 else "process computes")
        if on_cpu
        else ("GPUs compute" if count > 1 else "GPU computes")
    )
    text = f"{count} {name} {compute:.0f} % of the {step.ms:.2f} ms {'step' if step.is_step else 'recording'}"
    text += f"; {', '.join(losses)}." if losses else "."
    return text if found is None else f"{found.sentence} {text}"


def notes_on(
    facts: Sequence[RankFacts],
    missing: Sequence[int],
    calls: JobCalls,
    scenarios: Scenarios,
    pipeline: PipelineShape | None,
) -> list[str]:
    notes = []
    if len(facts) == 1:
        notes.append(
            "One rank alone does not show whether communication is transfer or waiting for others: exposed "
            "communication is listed as transfer. Who delays whom, and what a repair wins, needs recordings of the "
            "other ranks."
        )
    elif missing:
        notes.append(
            f"{len(missing)} of {len(facts) + len(missing)} ranks are missing ({listed(missing)}). What is said holds "
            "among the recorded ones: where a missing rank comes last, its delay counts as transfer, and it cannot be "
            "named."
        )
    if len(facts) > 1 and not calls.steps:
        notes.append("The ranks recorded no step in common, so nothing can be compared between them.")
    elif len(facts) > 1 and not calls.coupled.any():
        notes.append("No collective was found on two ranks: waiting cannot be separated from transfer.")
    error = scenarios.error_percent
    if error is not None and abs(error) > UNRELIABLE_PERCENT and len(calls.rank):
        notes.append(
            f"Replayed as recorded the step is {error:+.1f} % off: what changes would win is not reliable here."
        )
    if pipeline is not None:
        formula = ""
        if pipeline.formula_percent is not None:
            formula = f"; {pipeline.formula_percent:.1f} % with {pipeline.microbatches} microbatches on even stages"
            formula += f", interleaved in {pipeline.chunks} chunks" if pipeline.chunks > 1 else ""
        notes.append(f"Pipeline bubble: {pipeline.bubble_percent:.1f} % of the recorded step{formula}.")
    experts = _expert_note(facts)
    if experts:
        notes.append(experts)
    return list(dict.fromkeys((*notes, *(note for rank in facts for note in rank.notes))))


def left_out(recorded: Sequence[int], ranks: Sequence[int]) -> list[str]:
    """Why not all calls are compared.

    Args:
        recorded: how many steps are recorded, of how many of them calls are kept, and in how many no rank lacks any.
        ranks: how many there are, and how many of them are compared.
    """
    steps, kept, whole = recorded
    notes = []
    if kept not in (0, steps):
        notes.append(
            f"Calls are compared in {kept} of the {steps} recorded steps: the job has too many for all of them."
        )
    if whole != kept:
        notes.append(
            f"In {kept - whole} of {kept} recorded steps some ranks lack calls that the others have: recorders lose "
            "some. These steps are left out."
        )
    if ranks[0] != ranks[1]:
        notes.append(
            f"Calls are compared on {ranks[1]:,} of {ranks[0]:,} ranks, those that communicate least and most among "
            "them: one step has too many for all. What other ranks wait follows from their own steps."
        )
    return notes


def stall_note(stall: Stall | None) -> list[str]:
    """That one step is left out, with how long it took; nothing without one."""
    if stall is None:
        return []
    took = f"Step {stall.number} took {duration(stall.length_ns)}, the others {duration(stall.usual_ns)}"
    return [f"{took}: it is left out. A longer recording shows whether that comes back."]


def _expert_note(facts: Sequence[RankFacts]) -> str:
    """How uneven the experts' load is: bytes that each rank exchanges in all-to-all calls; "" without such calls."""
    sent = np.array(
        [
            rank.collectives.bytes[
                (rank.collectives.operation == Operation.ALL_TO_ALL) & (rank.collectives.bytes > 0)
            ].sum()
            / max(len(rank.steps.number), 1)
            for rank in facts
        ]
    )
    if len(sent) < 2 or not sent.mean():
        return ""
    most = int(sent.argmax())
    return (
        f"Ranks exchange {sent.mean() / 2**20:,.1f} MiB a step with the experts; rank {facts[most].rank} "
        f"{sent[most] / sent.mean():.2f} times the mean."
    )


def host_notes(facts: Sequence[RankFacts], delays: Sequence[Delay], step_ms: float | None) -> list[str]:
    """A sentence about the host whose ranks owe most, where several of them have the same cause.

    The repair of one of them alone wins little, because the others are as late.
    """
    names = {rank_facts.rank: rank_facts.host for rank_facts in facts}
    caused_ms = sum(delay.caused_waiting_ms for delay in delays)
    if len({*names.values()} - {""}) < 2 or step_ms is None or caused_ms < WORTH * step_ms:
        return []
    by_host: dict[str, list[Delay]] = {}
    for delay in delays:
        by_host.setdefault(names.get(delay.rank, ""), []).append(delay)
    for host, late in by_host.items():
        cause, count = Counter(delay.cause for delay in late).most_common(1)[0]
        share = sum(delay.caused_waiting_ms for delay in late if delay.cause == cause) / caused_ms
        if not host or count < 2 or cause not in _OF_SEVERAL or share < _MOST_OF_IT:
            continue
        ranks = ", ".join(str(rank) for rank in sorted(delay.rank for delay in late if delay.cause == cause))
        said = f"Host {host}: {_OF_SEVERAL[cause]} on its ranks {ranks}, to which {100 * share:.0f} % of the waiting"
        return [f"{said} for late ranks is due. Repairing one of them alone wins little."]
    return []
