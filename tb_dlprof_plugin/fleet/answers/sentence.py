"""The job's first line: how much of its GPUs' time computes, what it loses most by, and what a repair wins."""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.fleet.job import Delay, JobStep, RankAccount, WhatIf

CAUSES = {
    "slow_gpu": "its GPU is slower or has more to do",
    "slow_host": "its host is slow",
    "slow_input": "its input is slow",
    "uneven_data": "its data is more work",
    "uneven_stage": "its pipeline stage has more work",
    "garbage_collection": "Python's garbage collector runs",
    "slow_link": "its link is slow",
    "expert_load": "its experts get more tokens",
    "unknown": "the cause is not known",
}
_NAMED_PERCENT = 1.0


def sentence(
    step: JobStep | None,
    account: Sequence[RankAccount],
    delays: Sequence[Delay],
    what_if: Sequence[WhatIf],
    on_cpu: bool = False,
) -> str:
    """One or two sentences; what is not known is not in them. ``on_cpu``: the processes have no GPUs."""
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
    text = f"{count} {name} {compute:.0f} % of the {step.ms:.2f} ms step"
    text += f"; {', '.join(losses)}." if losses else "."
    worst = next((one for one in delays if one.significant), None)
    if worst is not None:
        text += (
            f" Rank {worst.rank} delays the others, because {CAUSES[worst.cause]}: repairing it wins "
            f"{worst.winnable_ms:.2f} ms of a step."
        )
    elif count > 1:
        text += " No rank delays the others by more than chance."
    return text
