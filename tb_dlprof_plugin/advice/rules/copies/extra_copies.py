"""Tensors are made on the CPU and copied in each step.

A copy to the GPU right after the op that made its data on the CPU. It happens in every other step or more often:
`torch.zeros(...).cuda()`, `torch.randn(...).to(device)`, `torch.tensor(values, device=device)`.

Why it matters: The CPU fills memory, copies it and waits. The GPU makes the same in microseconds, or it does not change
from step to step.

What to change: Make the tensor on the GPU (`device=device`), or once before the loop.

When to leave it: The random numbers must be those of the CPU's generator. Or the values are new in each step and come
from Python.

To confirm: Record again: the copies should be gone from the Kernels page, and the CPU's time for them from the step.

In other tools:
- PyTorch: Extra CUDA Copy Pattern

Read on:
- [PyTorch: create tensors directly on the target device](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#create-tensors-directly-on-the-target-device)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import call_rows, call_site_of, of_recorded_step
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.copies.copies import Fault, HostDeviceCopies, copies, rows_of_calls
from tb_dlprof_plugin.advice.savings import saved, without_waits
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.intervals import union

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("READS_PER_STEP", "WORTHWHILE_SAVING_PERCENT", "REPLAYED_WAITS"),
)

_CODE = """noise = torch.randn(inputs.shape, device=device)  # instead of torch.randn(inputs.shape).to(device)
mask = torch.ones(batch, device=device)           # or once, before the loop
"""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where making such tensors and copying them takes a notable share of the step."""
    found = copies(context.view, context.selection).of(Fault.EXTRA)
    count = context.selection.count
    per_step = len(found) / count
    if not len(found):
        return Silent("No copy to the GPU follows the op that made its data.")
    if per_step < thresholds.READS_PER_STEP:
        return Silent(f"{len(found)} tensors were made on the CPU and copied in {count} steps.")
    made_and_copied = found.tops(context) | rows_of_calls(context, found.source)
    calls = context.profile.calls
    start, stop = union(
        calls.start_ns[made_and_copied], calls.start_ns[made_and_copied] + calls.duration_ns[made_and_copied]
    )
    time = int((stop - start).sum()) // count
    share = percent(time, context.recorded_step_ns) or 0.0
    seen = f"{per_step:.3g} tensors a step are made on the CPU and copied to the GPU; both take the CPU "
    f"{of_recorded_step(context, time)}"
    if share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}, {share:.1f} %.")
    waits = found.waits(context)
    estimate = saved(
        context,
        without_waits(context, waits, made_and_copied),
        "The CPU neither makes nor copies them; what the GPU takes to make them is not counted.",
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}; without that the step would be {estimate.percent:.1f} % shorter.")
    names = _names(context, found)
    call_site = call_site_of(context, waits)
    return RULE.finding(
        title=f"{per_step:.3g} tensors a step are made on the CPU only to be copied",
        seen=f"{seen}. They come from {names}." + (f" They are copied in {call_site}." if call_site else ""),
        readings=[
            Reading("Tensors made on the CPU and copied, per step", per_step, "count", thresholds.READS_PER_STEP),
            Reading("CPU time for them, per step", time, "ns"),
            Reading("Bytes copied per step", int(np.maximum(found.bytes, 0).sum()) // count, "bytes"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=call_rows(context, made_and_copied),
        change=f"Give {names} device=..., or make the tensors once before the loop where they do not change."
        + (f" They are copied in {call_site}." if call_site else ""),
        code=_CODE,
        saving=estimate,
    ).but(confidence="high" if context.step_was_timed else "medium")


def _names(context: RuleContext, found: HostDeviceCopies) -> str:
    """ "torch.randn and torch.ones", the slowest first."""
    calls, ops, strings = context.profile.calls, context.profile.ops, context.profile.strings
    time: dict[str, int] = {}
    for row, top in zip(found.source.tolist(), found.top.tolist(), strict=True):
        op = strings[ops.name[calls.op[row]]].removeprefix("aten::")
        name = "torch.tensor" if row == top or op.startswith("detach") else f"torch.{op.rstrip('_')}"
        time[name] = time.get(name, 0) + int(calls.duration_ns[row])
    ordered = sorted(time, key=lambda name: -time[name])
    return " and ".join(ordered[:3])
