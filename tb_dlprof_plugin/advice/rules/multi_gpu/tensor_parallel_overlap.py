"""Communication of tensor parallelism is not hidden.

All-gathers, reduce-scatters and all-reduces of a tensor-parallel group in which the GPU does nothing else.

Why it matters: A product of a tensor-parallel layer needs the whole input. Its output is summed up over the ranks
before the next layer: the collectives lie between products. Async tensor parallelism divides a product into as many
parts as there are ranks. It computes with what has arrived while the rest moves.

What to change: With sequence parallelism, compile the model with `torch._inductor.config._micro_pipeline_tp = True`
and enable symmetric memory for the group.

When to leave it: The GPUs have no NVLink among all of them, which symmetric memory needs.

To confirm: Record all ranks again: products in parts next to copies between GPUs, and fewer collectives.

Read on:
- [PyTorch: Introducing Async Tensor Parallelism in PyTorch](https://discuss.pytorch.org/t/distributed-w-torchtitan-introducing-async-tensor-parallelism-in-pytorch/209487)
- [Wang et al., Overlap Communication with Dependent Computation via Decomposition in Large Deep Learning Models](https://dl.acm.org/doi/10.1145/3567955.3567959)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.rule import Finding, JobNeed, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.multi_gpu.replayed_calls import ReplayedCalls, replayed_calls, worthwhile
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.fleet.rank_facts import Operation
from tb_dlprof_plugin.model.profile import Bools

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU, JobNeed.REPLAYED_JOB),
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
    confidence="low",
)

_HIDDEN = SpeedupRange(0.0, 0.5, 1.0)
"""Of what parts of a product can hide of a collective, that is hidden: products in parts are less efficient, which no
recording shows. At best all of it."""
_CODE = """torch._inductor.config._micro_pipeline_tp = True
torch.distributed._symmetric_memory.enable_symm_mem_for_group(mesh["tp"].get_group().group_name)
model = torch.compile(model)
"""
_SEQUENCE = """# norms and dropout between the layers on a part of the sequence each: all-reduces become pairs of
# reduce-scatter and all-gather
parallelize_module(block, mesh["tp"], {"norm1": SequenceParallel(), "norm2": SequenceParallel(), ...})
"""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where hiding half of what can be hidden saves `WORTHWHILE_SAVING_PERCENT` of the step."""
    calls = replayed_calls(context)
    assert calls is not None
    chosen = _of_layers(calls)
    ranks = _members(calls, chosen)
    if not chosen.any() or ranks < 2:
        return Silent("Not applicable: this recording has no collectives of tensor parallelism.", applicable=False)
    exposed_ns = calls.per_step(calls.exposed, chosen)
    hidden = np.where(chosen, calls.exposed * (1 - 1 / ranks), 0.0)
    estimate = calls.saving(
        context,
        [hidden * share for share in (_HIDDEN.low, _HIDDEN.expected, _HIDDEN.high)],
        f"In {ranks} parts the product next to a collective hides at most {ranks - 1} of {ranks} parts of the "
        f"{ms(exposed_ns)}; {100 * _HIDDEN.low:.0f} to {100 * _HIDDEN.high:.0f} % of that, expected "
        f"{100 * _HIDDEN.expected:.0f} %, because products in parts are less efficient.",
    )
    numbers = f"Collectives of tensor parallelism take {ms(exposed_ns)} of a step with nothing else running"
    if not worthwhile(context, estimate):
        return Silent(f"{numbers}; hiding them saves {ms(estimate.expected_ns)}.")
    reduces = bool((chosen & (calls.operation == Operation.ALL_REDUCE)).any())
    return RULE.finding(
        title=f"Tensor parallelism waits {ms(exposed_ns)} of each step for its collectives",
        seen=f"{numbers}, over {ranks} ranks."
        + (" They are all-reduces, which cannot be hidden in parts." if reduces else ""),
        readings=[
            Reading("Collectives of tensor parallelism with nothing else running per step", exposed_ns, "ns"),
            Reading("Ranks of the group", ranks, "count"),
        ],
        change=("Divide the sequence between the layers (sequence parallelism), then turn" if reduces else "Turn")
        + " async tensor parallelism on"
        + ("." if context.facts.compiled else ": it needs torch.compile."),
        code=(_SEQUENCE if reduces else "") + _CODE,
        saving=estimate,
    )


def _of_layers(calls: ReplayedCalls) -> Bools:
    """Collectives of a tensor-parallel group; as in `fleet.dimensions` one of all ranks may be."""
    kinds = np.isin(calls.operation, [Operation.ALL_GATHER, Operation.REDUCE_SCATTER, Operation.ALL_REDUCE])
    result: Bools = kinds & calls.named("tp")
    return result


def _members(calls: ReplayedCalls, chosen: Bools) -> int:
    """Ranks of the largest collective among these calls."""
    collective = calls.replayed.scenarios.calls.collective
    return int(np.bincount(collective)[collective[chosen]].max(initial=0))
