"""The CPU waits for memory to be set.

`cudaMemset` and its relatives on pinned or managed memory. They return when the set and all work before it are done.
PyTorch itself never calls them: they come from CUDA extensions and other libraries.

Why it matters: The CPU waits for the GPU as at any other synchronising call. After each wait the GPU has nothing to do
until the next launch arrives. Sets of the GPU's own memory do not wait, and are not counted.

What to change: Call the asynchronous version on PyTorch's current stream, or let the CPU clear its memory itself.

When to leave it: The library is not yours and has no other way.

To confirm: Record again: the calls should be gone from the Launches page, and the GPU busy a larger part of the step.

In other tools:
- Nsight Systems: CUDA Synchronous Memset

Read on:
- [CUDA: API synchronization behavior](https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import call_rows, call_site_of
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import saved, without_waits
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.simulation.waits import waiting_sets

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.CUDA_CALLS, Need.GPU),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "REPLAYED_WAITS"),
)

_CODE = """// in the extension
#include <ATen/cuda/CUDAContext.h>
cudaMemsetAsync(pointer, 0, bytes, at::cuda::getCurrentCUDAStream());  // instead of cudaMemset(pointer, 0, bytes)
"""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where such sets let the GPU run out of work for a notable share of the step."""
    sets = waiting_sets(context.view, context.view.selection()) & context.view.selected_calls(context.selection)
    count = context.selection.count
    number = int(sets.sum())
    if not number:
        return Silent("No set of pinned or managed memory made the CPU wait.")
    waited = int(context.profile.calls.duration_ns[sets].sum()) // count
    idle = context.idle_ns
    seen = f"{number / count:.3g} sets a step make the CPU wait for {ms(waited)}"
    share = percent(idle, context.step_ns) or 0.0
    if share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}, but the GPU is idle for only {share:.1f} % of the step.")
    estimate = saved(
        context, without_waits(context, sets), "Asynchronous sets let the CPU launch on while the GPU works."
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}; without that the step would be {estimate.percent:.1f} % shorter.")
    strings, ops, calls = context.profile.strings, context.profile.ops, context.profile.calls
    names = sorted({strings[i] for i in np.unique(ops.name[calls.op[sets]]).tolist()})
    call_site = call_site_of(context, sets)
    return RULE.finding(
        title=f"The CPU waits {number / count:.3g} times a step until pinned memory is set",
        seen=f"{seen}: {', '.join(names)}. The GPU is idle for {idle / 1e6:.2f} of the "
        f"{ms(context.step_ns)} of "
        "a step." + (f" Most of them are called in {call_site}." if call_site else ""),
        readings=[
            Reading("Sets that wait, per step", number / count, "count"),
            Reading("Waiting, per step", waited, "ns"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=call_rows(context, sets),
        change=f"Replace {' and '.join(names)} by the asynchronous version on the stream that PyTorch works on"
        + (f" (called in {call_site})." if call_site else "."),
        code=_CODE,
        saving=estimate,
    ).but(confidence="high" if context.step_was_timed else "medium")
