"""FSDP does not gather the next unit early.

All-gathers of FSDP that are not prefetched. The GPU does nothing else in them, although the unit before has work that
would hide them.

Why it matters: A unit's parameters can be gathered while the unit before computes. Without prefetching the gather
starts when the CPU comes to the unit: on a CPU that is not far ahead of the GPU, that is after the work that would
hide it.

What to change: FSDP2: `set_modules_to_forward_prefetch`. FSDP1: `forward_prefetch=True` and
`backward_prefetch=BackwardPrefetch.BACKWARD_PRE`.

When to leave it: Memory is short: the parameters of one unit more are there at a time. Units run in another order
from step to step.

To confirm: Record all ranks again: gathers run next to kernels of the unit before, and the step is shorter.

Read on:
- [PyTorch: fully_shard, set_modules_to_forward_prefetch](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)
- [Zhao et al., PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel](https://arxiv.org/abs/2304.11277)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.rule import Finding, JobNeed, Need, Reading, Rule, RuleContext, Silent, lacks
from tb_dlprof_plugin.advice.rules.multi_gpu.parallel_kernels import slowdown_shares
from tb_dlprof_plugin.advice.rules.multi_gpu.replayed_calls import (
    ReplayedCalls,
    fsdp_calls,
    gathered_again,
    replayed_calls,
    worthwhile,
)
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.fleet.rank_facts import Operation
from tb_dlprof_plugin.metrics.parallel_settings import parallel_settings
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.run_facts import FsdpFacts
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.FSDP,),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "COMMUNICATION_SLOWDOWN"),
    group="gathers",
)

_CODE = {
    1: "model = FullyShardedDataParallel(\n"
    "    model, ..., forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_PRE\n)\n",
    2: "for block, following in zip(model.blocks, model.blocks[1:]):\n"
    "    block.set_modules_to_forward_prefetch([following])\n",
}


def check(context: RuleContext) -> Finding | Silent:
    """Fires where gathering one unit earlier saves `WORTHWHILE_SAVING_PERCENT` of the step."""
    settings = context.parallel.fsdp
    if settings is None or settings.forward_prefetch is None or settings.backward_prefetch is None:
        return lacks(Need.FSDP)
    if settings.forward_prefetch and settings.backward_prefetch:
        return Silent("Parameters are prefetched in both passes.")
    calls = replayed_calls(context)
    if calls is None:
        return lacks(JobNeed.REPLAYED_JOB)
    late = _late(calls, settings)
    if late is None:
        return Silent("Which gathers are for the forward pass does not show.", applicable=False)
    exposed_ns = calls.per_step(calls.exposed, late)
    hidden = np.where(late, np.minimum(calls.exposed, calls.work), 0.0)
    slower = slowdown_shares(context)
    estimate = calls.saving(
        context,
        [hidden * (1 - share) for share in (slower.high, slower.expected, 0.0)],
        f"The work before each gather would hide {calls.per_step(hidden, late) / 1e6:.2f} of the "
        f"{ms(exposed_ns)} that they take with nothing else running. Kernels next to a gather take longer: "
        f"up to {100 * slower.high:.0f} % of that time, expected {100 * slower.expected:.0f} %.",
    )
    passes = "forward" if settings.backward_prefetch else "backward" if settings.forward_prefetch else "either"
    numbers = f"Gathers that are not prefetched in the {passes} pass take {ms(exposed_ns)} of a step"
    if not worthwhile(context, estimate):
        return Silent(f"{numbers} with nothing else running; prefetching them saves {ms(estimate.expected_ns)}.")
    return RULE.finding(
        title=f"FSDP's gathers in the {passes} pass are not prefetched: {ms(exposed_ns)} of each step",
        seen=f"{numbers} with nothing else running, while the units before them have "
        f"{ms(calls.per_step(calls.work, late))} of work."
        + (" limit_all_gathers is on: at most two gathers are under way." if settings.limit_all_gathers else ""),
        readings=[
            Reading("Gathers with nothing else running per step", exposed_ns, "ns"),
            Reading("Work before them per step", calls.per_step(calls.work, late), "ns"),
        ],
        change="Gather each unit while the one before computes.",
        code=_CODE[2 if settings.version == 2 else 1],
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Prefetching is on in a pass in which it was off."""
    before, after = parallel_settings(base).fsdp, parallel_settings(candidate).fsdp
    if before is None or after is None:
        return ""
    changes = []
    if before.forward_prefetch is False and after.forward_prefetch:
        changes.append("forward prefetch on")
    if before.backward_prefetch is False and after.backward_prefetch:
        changes.append("backward prefetch on")
    return ", ".join(changes)


def _late(calls: ReplayedCalls, settings: FsdpFacts) -> Bools | None:
    """Gathers of the passes without prefetching; the first of a step has no unit before it."""
    gathers = fsdp_calls(calls, Operation.ALL_GATHER)
    again = gathered_again(calls, settings.units)
    if again is None:
        return None
    chosen: Bools = gathers & (calls.place_in_step(gathers) > 0)
    if settings.forward_prefetch:
        chosen &= again
    if settings.backward_prefetch:
        chosen &= ~again
    return chosen
