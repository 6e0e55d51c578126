"""FSDP gathers all parameters twice in a step.

Units of FSDP that free their parameters after the forward pass. Gathering them again is not hidden, and the GPU has
room to keep them.

Why it matters: With `reshard_after_forward` each unit is gathered once more for the backward pass: half as much
communication again, for the memory of the parameters between the two passes.

What to change: Pass `reshard_after_forward=False` to `fully_shard`, or `ShardingStrategy.SHARD_GRAD_OP` to FSDP1; for
some units, if there is not room for all.

When to leave it: The memory is needed for a larger batch.

To confirm: Record all ranks again: half as many all-gathers, a higher memory peak, and a shorter step.

Read on:
- [PyTorch: fully_shard, reshard_after_forward](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)
- [Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models](https://arxiv.org/abs/1910.02054)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.gpu_memory import capacity_bytes, gigabytes
from tb_dlprof_plugin.advice.rule import Finding, JobNeed, Need, Reading, Rule, RuleContext, Silent, lacks
from tb_dlprof_plugin.advice.rules.multi_gpu.replayed_calls import (
    ReplayedCalls,
    gathered_again,
    replayed_calls,
    worthwhile,
)
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.parallel_settings import parallel_settings
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.FSDP,),
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
    group="gathers",
)

_CODE = {
    1: "model = FullyShardedDataParallel(model, ..., sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)\n",
    2: "for block in model.blocks:\n    fully_shard(block, reshard_after_forward=False)\n",
}


def check(context: RuleContext) -> Finding | Silent:
    """Fires where gathering again costs `WORTHWHILE_SAVING_PERCENT` of the step, and memory is not known to be "
    "short."""
    settings = context.parallel.fsdp
    if settings is None or settings.resharded_units is None:
        return lacks(Need.FSDP)
    if not settings.resharded_units:
        return Silent(f"None of the {settings.units} units frees its parameters after the forward pass.")
    calls = replayed_calls(context)
    if calls is None:
        return lacks(JobNeed.REPLAYED_JOB)
    again = gathered_again(calls, settings.units)
    if again is None:
        return Silent("Which gathers are for the backward pass does not show.", applicable=False)
    again_ns, exposed_ns = (calls.per_step(column, again) for column in (calls.transfer, calls.exposed))
    if not again.any():
        return Silent("No parameter is gathered again in the backward pass.")
    needed, room = _needed_bytes(calls, again), _free_bytes(context)
    if needed is not None and room is not None and needed > room:
        return Silent(
            f"Keeping the parameters takes {gigabytes(needed)} more, and {gigabytes(room)} are free at the peak."
        )
    gone = np.where(again, calls.transfer, 0.0)
    estimate = calls.saving(
        context,
        (np.where(again, calls.exposed, 0.0), gone, gone),
        f"Gathering again takes {ms(again_ns)} of a step, {ms(exposed_ns)} of it with nothing else "
        "running: all of it goes.",
    )
    if not worthwhile(context, estimate):
        return Silent(
            f"Gathering again takes {ms(again_ns)} of a step; without it the replayed job is "
            f"{ms(estimate.expected_ns)} shorter."
        )
    memory = _memory(needed, room)
    return RULE.finding(
        title=f"FSDP gathers {settings.resharded_units} of {settings.units} units a second time in each step",
        seen=f"For the backward pass parameters are gathered again, {ms(again_ns)} a step, "
        f"{ms(exposed_ns)} with nothing else running. {memory}",
        readings=[
            Reading("Units that are gathered twice", settings.resharded_units, "count", 0),
            Reading("Gathering again per step", again_ns, "ns"),
            Reading("Of it with nothing else running", exposed_ns, "ns"),
            Reading("Memory to keep the parameters", needed, "bytes", room),
        ],
        change="Keep the parameters between forward and backward pass.",
        code=_CODE[2 if settings.version == 2 else 1],
        saving=estimate,
    ).but(confidence="medium" if room is not None else "low")


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """Fewer units free their parameters."""
    before, after = parallel_settings(base).fsdp, parallel_settings(candidate).fsdp
    if before is None or after is None or before.resharded_units is None or after.resharded_units is None:
        return ""
    fewer = after.resharded_units < before.resharded_units and after.units == before.units
    return f"{after.resharded_units} instead of {before.resharded_units} units gathered twice" if fewer else ""


def _memory(needed: int | None, room: int | None) -> str:
    if needed is None:
        return "How much memory keeping them takes does not show."
    known = "how much is free was not recorded." if room is None else f"{gigabytes(room)} are free at the peak."
    return f"Keeping them takes up to {gigabytes(needed)} more on each rank; {known}"


def _needed_bytes(calls: ReplayedCalls, again: np.ndarray) -> int | None:  # type: ignore[type-arg]
    """All units that are gathered again, whole: an upper bound, because some of them are there at the peak anyway."""
    size = calls.bytes[again]
    return None if (size < 0).any() else int(size.sum()) // calls.turns


def _free_bytes(context: RuleContext) -> int | None:
    capacity, peak = capacity_bytes(context), context.facts.peak_memory_allocated_bytes
    return None if capacity is None or peak is None else max(capacity - peak, 0)
