"""A rank delays the others.

Ranks of one training of which one comes late to collectives more often, or later, than chance explains, and not
because it waited for another one. A collective ends on all members together, so that the durations of its calls show
who came last; no clocks are compared.

Why it matters: Synchronous ranks take each step together: what one is late by is lost on all others.

What to change: Repair the rank or what it gets: see the cause that the finding names.

When to leave it: The late rank has work that the others do not have by design, or the few recorded steps show one
turn of work that evens out.

To confirm: Record all ranks again: they wait less in collectives, and no rank is last most of the time.

In other tools:
- HTA: Straggler analysis
- Nsight Systems: nccl_straggler recipe

Read on:
- [Lin et al., Understanding Stragglers in Large Model Training Using What-if Analysis](https://arxiv.org/abs/2505.05713)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule import Finding, JobNeed, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import stated
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.fleet.job import Cause, Delay
from tb_dlprof_plugin.metrics.iterations import percent

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU, JobNeed.OTHER_RANKS),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "STRAGGLER_KEPT"),
    group="imbalance",
)

_CHANGE: dict[Cause, str] = {
    "slow_gpu": "Compare its GPU's clocks, temperature and other processes with the others' (nvidia-smi -q -d "
    "PERFORMANCE), look for kernels that only it runs, and replace the GPU if it stays slow.",
    "slow_host": "Look for other processes on its host, CPU frequency and NUMA binding, and for Python code that only "
    "this rank runs (logging, checkpoints, evaluation).",
    "slow_input": "Give its data loader more workers, and compare the storage that it reads from with the others'.",
    "uneven_data": "Give every rank the same amount of work in a step: batches put together by length.",
    "uneven_stage": "Move layers from this pipeline stage to others.",
    "garbage_collection": "Call gc.disable() after the set-up and gc.collect() on all ranks in the same steps, every "
    "few hundred.",
    "expert_load": "Balance the experts: an auxiliary loss or bias for the router, or a capacity limit.",
    "unknown": "Record more steps with all ranks.",
}


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the first of the job's delays is beyond chance and wins `WORTHWHILE_SAVING_PERCENT`."""
    job = context.job
    assert job is not None
    assert job.step is not None
    late = [delay for delay in job.delays if delay.significant]
    worst = next((delay for delay in late if delay.cause != "slow_link"), None)
    if worst is None and late:
        return Silent(f"{late[0].why} That is no rank's own delay (rule slow_link).")
    if worst is None:
        return Silent("No rank delays the others by more than chance.")
    won_ns = min(worst.winnable_ms / job.step.ms, 1.0) * context.step_ns
    if (percent(won_ns, context.step_ns) or 0.0) < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"Rank {worst.rank} is last most often; repairing it wins {ms(won_ns)} a step.")
    return _finding(context, worst, won_ns)


def _finding(context: RuleContext, worst: Delay, won_ns: float) -> Finding:
    kept = thresholds.STRAGGLER_KEPT
    return RULE.finding(
        title=f"Rank {worst.rank} delays the others",
        seen=f"The other ranks wait {worst.owed_ms:.2f} ms of GPU time a step because of it. {worst.why}",
        readings=[
            Reading("Waiting of the other ranks per step", worst.owed_ms * 1e6, "ns"),
            Reading("Step that its repair wins", won_ns, "ns"),
        ],
        change=_CHANGE[worst.cause],
        saving=stated(
            context,
            won_ns * (1 - kept.high),
            won_ns * (1 - kept.expected),
            won_ns * (1 - kept.low),
            f"The recorded job, replayed with rank {worst.rank} as fast as the ranks with the same work, has a step "
            f"that is {ms(won_ns)} shorter. How fast hosts are does not show where their GPUs wait, so that "
            f"the win may be {100 * (1 - kept.high):.0f} % of it.",
        ),
    )
