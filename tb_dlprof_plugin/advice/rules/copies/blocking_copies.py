"""The CPU waits for copies.

`.to(device)` and `.cuda()` without `non_blocking=True`, `.cpu()`, `.numpy()` and `.tolist()`, in every other step or
more often: copies after which PyTorch waits for the GPU.

Why it matters: Such a copy returns when all work before it is done. Then the CPU has launched nothing ahead, and the
GPU has nothing to do until the next launch arrives. Only that idle time counts. Other rules are about copies that are
made from values, very small and many, from pageable memory, or slow.

What to change: Copy to the GPU from pinned memory with `non_blocking=True`. Keep results on the GPU and fetch them
once every hundred steps.

When to leave it: The CPU needs the result in the same step.

To confirm: Record again: no cudaStreamSynchronize should follow the copies on the Launches page, and the GPU busy a
larger part of the step.

In other tools:
- Nsight Systems: CUDA Synchronous Memcpy

Read on:
- [PyTorch: pin_memory() and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice import frameworks, thresholds
from tb_dlprof_plugin.advice.evidence import call_rows, call_site_of
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.copies.copies import Fault, HostDeviceCopies, copies
from tb_dlprof_plugin.advice.savings import saved, without_waits
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.CUDA_CALLS, Need.GPU),
    thresholds=("READS_PER_STEP", "WORTHWHILE_SAVING_PERCENT", "REPLAYED_WAITS"),
    remedies=frameworks.COPIES,
)

_TO_GPU = """loader = torch.utils.data.DataLoader(dataset, ..., pin_memory=True)
for inputs, targets in loader:
    inputs = inputs.to(device, non_blocking=True)
    targets = targets.to(device, non_blocking=True)
"""
_FROM_GPU = """losses.append(loss.detach())         # instead of loss.cpu(): no wait
if step % 100 == 0:
    log(torch.stack(losses).tolist())  # one wait for a hundred steps
    losses.clear()
"""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where waiting for copies lets the GPU run out of work for a notable share of the step."""
    found = copies(context.view, context.selection).of(Fault.BLOCKING)
    count = context.selection.count
    per_step = len(found) / count
    if not len(found):
        return Silent("The CPU waited for no copy that it could have done without waiting.")
    if per_step < thresholds.READS_PER_STEP:
        return Silent(f"The CPU waited for {len(found)} copies in {count} steps.")
    waits = found.waits(context)
    waited = int(context.profile.calls.duration_ns[waits].sum()) // count
    idle = context.idle_ns
    seen = f"The CPU waits for {per_step:.3g} copies a step, {ms(waited)} in all"
    share = percent(idle, context.step_ns) or 0.0
    if share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}, but the GPU is idle for only {share:.1f} % of the step.")
    estimate = saved(
        context,
        without_waits(context, waits, found.where(~found.to_gpu).tops(context)),
        "Without the waits the CPU launches on while the GPU works; what is fetched is fetched less often.",
        low=without_waits(context, waits),
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}; without waiting the step would be {estimate.percent:.1f} % shorter.")
    to_gpu, from_gpu = int(found.to_gpu.sum()), int((~found.to_gpu).sum())
    call_site = call_site_of(context, waits)
    return RULE.finding(
        title=f"The CPU waits for {per_step:.3g} copies a step",
        seen=f"{seen}: {to_gpu / count:.3g} to the GPU and {from_gpu / count:.3g} from it. The GPU is idle for "
        f"{idle / 1e6:.2f} of the {ms(context.step_ns)} of a step."
        + (f" Most of them are made in {call_site}." if call_site else ""),
        readings=[
            Reading("Copies that the CPU waits for, per step", per_step, "count", thresholds.READS_PER_STEP),
            Reading("Waiting, per step", waited, "ns"),
            Reading("GPU idle per step", idle, "ns"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=call_rows(context, waits),
        change=_change(found, call_site),
        code=(_TO_GPU if to_gpu else "") + (_FROM_GPU if from_gpu else ""),
        saving=estimate,
    ).but(confidence="high" if context.step_was_timed else "medium")


def _change(found: HostDeviceCopies, call_site: str) -> str:
    parts = []
    if found.to_gpu.any():
        pageable = " (they lie in pageable memory: pin it first)" if found.pageable[found.to_gpu].any() else ""
        parts.append(f"Give .to(device) of the batch's tensors non_blocking=True{pageable}.")
    if (~found.to_gpu).any():
        parts.append("Keep on the GPU what .cpu(), .numpy() or .tolist() fetch in each step, and fetch it less often.")
    if call_site:
        parts.append(f"The copies are made in {call_site}.")
    return " ".join(parts)
