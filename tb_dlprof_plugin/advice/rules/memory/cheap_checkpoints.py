"""Memory is short, and some of it is cheap to compute again.

Modules that keep much for their backward pass and take little time in the forward pass. The training fills the memory.

Why it matters: Under activation checkpointing a module keeps its input alone between the passes. The backward pass
computes the rest again. A few modules that keep much are often enough, and cost a part of what checkpointing the whole
network does.

What to change: Put these modules under `torch.utils.checkpoint.checkpoint`.

When to leave it: The batch is as large as it should be, and nothing else needs the memory.

To confirm: Record memory again: the peak should be lower by what the replay says, and the step hardly longer.

Read on:
- [PyTorch: activation checkpointing](https://docs.pytorch.org/docs/stable/checkpoint.html)
- [Chen et al.: training deep nets with sublinear memory cost](https://arxiv.org/abs/1604.06174)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.gpu_memory import capacity_bytes, gigabytes
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, JobNeed, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.text import listed
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.plan_request import PlanError, PlanRequest
from tb_dlprof_plugin.planning.memory.module_choices import FrontierPoint, frontier
from tb_dlprof_plugin.planning.memory.plan import planner
from tb_dlprof_plugin.planning.memory.step_program import UnknownModule
from tb_dlprof_plugin.planning.memory.step_time import NoStepTime, step_time

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.MEMORY, Need.PROCESS, Need.GPU, JobNeed.PEAK_MEMORY),
    thresholds=("SHORT_OF_MEMORY_PERCENT",),
    severity="low",
)

CHECKPOINT_SAVES_PERCENT = 15.0
CHECKPOINT_COSTS_PERCENT = 10.0
"""Of the peak memory, at the least, and of the step, at the most. Ours: checkpointing all blocks of a network made it
16 to 32 % longer on an H200 (lab/memory_plan)."""

_CODE = """from torch.utils.checkpoint import checkpoint

x = checkpoint({module}, x, use_reentrant=False)  # in place of {module}(x)
"""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where a set of checkpoints saves a notable share of the peak for little of the step."""
    capacity, peak = capacity_bytes(context), context.facts.peak_memory_allocated_bytes
    assert capacity is not None
    assert peak is not None
    used = percent(peak, capacity) or 0.0
    held = f"The peak of {gigabytes(peak)} is {used:.0f} % of the memory"
    if used < thresholds.SHORT_OF_MEMORY_PERCENT:
        return Silent(f"{held}.")
    try:
        known = planner(context.view)
        points = list(frontier(context.view, known.program, known.recorded_settings))
        before = step_time(context.view, PlanRequest()).ns
        found = _largest_that_is_cheap(context, points, before)
    except (PlanError, UnknownModule, NoStepTime) as error:
        return Silent(f"{held}. What checkpoints would save is not known: {error}", applicable=False)
    if found is None:
        return Silent(f"{held}, and no set of checkpoints saves much of it for little time.")
    point, costs = found
    saved = points[0].peak_allocated - point.peak_allocated
    share = percent(saved, points[0].peak_allocated) or 0.0
    return RULE.finding(
        title=f"Checkpoints would free {gigabytes(saved)} for {costs:.1f} % of the step",
        seen=f"{held}. With {listed(list(point.modules))} computed again in the backward pass, tensors would take "
        f"{gigabytes(point.peak_allocated)} at the peak, by a replay of the allocator, and the step "
        f"{costs:.1f} % longer, by a replay of its launches.",
        readings=[
            Reading("Memory taken at the peak", used, "percent", thresholds.SHORT_OF_MEMORY_PERCENT),
            Reading("Lower peak", share, "percent", CHECKPOINT_SAVES_PERCENT),
            Reading("Longer step", costs, "percent", CHECKPOINT_COSTS_PERCENT),
            Reading("Kernel time computed again, per step", point.added_ns, "ns"),
        ],
        evidence=[EvidenceRow("Peak memory", None, used, "memory", "")],
        change=f"Checkpoint {listed(list(point.modules), 8)}.",
        code=_CODE.format(module=_expression(point.modules[0])),
        saving="The step gets longer; what is gained is memory, for a larger batch or a larger model.",
    )


def _expression(path: str) -> str:
    """A module in the code of the model that has it: "blocks.6.mlp" is ``self.blocks[6].mlp``."""
    return "self" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split("."))


def _largest_that_is_cheap(
    context: RuleContext, points: list[FrontierPoint], before_ns: float
) -> tuple[FrontierPoint, float] | None:
    """The last point whose cost is small, with that cost in percent; None where none saves enough."""
    best = None
    for point in points[1:]:
        saves = percent(points[0].peak_allocated - point.peak_allocated, points[0].peak_allocated) or 0.0
        costs = percent(point.added_ns, before_ns) or 0.0
        # Kernel time is the least that it costs: where that is too much, the replay of the step is not needed.
        if costs > CHECKPOINT_COSTS_PERCENT:
            break
        if saves < CHECKPOINT_SAVES_PERCENT:
            continue
        after_ns = step_time(context.view, PlanRequest(checkpoint=point.modules)).ns
        costs = percent(after_ns - before_ns, before_ns) or 0.0
        if costs <= CHECKPOINT_COSTS_PERCENT:
            best = point, max(costs, 0.0)
    return best
