"""A bias before a batch norm does nothing.

Convolutions and linear layers with a bias whose output goes to a batch norm and nowhere else.

Why it matters: A batch norm subtracts the mean of each channel, and with it whatever the bias added: the bias changes
nothing and its gradient is 0. Yet it is added in a kernel of its own that reads and writes the whole output. Its
gradient is a sum over the whole output.

What to change: Make the layer with `bias=False`. In a trained model subtract the bias from the batch norm's
`running_mean` first, so that evaluation stays the same.

When to leave it: The batch norm is frozen (in evaluation mode while the rest trains): there the bias counts.

To confirm: Record again: the layers' kernels that add a bias (aten::add_) and sum its gradient (aten::sum) are gone.

In other tools:
- PyTorch: Enabling Bias in Conv2d Followed By BatchNorm Pattern

Read on:
- [PyTorch performance tuning guide: disable bias for convolutions directly followed by a batch norm](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.op_patterns import adjacent_ops, calls_of, launched_in, ops_named
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import change, step_saving
from tb_dlprof_plugin.advice.text import listed, milliseconds
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.profile import Bools, Ints
from tb_dlprof_plugin.model.shapes import shape_at
from tb_dlprof_plugin.model.tree import inherit

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.SHAPES, Need.GPU),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "STEP_NOISE"),
    confidence="high",
)

BIAS_KERNELS_STAY = 0.25
"""Share of the kernels' time, or of the elements, that the low end of a saving leaves though it should go: what they
wrote may have been in the cache for the next."""

_LAYERS = frozenset({"aten::linear", *(f"aten::conv{n}d" for n in (1, 2, 3))} | {
    f"aten::conv_transpose{n}d" for n in (1, 2, 3)
})  # fmt: skip
_NORM = "aten::batch_norm"
_BIAS = 2
"""Position of the bias among a layer's inputs."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where adding such biases and summing up their gradients takes a notable share of the step."""
    if context.facts.training is False:
        return Silent("The model is in evaluation mode, in which the bias counts.", applicable=False)
    found = adjacent_ops(context, _LAYERS.__contains__, lambda name: name == _NORM)
    if not len(found.first):
        return Silent("No batch norm follows a layer directly.", applicable=False)
    ops, calls = context.profile.ops, context.profile.calls
    biases = _biases(context, np.unique(calls.op[found.first]))
    with_bias = np.isin(calls.op[found.first], list(biases))
    if not with_bias.any():
        return Silent("No layer in front of a batch norm has a bias.")
    gone = _of_bias(context, found.first[with_bias], found.first_backward, set(biases.values()))
    launches = launched_in(context, gone) & context.view.selected_launches(context.selection)
    time = context.per_step(launches)
    share = percent(time, context.step_ns) or 0.0
    modules = [context.profile.strings[ops.module[op]] for op in calls.op[found.first[with_bias]].tolist()]
    names = listed(modules)
    most = percent(time + _cpu_ns(context, gone), context.step_ns) or 0.0
    if most < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"The biases of {names or 'layers'} before batch norms take {most:.1f} % of the step.")
    estimate = step_saving(
        context,
        change(context, (launches, BIAS_KERNELS_STAY)),
        change(context, gone=gone),
        change(context, gone=gone),
        f"Adding the biases and summing up their gradients takes {milliseconds(time)} of kernel time a step, and the "
        f"calls for it go as well; at the low end {100 * BIAS_KERNELS_STAY:.0f} % of that time stays.",
    )
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(
            f"The biases of {names or 'layers'} before batch norms take {milliseconds(time)} a step; without them the "
            f"step should be {estimate.percent:.1f} % shorter."
        )
    count = len(set(modules))
    return RULE.finding(
        title=f"Biases that a batch norm removes again cost {milliseconds(time)} a step",
        seen=f"{count} layers with a bias are followed by a batch norm ({names}). Adding the biases and summing up "
        f"their gradients takes {milliseconds(time)} of kernel time a step ({share:.1f} %).",
        readings=[
            Reading("Layers with a bias before a batch norm", count, "count"),
            Reading("Kernel time for their biases, per step", time, "ns"),
            Reading("Expected saving", estimate.percent, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
        ],
        evidence=op_rows(context, launches),
        change=f"Make these layers without a bias: {listed(modules, 8)}. The outputs stay the same.",
        code=_code(context, int(calls.op[found.first[with_bias][0]])),
        saving=estimate,
    )


def _cpu_ns(context: RuleContext, gone: Bools) -> int:
    """CPU time per step of calls, none of which lies in another."""
    return int(context.profile.calls.duration_ns[gone].sum()) // context.selection.count


def _code(context: RuleContext, layer: int) -> str:
    """How the first of the layers is made without a bias."""
    ops, strings = context.profile.ops, context.profile.strings
    name, weight = strings[ops.name[layer]].removeprefix("aten::"), shape_at(context.profile.shapes_of(layer), 1)
    comment = f"  # {strings[ops.module[layer]]}" if strings[ops.module[layer]] else ""
    if weight is None or "transpose" in name or len(weight) < 2:
        return "bias=False\n"
    if name == "linear":
        return f"nn.Linear({weight[1]}, {weight[0]}, bias=False){comment}\n"
    kernel = weight[2] if len(set(weight[2:])) == 1 else tuple(weight[2:])
    return f"nn.{name.capitalize()}({weight[1]}, {weight[0]}, kernel_size={kernel}, bias=False){comment}\n"


def _biases(context: RuleContext, layers: Ints) -> dict[int, int]:
    """Of those layers (rows of `Profile.ops`) that have one, the number of elements of the bias."""
    found = {}
    for op in layers.tolist():
        shape = shape_at(context.profile.shapes_of(op), _BIAS)
        if shape is not None and len(shape) == 1:
            found[op] = shape[0]
    return found


def _of_bias(context: RuleContext, layers: Ints, backward: Bools, sizes: set[int]) -> Bools:
    """The calls inside the layers, and inside their autograd nodes, that work on the bias alone."""
    profile, parent = context.profile, context.view.call_parent
    ops, strings = profile.ops, profile.strings
    inside_layer = np.zeros(len(parent), dtype=np.bool_)
    inside_layer[layers] = True
    inside_layer, inside_node = inherit(inside_layer, inside_layer, parent), inherit(backward, backward, parent)
    forward, of_node = np.zeros(len(ops), dtype=np.bool_), np.zeros(len(ops), dtype=np.bool_)
    named = ops_named(context, lambda name: name in ("aten::add_", "aten::to", "aten::sum"))
    for op in np.flatnonzero(named).tolist():
        name, dims = strings[ops.name[op]], profile.shapes_of(op)
        first, second = shape_at(dims, 0), shape_at(dims, 1)
        is_bias = first is not None and len(first) == 1 and first[0] in sizes
        if name == "aten::add_":
            # cuDNN's convolutions take no bias: it is added as (1, channels, 1, 1).
            forward[op] = second is not None and second[:1] == (1,) and set(second) - {1} <= sizes
        elif name == "aten::to":
            forward[op] = of_node[op] = is_bias
        else:
            of_node[op] = first is not None and len(first) > 1
    rows = calls_of(context, forward) & inside_layer | calls_of(context, of_node) & inside_node
    result: Bools = rows
    return result
