"""FSDP's units are too small.

Units of FSDP that lie in other units. The CPU sets the pace and spends the step on their hooks.

Why it matters: For each unit the CPU copies parameters into a buffer and starts a gather. It waits for it, copies them
out and frees them, forward and backward: about a millisecond, whatever its size. A unit of one small layer computes for
less time than that.

What to change: Apply `fully_shard` to whole blocks, not to the layers in them.

When to leave it: Memory leaves no choice: a larger unit is gathered as a whole.

To confirm: Record again: fewer all-gathers of more bytes, and a shorter step.

Read on:
- [PyTorch: fully_shard](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import stated
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.parallel_settings import parallel_settings
from tb_dlprof_plugin.model.intervals import covered, union
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.names.parallel_ranges import FSDP2, fsdp_unit
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
    confidence="high",
    group="cpu_paced",
)

_REALISED = SpeedupRange(0.7, 1.0, 1.35)
"""Of the saving: a merged unit has more parameters to copy, which takes the CPU longer; and autograd's own nodes and
threads for each unit, which are outside of FSDP's ranges, go too (lab/ranks: 1.28)."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where units in other units take CPU time that the step would be shorter by `WORTHWHILE_SAVING_PERCENT`."""
    _, units = _ranges(context.view)
    hooks_ns = hooks_ns_per_step(context)
    if hooks_ns is None:
        return Silent("No range of FSDP2 was recorded.", applicable=False)
    outer = {unit for unit in units if not _holder(unit, units)}
    if len(outer) == len(units):
        return Silent(f"None of the {len(units)} units lies in another one.")
    # As a replay of one rank does not show it: all ranks have the same units, and wait for each other's hooks.
    scale = min(context.step_ns / context.recorded_step_ns, 1.0) if context.recorded_step_ns else 1.0
    gone_ns = scale * hooks_ns * (1 - len(outer) / len(units))
    room_ns = max(context.step_ns - _working_ns(context), 0.0)
    low, expected, high = (
        min(gone_ns * share, room_ns) for share in (_REALISED.low, _REALISED.expected, _REALISED.high)
    )
    estimate = stated(
        context,
        low,
        expected,
        high,
        f"{len(units) - len(outer)} of {len(units)} units lie in other units. Without them {len(outer)} are left, and "
        f"that share of the {ms(hooks_ns)} that FSDP's hooks take on the CPU as recorded, as fast as the step "
        f"without the profiler: {100 * _REALISED.low:.0f} to {100 * _REALISED.high:.0f} % of that. The step cannot "
        f"become shorter than the GPU's work.",
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"FSDP's hooks take {ms(hooks_ns)} of the CPU a step, for {len(units)} units.")
    share = percent(hooks_ns, context.recorded_step_ns) or 0.0
    inside = sorted(units - outer)
    return RULE.finding(
        title=f"FSDP's hooks take {share:.0f} % of the step on the CPU: {len(units)} units are too many",
        seen=f"Of {len(units)} units {len(inside)} lie in other units ({', '.join(inside[:3])} ...). Gathering, "
        f"freeing and reducing them takes the CPU {ms(hooks_ns)} of each step as recorded.",
        readings=[
            Reading("Units", len(units), "count", len(outer)),
            Reading("FSDP's hooks on the CPU per step", hooks_ns, "ns"),
        ],
        evidence=[EvidenceRow(name, None, None, "modules", "") for name in inside[:4]],
        change=f"Make units of whole blocks: {len(outer)} instead of {len(units)}.",
        code="for block in model.blocks:\n    fully_shard(block)  # not its layers\nfully_shard(model)\n",
        saving=estimate,
    )


def hooks_ns_per_step(context: RuleContext) -> int | None:
    """CPU time of FSDP2's ranges in a recorded step; None where there is none."""
    ranges = _ranges(context.view)[0] & context.view.selected_calls(context.selection)
    if not ranges.any():
        return None
    calls, iterations = context.profile.calls, context.profile.iterations
    times = union(calls.start_ns[ranges], calls.start_ns[ranges] + calls.duration_ns[ranges])
    first, last = context.selection.first, context.selection.last + 1
    taken = covered(times, iterations.host_start_ns[first:last], iterations.host_stop_ns[first:last])
    return int(taken.sum()) // context.selection.count


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """There are fewer units."""
    before, after = parallel_settings(base).fsdp, parallel_settings(candidate).fsdp
    if before is None or after is None or after.units >= before.units:
        return ""
    return f"{after.units} instead of {before.units} units of FSDP"


def _ranges(view: ProfileView) -> tuple[Bools, set[str]]:
    """Calls that are FSDP2's ranges, and the names of the units in them; the root has none."""
    strings, names = view.profile.strings, view.profile.ops.name.tolist()
    named = np.array([strings[name].startswith(FSDP2) for name in names], dtype=np.bool_)
    units = {fsdp_unit(strings[name]) for name in names if strings[name].startswith(FSDP2)} - {"", "root", "None"}
    return named[view.profile.calls.op], units


def _holder(unit: str, units: set[str]) -> str:
    """The unit that this one lies in; "" for none."""
    parts = unit.split(".")
    above = (".".join(parts[:count]) for count in range(len(parts) - 1, 0, -1))
    return next((name for name in above if name in units), "")


def _working_ns(context: RuleContext) -> float:
    """Time per step in which this rank's GPU computes or data moves; waiting for other ranks is none."""
    rank = context.profile.source.rank
    rows = [] if context.job is None else context.job.account
    own = next((row for row in rows if row.rank == rank), None)
    if own is None or own.waiting_ms is None:
        return context.busy_ns
    return 1e6 * (own.compute_ms + own.transfer_ms)
