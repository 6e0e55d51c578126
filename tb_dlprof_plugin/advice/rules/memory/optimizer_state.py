"""The optimizer's states fill the memory.

Optimizer states that take a large part of the peak memory of a run that fills the GPU.

Why it matters: Adam keeps two numbers of FP32 for each parameter: 8 bytes, with 4 each for parameter and gradient.
Where memory limits the batch or the model, that is half of it.

What to change: Shard the states over the ranks (ZeRO, FSDP), or keep them in 8 bits. Or take an optimizer with smaller
states (Adafactor, SGD with momentum).

When to leave it: The batch is as large as it should be, and nothing else needs the memory.

To confirm: Record again: the peak of memory should be lower by about the states' size.

Read on:
- [PyTorch: ZeroRedundancyOptimizer](https://docs.pytorch.org/docs/stable/distributed.optim.html#torch.distributed.optim.ZeroRedundancyOptimizer)
- [Dettmers et al.: 8-bit optimizers](https://arxiv.org/abs/2110.02861)
- [Rajbhandari et al.: ZeRO](https://arxiv.org/abs/1910.02054)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.gpu_memory import capacity_bytes, gigabytes, memory_after
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.plan_request import PlanRequest

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.PROCESS, Need.GPU),
    thresholds=("SHORT_OF_MEMORY_PERCENT",),
    confidence="high",
    severity="low",
    facts=("optimizer",),
)

OPTIMIZER_STATE_PERCENT = 25.0
"""Of the peak memory. Adam's two moments in FP32 are half of what parameters, gradients and states take together."""

_EIGHT_BIT = """import bitsandbytes as bnb
optimizer = bnb.optim.AdamW8bit(model.parameters(), lr=lr)  # 2 bytes of states per parameter instead of 8
"""
_SHARDED = """from torch.distributed.optim import ZeroRedundancyOptimizer
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=lr)  # each rank keeps its share
"""
_ADAFACTOR = """# or, with torch alone:
optimizer = torch.optim.Adafactor(model.parameters(), lr=lr)  # rows and columns instead of all moments
"""
_PAGE = "memory"


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the peak is close to what the GPU has and the states take a large part of it."""
    state, peak = context.facts.optimizer_state_bytes, context.facts.peak_memory_allocated_bytes
    capacity = capacity_bytes(context)
    if state is None or peak is None or capacity is None:
        return Silent(
            "The optimizer's states, the peak memory or the GPU's memory were not recorded.", applicable=False
        )
    used, share = percent(peak, capacity) or 0.0, percent(state, peak) or 0.0
    if used < thresholds.SHORT_OF_MEMORY_PERCENT:
        return Silent(f"The peak of {gigabytes(peak)} is {used:.0f} % of the memory.")
    if share < OPTIMIZER_STATE_PERCENT:
        return Silent(f"The optimizer's states take {gigabytes(state)}, {share:.0f} % of the peak.")
    parameters = context.facts.parameter_count
    each = f", {state / parameters:.1f} bytes a parameter" if parameters else ""
    name = context.facts.optimizer or "the optimizer"
    ranks = context.facts.world_size or 1
    wrapper = context.parallel.wrapper or ""
    sharded = ranks > 1 and "FSDP" not in wrapper and "FullySharded" not in wrapper and "DeepSpeed" not in wrapper
    changed = PlanRequest(shard="zero1", gpus=ranks) if sharded else PlanRequest(optimizer="adamw_8bit")
    return RULE.finding(
        title=f"Memory is short, and {gigabytes(state)} of it are the optimizer's states",
        seen=f"At its peak the training took {gigabytes(peak)} of {gigabytes(capacity)} ({used:.0f} %). {name} keeps "
        f"{gigabytes(state)} of states ({share:.0f} % of the peak{each}).",
        readings=[
            Reading("Memory taken at the peak", used, "percent", thresholds.SHORT_OF_MEMORY_PERCENT),
            Reading("States of the optimizer", state, "bytes"),
            Reading("Their share of the peak", share, "percent", OPTIMIZER_STATE_PERCENT),
        ],
        evidence=[EvidenceRow("Peak memory", None, used, _PAGE, "")],
        change=(
            f"Shard the states over the {ranks} ranks: {gigabytes(state - state // ranks)} of them go from each GPU."
            if sharded
            else "Keep the states in 8 bits (bitsandbytes), which takes a quarter of the memory, or take an optimizer "
            "with smaller states. Check the loss: neither computes the same updates."
        )
        + memory_after(context, changed),
        code=_SHARDED if sharded else _EIGHT_BIT + _ADAFACTOR,
        saving="It saves memory, not time. What a larger batch would gain with it, tb-dlprof predict "
        "--batch-size tells.",
    )
