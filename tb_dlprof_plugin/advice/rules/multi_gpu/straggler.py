"""A rank delays the others.

Ranks of one training of which one comes late to collectives more often, or later, than chance explains. It is not late
because it waited for another one. A collective ends on all members together, so that the durations of its calls show
who came last; no clocks are compared.

Why it matters: Synchronous ranks take each step together: what one is late by is lost on all others.

What to change: Repair the rank or what it gets: see the cause that the finding names.

When to leave it: The late rank has work that the others do not have by design. Or the few recorded steps show one turn
of work that evens out.

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
from tb_dlprof_plugin.advice.savings import of_job_step, stated
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.fleet.job import Cause
from tb_dlprof_plugin.metrics.iterations import percent

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU, JobNeed.OTHER_RANKS),
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
    group="imbalance",
)

_CHANGE: dict[Cause, str] = {
    "slow_gpu": "Compare its GPU's clocks, temperature and other processes with the others' (nvidia-smi -q -d "
    "PERFORMANCE), look for kernels that only it runs, and replace the GPU if it stays slow.",
    "slow_host": "Look for other processes on its host, CPU frequency and NUMA binding. Look for Python code that only "
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
    """Fires where the job's verdict names a rank whose repair saves `WORTHWHILE_SAVING_PERCENT`."""
    job = context.job
    assert job is not None
    assert job.step is not None
    found = job.verdict
    if found is None or found.kind != "delays":
        return Silent("" if found is None else found.sentence, applicable=found is not None and found.kind != "unknown")
    worst = next((delay for delay in job.delays if delay.certain and delay.cause != "slow_link"), None)
    if worst is None:
        return Silent(f"{job.delays[0].why} That is no rank's own delay (rule slow_link).")
    saved_ns = of_job_step(context, job, worst.saving_ms)
    if (percent(saved_ns, context.step_ns) or 0.0) < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(found.sentence)
    return RULE.finding(
        title=f"Rank {worst.rank} delays the others",
        seen=f"The other ranks wait {worst.caused_waiting_ms:.2f} ms of GPU time a step because of it. {worst.why}",
        readings=[
            Reading("Waiting of the other ranks per step", worst.caused_waiting_ms * 1e6, "ns"),
            Reading("Step that its repair saves", saved_ns, "ns"),
        ],
        change=_CHANGE[worst.cause],
        saving=stated(
            context,
            of_job_step(context, job, worst.saving_low_ms),
            saved_ns,
            of_job_step(context, job, worst.saving_high_ms),
            f"Replayed with rank {worst.rank} as fast as the ranks with the same work, the job has a step that is "
            f"{ms(saved_ns)} shorter. The interval covers how fast hosts may be without the profiler.",
        ),
    )
