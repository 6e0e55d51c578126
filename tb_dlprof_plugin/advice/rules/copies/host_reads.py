"""Values are read off the GPU in each step.

Ops that need a value of the GPU on the CPU, in every other step or more often: `.item()`, `float(t)`, `if t:`,
printing a tensor, `nonzero()` and boolean masks, whose result has a size that only the GPU knows.

Why it matters: The CPU waits until the GPU has done everything that was launched before. Meanwhile it launches
nothing, so that the GPU has nothing to do when the value has arrived. Only that idle time counts: a read while the
GPU has enough queued work costs nothing, and the rule ignores it.

What to change: Keep the value on the GPU and read it every hundred steps, or all values at once; replace masks by
`torch.where`. Record with `with_stack=True` to see which function reads.

When to leave it: The value decides what the step does next and cannot be had otherwise.

To confirm: Record again: the waits should be gone from the Launches page, and the GPU busy a larger part of the step.

In other tools:
- Nsight Systems: CUDA Synchronization APIs
- HTA: Host wait (idle time breakdown)

Read on:
- [PyTorch: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization)
"""

from __future__ import annotations

import re

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import call_rows, call_site_of
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.copies.copies import copy_waits
from tb_dlprof_plugin.advice.savings import saved, without_waits
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, Role
from tb_dlprof_plugin.model.tree import inherit
from tb_dlprof_plugin.names.ops import COPY
from tb_dlprof_plugin.simulation.call_names import calls_named
from tb_dlprof_plugin.simulation.synchronisation import SyncKind, sync_kinds

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.CUDA_CALLS, Need.GPU),
    thresholds=("READS_PER_STEP", "WORTHWHILE_SAVING_PERCENT", "REPLAYED_WAITS"),
)

_NOT_READS = ("c10d::", "nccl:", "gloo:", "record_param_comms", "DistributedDataParallel")
_SCALARS = ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal")
_SCALER = "aten::_amp_foreach_non_finite_check_and_unscale_"


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the GPU runs out of work because the CPU waits for values, for a notable share of the step."""
    view, count = context.view, context.selection.count
    waits = _waits(context)
    reads = np.unique(view.call_top[waits])
    per_step = len(reads) / count
    if not len(reads):
        return Silent("No op waited for a value of the GPU.")
    if per_step < thresholds.READS_PER_STEP:
        return Silent(f"{len(reads)} reads in {count} steps made the CPU wait: no more than logging needs.")
    waited = int(context.profile.calls.duration_ns[waits].sum()) // count
    idle = context.idle_ns
    share = percent(idle, context.step_ns) or 0.0
    seen = f"{per_step:.3g} reads a step make the CPU wait for {ms(waited)}"
    if share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}, but the GPU is idle for only {share:.1f} % of the step.")
    scalars = np.zeros(len(waits), dtype=np.bool_)
    scalars[reads] = calls_named(view, CallKind.OP, _SCALARS.__contains__)[reads]
    estimate = saved(
        context,
        without_waits(context, waits, scalars),
        "Without the waits the CPU launches on while the GPU works; the reads themselves go too.",
        low=without_waits(context, waits),
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"{seen}; without that the step would be {estimate.percent:.1f} % shorter.")
    by_scaler = bool(_after_scaler(context)[reads].all())
    call_site = call_site_of(context, waits)
    return RULE.finding(
        title=f"The CPU reads values from the GPU {_times(per_step)} a step and waits for them",
        seen=f"{seen}. The GPU is idle for {idle / 1e6:.2f} of the {ms(context.step_ns)} of a step."
        + (f" Most of them are in {call_site}." if call_site else ""),
        readings=[
            Reading("Reads per step", per_step, "count", thresholds.READS_PER_STEP),
            Reading("Waiting for them, per step", waited, "ns"),
            Reading("GPU idle per step", idle, "ns"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=call_rows(context, waits),
        change=_SCALER_CHANGE if by_scaler else _change(context, reads, call_site),
        code=_SCALER_CODE if by_scaler else _code(context, reads),
        saving=estimate,
    ).but(confidence="high" if context.step_was_timed else "medium")


_SCALAR_CODE = """losses.append(loss.detach())               # instead of loss.item(): no wait
if step % 100 == 0:
    print(torch.stack(losses).mean().item())  # one wait for a hundred steps
    losses.clear()
"""
_SCALER_CHANGE = (
    "The GradScaler reads after each backward pass whether all gradients are finite. A fused optimizer decides that on "
    "the GPU, without a wait."
)
_SCALER_CODE = "optimizer = torch.optim.AdamW(model.parameters(), lr=..., fused=True)  # also Adam, SGD, Adagrad\n"


_MASK_CODE = """loss = torch.where(mask, loss, 0).sum() / mask.sum()  # instead of loss[mask].mean(): no wait
"""
_BY_MASK = re.compile(r"::(nonzero|index|index_put_?|masked_select)$|(Index|IndexPut|MaskedSelect)Backward")
"""Ops that must know how many elements a mask selects."""


def _most_often(context: RuleContext, reads: Ints) -> list[str]:
    """The ops that read most often."""
    ops, calls, strings = context.profile.ops, context.profile.calls, context.profile.strings
    names, counts = np.unique(ops.name[calls.op[reads]], return_counts=True)
    return [strings[i] for i in names[np.argsort(-counts, kind="stable")][:3].tolist()]


def _code(context: RuleContext, reads: Ints) -> str:
    """Of the change for the op that reads most often; "" where it is not known what the program wants of the value."""
    first = _most_often(context, reads)[0]
    return _SCALAR_CODE if first in _SCALARS else _MASK_CODE if _BY_MASK.search(first) else ""


def _change(context: RuleContext, reads: Ints, call_site: str) -> str:
    ops, calls, strings = context.profile.ops, context.profile.calls, context.profile.strings
    most = _most_often(context, reads)
    modules = sorted({strings[i] for i in np.unique(ops.module[calls.op[reads]]).tolist()} - {""})[:3]
    where = f" in {call_site}" if call_site else f" in {', '.join(modules)}" if modules else " in the training loop"
    if most[0] in _SCALARS:
        how = "collect the tensors and call .item() every hundred steps"
    elif _BY_MASK.search(most[0]):
        how = "use torch.where or multiply by the mask instead of indexing with it"
    else:
        how = "keep the result on the GPU, or need it less often"
    return f"The ops that wait are {', '.join(most)}{where}: {how}."


def _waits(context: RuleContext) -> Bools:
    """Calls in which an op of the training waits for the GPU for another purpose than a requested copy."""
    view, calls, ops = context.view, context.profile.calls, context.profile.ops
    kind = sync_kinds(view, view.selection())
    waits = np.isin(kind, (SyncKind.WAIT, SyncKind.COPY, SyncKind.PAGEABLE_COPY, SyncKind.SCALAR))
    waits &= view.selected_calls(context.selection) & (view.call_top >= 0)
    waits &= (ops.role[calls.op] != Role.DATALOADER) & ~copy_waits(view, view.selection())
    # What DDP copies in the backward pass is its own.
    alone = calls_named(view, CallKind.OP, COPY.__eq__) & (view.call_parent < 0)
    waits &= ~inherit(alone, alone, view.call_parent)
    other = calls_named(view, CallKind.OP, lambda name: name.startswith(_NOT_READS))
    inside: Bools = waits & ~inherit(other, other, view.call_parent)
    return inside


def _after_scaler(context: RuleContext) -> Bools:
    """Which outermost ops are the first after those of the gradient scaler."""
    view = context.view
    tops = np.flatnonzero(view.call_top == np.arange(len(view.call_top)))
    scaler = calls_named(view, CallKind.OP, _SCALER.__eq__)[tops]
    copying = calls_named(view, CallKind.OP, ("aten::to", COPY).__contains__)[tops]
    result = np.zeros(len(view.call_top), dtype=np.bool_)
    # Between the check and the read the results of several devices may be brought together.
    behind = np.concatenate(([False], scaler[:-1]))
    again = np.concatenate(([False], (behind & copying)[:-1]))
    result[tops[behind | again]] = True
    return result


def _times(count: float) -> str:
    """Such as "once" and "2.5 times"."""
    return "once" if count == 1 else f"{count:.3g} times"
