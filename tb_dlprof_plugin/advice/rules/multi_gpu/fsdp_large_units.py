"""One unit of FSDP has most of the parameters.

A unit of FSDP that gathers more than half of all parameters, of a model with repeated blocks. Its gathers and
reductions are not hidden.

Why it matters: A unit is gathered before its first layer computes, and its gradients are reduced after its last one.
Units of one block each are exchanged while other blocks compute; a whole model as one unit has nothing next to it,
and all its parameters are in memory at once.

What to change: Apply `fully_shard` to each block, then to the model.

When to leave it: The CPU sets the pace: each unit takes it about a millisecond.

To confirm: Record all ranks again: gathers of one block each next to kernels, and less memory at the peak.

Read on:
- [PyTorch: fully_shard](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule import Finding, JobNeed, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.multi_gpu.fsdp_units import hooks_ns_per_step
from tb_dlprof_plugin.advice.rules.multi_gpu.replayed_calls import fsdp_calls, replayed_calls, worthwhile
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.fleet.rank_facts import Operation
from tb_dlprof_plugin.metrics.parallel_settings import parallel_settings
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.FSDP, JobNeed.REPLAYED_JOB),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "BUCKETED_SHARE"),
    group="gathers",
)

_LARGEST_SHARE = 0.5
"""Of the bytes of a step's gathers in one call, above which less than half of them can be hidden behind it."""
_NUMBERED = re.compile(r"^(?P<list>.*?)(?:^|\.)(?P<number>\d+)(?:\.|$)")


def check(context: RuleContext) -> Finding | Silent:
    """Fires where dividing the largest unit saves `WORTHWHILE_SAVING_PERCENT` of the step."""
    settings = context.parallel.fsdp
    calls = replayed_calls(context)
    assert settings is not None
    assert calls is not None
    gathers = fsdp_calls(calls, Operation.ALL_GATHER)
    if not gathers.any() or (calls.bytes[gathers] < 0).any():
        return Silent("How many bytes FSDP gathers does not show.", applicable=False)
    once = gathers & (calls.place_in_step(gathers) < settings.units)
    whole, largest = calls.bytes[once].sum() / calls.turns, int(calls.bytes[once].max())
    share = min(largest / max(whole, 1), 1.0)
    if share <= _LARGEST_SHARE:
        return Silent(f"The largest of {settings.units} units has {100 * share:.0f} % of the parameters.")
    blocks = _blocks(context.view)
    if blocks < 2:
        return Silent("The model has no repeated blocks that could be units.")
    exchanged = calls.bytes[once].astype(np.float64)
    large = gathers | fsdp_calls(calls, Operation.REDUCE_SCATTER)
    large &= calls.bytes >= _LARGEST_SHARE * exchanged.max()
    exposed_ns = calls.per_step(calls.exposed, large)
    hideable = np.where(large, calls.exposed * (1 - 1 / blocks), 0.0)
    # Other blocks have no more work than the step has.
    work_ns = calls.per_step(calls.work, np.ones(len(calls.work), dtype=np.bool_))
    hideable *= min(1.0, work_ns * (1 - 1 / blocks) / max(calls.per_step(hideable, large), 1.0))
    kept = thresholds.BUCKETED_SHARE
    estimate = calls.saving(
        context,
        [hideable * (1 - left) for left in (kept.high, kept.expected, kept.low)],
        f"As {blocks} units {blocks - 1} of {blocks} parts of the {ms(exposed_ns)} would be exchanged next to "
        f"the work of other blocks; {100 * kept.low:.0f} to {100 * kept.high:.0f} % of that stay, because kernels next "
        f"to an exchange take longer.",
    )
    seen = (
        f"One call gathers {100 * share:.0f} % of the {whole / 2**20:,.0f} MiB of parameters; its gathers and "
        f"reductions take {ms(exposed_ns)} of a step with nothing else running"
    )
    room = _room_ns(context, settings.units, blocks)
    if room is not None and estimate.expected_ns > room:
        return Silent(f"{seen}. The CPU sets the pace: {blocks} units would take it longer than that.")
    if not worthwhile(context, estimate):
        return Silent(f"{seen}; as {blocks} units the step is {ms(estimate.expected_ns)} shorter.")
    return RULE.finding(
        title=f"One unit of FSDP has {100 * share:.0f} % of the parameters: nothing hides its exchange",
        seen=f"{seen}. The model has {blocks} blocks.",
        readings=[
            Reading("Largest unit of all parameters", 100 * share, "percent", 100 * _LARGEST_SHARE),
            Reading("Its exchange with nothing else running per step", exposed_ns, "ns"),
            Reading("Repeated blocks", blocks, "count"),
        ],
        change=f"Make each of the {blocks} blocks a unit.",
        code="for block in model.blocks:\n    fully_shard(block)\nfully_shard(model)\n",
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """There are more units."""
    before, after = parallel_settings(base).fsdp, parallel_settings(candidate).fsdp
    if before is None or after is None or after.units <= before.units:
        return ""
    return f"{after.units} instead of {before.units} units of FSDP"


def _blocks(view: ProfileView) -> int:
    """Entries of the longest list of modules that holds no other such list: "layers.0" to "layers.11"."""
    strings = view.profile.strings
    found = Counter[str]()
    for name in {strings[module] for module in view.groups.module.tolist()}:
        match = _NUMBERED.match(name)
        if match:
            found[f"{match['list']}.{match['number']}"] += 1
    lists = Counter(entry.rpartition(".")[0] for entry in found)
    return max(lists.values(), default=0)


def _room_ns(context: RuleContext, units: int, blocks: int) -> float | None:
    """What is left of the step once the CPU has the hooks of so many units; None without a GPU, or where unknown."""
    if not context.profile.has_gpu:
        return None
    each = hooks_ns_per_step(context)
    if each is None:
        return None
    return max(context.step_ns - context.simulation.host_ends_ns[1] - (blocks - units) * each / max(units, 1), 0.0)
