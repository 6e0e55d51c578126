"""The training loop waits for the GPU.

Calls outside every op whose purpose is to wait, in every other step or more often: `torch.cuda.synchronize()`,
`stream.synchronize()`, `event.synchronize()`.

Why it matters: While the CPU waits it launches nothing. After each wait the GPU has nothing to do until the next launch
arrives. PyTorch orders the work on the GPU by itself; a step needs no wait. Counted is only what the GPU loses: waiting
for an event while the GPU has more to do costs nothing.

What to change: Take the call out of the step. To time parts of it, record `torch.cuda.Event`s and read them later.

When to leave it: The wait protects memory that the CPU is about to read or write again. It comes as late as it can.

To confirm: Record again: the calls should be gone from the Launches page, and the GPU busy a larger part of the step.

In other tools:
- Nsight Systems: CUDA Synchronization APIs
- nvprof / Visual Profiler: Low Compute Utilization (synchronization calls in the API trace)

Read on:
- [PyTorch: asynchronous execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import frameworks, thresholds
from tb_dlprof_plugin.advice.evidence import call_rows, call_site_of
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import saved, without_waits
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.profile import Bools, CallKind, Role
from tb_dlprof_plugin.model.tree import inherit
from tb_dlprof_plugin.names.cuda_calls import CudaCall, cuda_call
from tb_dlprof_plugin.simulation.call_names import calls_named, launching_calls
from tb_dlprof_plugin.simulation.synchronisation import SyncKind, sync_kinds
from tb_dlprof_plugin.simulation.waits import waits_for_less

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.CUDA_CALLS, Need.GPU),
    thresholds=("READS_PER_STEP", "WORTHWHILE_SAVING_PERCENT", "REPLAYED_WAITS"),
    remedies=frameworks.WAITS,
)

_CODE = """start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
...  # what is timed
end.record()
events.append((start, end))  # no wait

# after the epoch
torch.cuda.synchronize()
times_ms = [start.elapsed_time(end) for start, end in events]
"""
_IN_PYTHON = {
    CudaCall.DEVICE_SYNCHRONIZE: "torch.cuda.synchronize()",
    CudaCall.STREAM_SYNCHRONIZE: "stream.synchronize()",
    CudaCall.EVENT_SYNCHRONIZE: "event.synchronize()",
}
_NOT_THE_LOOPS = ("DistributedDataParallel.",)
"""DDP times its own work by events, in its first ten iterations and then in every hundredth."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where such calls let the GPU run out of work for a notable share of the step."""
    count = context.selection.count
    waits = _waits(context)
    number = int(waits.sum())
    if not number:
        return Silent(f"{context.words.program} waited for nothing outside ops.")
    per_step = number / count
    if per_step < thresholds.READS_PER_STEP:
        return Silent(f"{context.words.program} waited {number} times in {count} steps.")
    waited = int(context.profile.calls.duration_ns[waits].sum()) // count
    idle = context.idle_ns
    seen = f"{per_step:.3g} calls a step make the CPU wait for {ms(waited)}"
    share = percent(idle, context.step_ns) or 0.0
    if share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}, but the GPU is idle for only {share:.1f} % of the step.")
    estimate = saved(
        context, without_waits(context, waits, waits), "Without these calls the CPU launches on while the GPU works."
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}; without them the step would be {estimate.percent:.1f} % shorter.")
    strings, ops, calls = context.profile.strings, context.profile.ops, context.profile.calls
    names = sorted({strings[i] for i in np.unique(ops.name[calls.op[waits]]).tolist()})
    call_site = call_site_of(context, waits)
    return RULE.finding(
        title=f"{context.words.program} waits for the GPU {per_step:.3g} times a step",
        seen=f"{seen}: {', '.join(names)}. The GPU is idle for {idle / 1e6:.2f} of the "
        f"{ms(context.step_ns)} of "
        "a step." + (f" Most of the calls are in {call_site}." if call_site else ""),
        readings=[
            Reading("Waiting calls per step", per_step, "count", thresholds.READS_PER_STEP),
            Reading("Waiting, per step", waited, "ns"),
            Reading("GPU idle per step", idle, "ns"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=call_rows(context, waits),
        change=f"Take {_who(names)} out of the step"
        + (f" (in {call_site})" if call_site else "")
        + ". If it is there to time something, use CUDA events and read them at the end.",
        code=_CODE,
        saving=estimate,
    ).but(confidence="high" if context.step_was_timed else "medium")


def _who(names: list[str]) -> str:
    return " and ".join(dict.fromkeys(_IN_PYTHON.get(cuda_call(name), name) for name in names))


def _waits(context: RuleContext) -> Bools:
    """Waits of the selected iterations outside every op, in threads that launch: waits in other threads do not
    count."""
    view, calls, ops = context.view, context.profile.calls, context.profile.ops
    waits = sync_kinds(view, view.selection()) == SyncKind.WAIT
    waits &= view.selected_calls(context.selection) & (view.call_top < 0) & (ops.role[calls.op] != Role.DATALOADER)
    waits &= ~waits_for_less(view)
    threads = np.unique(calls.thread[launching_calls(view)])
    other = calls_named(view, CallKind.ANNOTATION, lambda name: name.startswith(_NOT_THE_LOOPS))
    result: Bools = waits & np.isin(calls.thread, threads) & ~inherit(other, other, view.call_parent)
    return result
