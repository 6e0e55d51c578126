"""A ReLU before a max pooling.

ReLUs whose output goes to a max pooling and nowhere else.

Why it matters: Both orders give the same numbers: whether negative values become 0 before or after the largest is taken
makes no difference. But a pooling of 2 x 2 leaves a quarter of the elements. A ReLU after it reads, writes and, in the
backward pass, masks only these.

What to change: Swap the two: pool first.

When to leave it: A trained model's code must stay as it is, or a compiler fuses the ReLU with what is before it.

To confirm: Record again and open Compare: the ReLUs should take about as much less as they have fewer elements.

Read on:
- [PyTorch: MaxPool2d](https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html)
"""

from __future__ import annotations

import math

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.op_patterns import adjacent_ops, launched_in
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import change, step_saving
from tb_dlprof_plugin.advice.text import listed, milliseconds
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.shapes import shape_at

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.SHAPES, Need.GPU),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "STEP_NOISE"),
    confidence="high",
)

RELU_KERNELS_STAY = 0.15
"""Share of the kernels' time, or of the elements, that the low end of a saving leaves though it should go: what they
wrote may have been in the cache for the next."""

_RELU = frozenset({"aten::relu", "aten::relu_"})
_POOL = frozenset(f"aten::max_pool{n}d" for n in (1, 2, 3))
_POOL_BACKWARD = "aten::max_pool2d_with_indices_backward"


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the elements that pooling removes cost the ReLUs a notable share of the step."""
    found = adjacent_ops(context, _RELU.__contains__, _POOL.__contains__)
    if not len(found.first):
        return Silent("No ReLU's output goes to a max pooling alone.", applicable=False)
    profile = context.profile
    ops, calls, strings = profile.ops, profile.calls, profile.strings
    left = _left(context)
    forward = np.zeros(len(calls), dtype=np.bool_)
    forward[found.first] = True
    launches = launched_in(context, forward | found.first_backward) & context.view.selected_launches(context.selection)
    stays = np.ones(len(profile.launches))
    # A ReLU and its autograd node have the shape of what the pooling reads.
    for op in np.unique(context.view.launch_op[launches]).tolist():
        shape = shape_at(profile.shapes_of(op), 0)
        stays[launches & (context.view.launch_op == op)] = left.get(shape or (), 1.0)
    launches &= stays < 1
    time = context.per_step(launches)
    goes = round(float((profile.launches.duration_ns * (1 - stays))[launches].sum()) / context.selection.count)
    share, most = percent(time, context.step_ns) or 0.0, percent(goes, context.step_ns) or 0.0
    if most < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(
            f"The ReLUs before max poolings take {milliseconds(time)} a step; after them the step could be "
            f"{most:.1f} % shorter."
        )
    modules = [strings[ops.module[op]] for op in calls.op[found.first].tolist()]
    behind = [strings[ops.module[op]] for op in calls.op[found.second].tolist()]
    estimate = step_saving(
        context,
        change(context, (launches, 1 - (1 - stays) * (1 - RELU_KERNELS_STAY))),
        change(context, (launches, stays)),
        change(context, (launches, stays / 2)),
        f"The ReLUs take {milliseconds(time)} a step, forward and backward; after the pooling they have only its "
        f"outputs to work on, which saves {milliseconds(goes)} (at the high end half of the rest too, because it fits "
        "into the cache).",
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(
            f"The ReLUs before max poolings take {milliseconds(time)} a step; after them the step should be "
            f"{estimate.percent:.1f} % shorter."
        )
    count = len(set(zip(modules, behind, strict=True)))
    return RULE.finding(
        title=f"ReLUs before max poolings cost {milliseconds(goes)} a step more than after them",
        seen=f"{count} ReLUs stand before a max pooling ({listed(modules)}). They take {milliseconds(time)} of kernel "
        f"time a step ({share:.1f} %), forward and backward.",
        readings=[
            Reading("ReLUs before a max pooling", count, "count"),
            Reading("Their kernel time per step", time, "ns"),
            Reading("Of it for elements that the pooling removes", goes, "ns"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=op_rows(context, launches),
        change="Swap each of them with the pooling after it"
        + (f": {_swaps(modules, behind)}." if any(modules) else ".")
        + " Outputs and gradients stay the same.",
        code="x = F.relu(F.max_pool2d(x, 2))  # instead of F.max_pool2d(F.relu(x), 2)\n",
        saving=estimate,
    )


def _left(context: RuleContext) -> dict[tuple[int, ...], float]:
    """By the shape that a pooling reads, the share of its elements that it gives: its backward pass shows both."""
    ops, strings = context.profile.ops, context.profile.strings
    found: dict[tuple[int, ...], float] = {}
    for op, name in enumerate(ops.name.tolist()):
        if strings[name] != _POOL_BACKWARD:
            continue
        dims = context.profile.shapes_of(op)
        gradient, image = shape_at(dims, 0), shape_at(dims, 1)
        if gradient and image:
            found[image] = max(found.get(image, 0.0), math.prod(gradient) / max(math.prod(image), 1))
    return found


def _swaps(modules: list[str], behind: list[str]) -> str:
    return listed([f"{a or 'the ReLU'} and {b or 'the pooling'}" for a, b in zip(modules, behind, strict=True)], 8)
