"""Activations are recomputed though memory is left.

Forward ops inside the backward pass (activation checkpointing) while much of the GPU's memory is free.

Why it matters: Checkpointing saves memory and pays with time: the forward pass of each checkpointed part runs twice,
which is up to a third of a step. Where the activations would fit into memory, the time is paid for nothing.

What to change: Checkpoint fewer parts, or none; or use the memory for a larger batch.

When to leave it: The memory is kept for longer inputs, a larger batch or another process on the GPU.

To confirm: Record again: no forward op should be left inside the backward pass, and the peak of memory should be
higher.

Read on:
- [PyTorch: activation checkpointing](https://docs.pytorch.org/docs/stable/checkpoint.html)
- [Chen et al.: training deep nets with sublinear memory cost](https://arxiv.org/abs/1604.06174)
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.gpu_memory import capacity_bytes, gigabytes
from tb_dlprof_plugin.advice.op_patterns import launched_in, ops_named
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import Saving, change, step_saving
from tb_dlprof_plugin.advice.text import listed, milliseconds
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.dtypes import element_bytes
from tb_dlprof_plugin.model.profile import Bools, CallKind
from tb_dlprof_plugin.model.shapes import shape_at
from tb_dlprof_plugin.model.tree import nearest, outermost
from tb_dlprof_plugin.names.ops import AUTOGRAD_NODE

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "STEP_NOISE"),
)

MEMORY_TO_USE_PERCENT = 90.0
"""Of what the process can have of the GPU's memory: more is not advised to fill. torch-tb-profiler warns above it."""

RECOMPUTED_STAYS = 0.2
"""Share of the time of recomputed ops that the low end of a saving leaves: kept activations are read from memory
where recomputed ones may still be in the cache."""

CHECKPOINTING_IN_PYTHON = 0.8
"""CPU time of checkpointing outside the recomputed ops (saving and restoring states, hooks) over the ops' own. On an
H200 with torch 2.11, leaving it out of a step that the CPU paced saved 1.6 times what the ops' calls take
(lab/planted's recomputation with a quarter of its batch)."""

_FORWARD_ONLY = frozenset(
    f"aten::{name}"
    for name in (
        *("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
        *("layer_norm", "batch_norm", "group_norm", "rms_norm", "instance_norm", "scaled_dot_product_attention"),
        *("gelu", "silu", "relu", "relu_", "dropout", "softmax", "embedding", "max_pool1d", "max_pool2d", "max_pool3d"),
        *("adaptive_avg_pool2d", "lstm", "gru"),
    )
)
"""Ops that users call and no derivative formula does."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where what is recomputed would fit into memory and costs a notable share of the step."""
    again = _recomputed(context)
    if not again.any():
        return Silent("The backward pass recomputes nothing.", applicable=False)
    launches = launched_in(context, again) & context.view.selected_launches(context.selection)
    time = context.per_step(launches)
    share = percent(time, context.step_ns) or 0.0
    modules = _modules(context, again)
    what = listed(modules) or "parts of the model"
    if share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"Recomputing {what} takes {milliseconds(time)} of kernel time a step ({share:.1f} %).")
    capacity, peak = capacity_bytes(context), context.facts.peak_memory_allocated_bytes
    if capacity is None or peak is None:
        return Silent(
            f"Recomputing {what} takes {milliseconds(time)} a step; how much memory is left was not recorded.",
            applicable=False,
        )
    left = round(MEMORY_TO_USE_PERCENT / 100 * capacity) - peak
    needed = _bytes_to_keep(context, launches)
    fits = min(max(left, 0) / needed, 1.0) if needed else 0.0
    if not needed:
        return Silent(f"Recomputing {what} takes {milliseconds(time)} a step; its shapes were not recorded.", False)
    if fits * share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(
            f"Recomputing {what} takes {milliseconds(time)} a step, but the memory is needed: {gigabytes(peak)} of "
            f"{gigabytes(capacity)} are taken, and keeping the activations would take up to {gigabytes(needed)} more."
        )
    estimate = _estimate(context, again, launches, fits, time)
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(
            f"Recomputing {what} takes {milliseconds(time)} a step; without it the step should be "
            f"{estimate.percent:.1f} % shorter."
        )
    used = percent(peak, capacity) or 0.0
    return RULE.finding(
        title=f"Recomputing activations costs {milliseconds(time)} a step while {gigabytes(capacity - peak)} of memory "
        "are free",
        seen=f"The backward pass runs forward ops of {what} once more: {milliseconds(time)} of kernel time a step "
        f"({share:.0f} %). At its peak the training took {gigabytes(peak)} of {gigabytes(capacity)} ({used:.0f} %). "
        f"Keeping all that is recomputed would take {gigabytes(needed)} more at most.",
        readings=[
            Reading("Kernel time of recomputed ops, per step", time, "ns"),
            Reading("Share of the step", share, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
            Reading("Memory taken at the peak", used, "percent", MEMORY_TO_USE_PERCENT),
            Reading("Memory to keep what is recomputed, at most", needed, "bytes"),
        ],
        evidence=op_rows(context, launches),
        change=(
            f"Do not checkpoint {listed(modules, 8) or 'these parts'}: their activations fit into memory."
            if fits == 1.0
            else f"Checkpoint fewer parts: about {100 * fits:.0f} % of what is recomputed fits into memory."
        ),
        code="x = block(x)  # instead of torch.utils.checkpoint.checkpoint(block, x)\n",
        saving=estimate,
    ).but(confidence="high" if fits == 1.0 else "medium")


def _estimate(context: RuleContext, again: Bools, launches: Bools, fits: float, time: int) -> Saving:
    """Without as much of the recomputation as memory allows."""
    expected = change(context, gone=again)
    stays = RECOMPUTED_STAYS
    if fits < 1.0:
        expected = replace(change(context, (launches, 1 - fits)), cpu=expected.cpu, keep_cpu=1 - fits)
    low = replace(
        change(context, (launches, 1 - fits * (1 - stays))), cpu=expected.cpu, keep_cpu=1 - fits * (1 - stays)
    )
    item = step_saving(
        context,
        low,
        expected,
        expected,
        f"Recomputing takes {milliseconds(time)} of kernel time a step and the CPU's time for its calls; "
        + ("all of it goes" if fits == 1.0 else f"{100 * fits:.0f} % of it goes, as far as memory is left")
        + f" (at the low end {100 * stays:.0f} % of that stays). Checkpointing's own Python code is in no "
        f"call: at the high end it is {CHECKPOINTING_IN_PYTHON:g} of them.",
    )
    of_cpu = replace(expected, gpu=None)
    in_calls = step_saving(context, of_cpu, of_cpu, of_cpu, "").expected_ns
    return item.between(item.low_ns, item.high_ns + CHECKPOINTING_IN_PYTHON * in_calls)


def _recomputed(context: RuleContext) -> Bools:
    """The outermost calls of the selected iterations that run forward code under an autograd node."""
    view, ops = context.view, context.profile.ops
    calls = context.profile.calls
    nodes = ops_named(context, lambda name: name.startswith(AUTOGRAD_NODE))[calls.op]
    module = (ops.kind == CallKind.MODULE)[calls.op]
    forward = (module | ops_named(context, _FORWARD_ONLY.__contains__)[calls.op]) & view.selected_calls(
        context.selection
    )
    under = nearest(nodes, view.call_parent) >= 0
    forward &= under
    top: Bools = forward & (outermost(forward, view.call_parent) == np.arange(len(forward)))
    return top


def _modules(context: RuleContext, again: Bools) -> list[str]:
    """Paths of the modules that are run again, in their order.

    A range in the backward pass has the path of the autograd node around it, which is the last part of what is run
    again. That is the module around this part with as many module calls in its forward pass as there are here.
    """
    ops, strings, calls, view = context.profile.ops, context.profile.strings, context.profile.calls, context.view
    module = (ops.kind == CallKind.MODULE)[calls.op] & view.selected_calls(context.selection)
    above = nearest(again, view.call_parent)
    forward = Counter(strings[i] for i in ops.module[calls.op[module & (above < 0)]].tolist())
    inside = np.bincount(above[module & (above >= 0)], minlength=len(calls))
    found: dict[str, None] = {}
    for row in np.flatnonzero(again).tolist():
        path = strings[ops.module[calls.op[row]]]
        wanted = int(inside[row])
        around = [path.rsplit(".", cut)[0] for cut in range(path.count(".") + 1)] if path else []
        sizes = {name: _below(forward, name) / context.selection.count for name in around}
        known = {name: size for name, size in sizes.items() if size}
        found[min(known, key=lambda name: abs(known[name] - wanted)) if known and wanted else path] = None
    return sorted(name for name in found if name)


def _below(calls: Counter[str], path: str) -> int:
    """Calls of a module and of all in it."""
    return sum(count for name, count in calls.items() if name == path or name.startswith(f"{path}."))


def _bytes_to_keep(context: RuleContext, launches: Bools) -> int:
    """Bytes of the inputs of all recomputed ops, per step: what autograd keeps of them, and the weights too."""
    ops, calls = context.profile.ops, context.profile.calls
    is_op = (ops.kind == CallKind.OP)[calls.op]
    innermost = nearest(is_op, context.view.call_parent)[context.profile.launches.call[launches]]
    rows, counts = np.unique(calls.op[np.unique(innermost[innermost >= 0])], return_counts=True)
    total = 0
    for op, count in zip(rows.tolist(), counts.tolist(), strict=True):
        shapes = context.profile.shapes_of(op)
        for at, size in enumerate(element_bytes(context.profile.dtypes_of(op))):
            shape = shape_at(shapes, at)
            total += count * math.prod(shape) * (size or 0) if shape else 0
    return total // context.selection.count
