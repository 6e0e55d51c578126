"""One stretch of the step leaves the GPU waiting.

A stretch, the same in each step, in which the GPU is busy for less than half of the time. The CPU launches too slowly
there, while the rest of the step uses the GPU well.

Why it matters: Large kernels hide what their launches cost; where a part of the step consists of many small ones,
nothing does. One such part can be fixed on its own.

What to change: Launch less in that part: ops over lists of tensors (`torch._foreach_*`), a fused op, or one op over a
batch instead of a loop. Or use `torch.compile` for that module or function alone.

When to leave it: The stretch is not part of every step of the training, such as an evaluation.

To confirm: Record again: on the Launches page the GPU's idle time should fall by this stretch.

In other tools:
- Nsight Systems: GPU time utilization

Read on:
- [PyTorch: torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
- [Nsight Systems: expert systems](https://docs.nvidia.com/nsight-systems/UserGuide/index.html#expert-systems-analysis)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import frameworks
from tb_dlprof_plugin.advice.evidence import of_recorded_step
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.idle_gpu.low_utilization_window import (
    LOW_STRETCH_CHUNKS,
    LOW_STRETCH_LONGEST_PERCENT,
    LOW_STRETCH_PERCENT,
    LOW_STRETCH_REST_PERCENT,
    LOW_STRETCH_SAVING_PERCENT,
    low_stretch,
    utilization_by_chunk,
)
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.profile import Ints, Role
from tb_dlprof_plugin.profile_view import op_label

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.CUDA_CALLS, Need.GPU),
    thresholds=(
        "LOW_STRETCH_CHUNKS",
        "LOW_STRETCH_PERCENT",
        "LOW_STRETCH_REST_PERCENT",
        "LOW_STRETCH_LONGEST_PERCENT",
        "LOW_STRETCH_IDLE_PERCENT",
        "LOW_STRETCH_LAUNCHES",
        "LOW_STRETCH_SAVING_PERCENT",
        "LAUNCHING_LEFT",
    ),
    group="launching",
    facts=("compiled",),
    remedies=frameworks.LAUNCHING,
)

_PARTS = {
    Role.FORWARD: "the forward pass",
    Role.BACKWARD: "the backward pass",
    Role.OPTIMIZER: "the optimizer's step",
    Role.DATALOADER: "loading data",
    Role.OTHER: "code outside of the model and the optimizer",
}
_ROWS = 5
_MOST = 0.6
"""Of the stretch's launches, from which it is said to be this part or module."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where one stretch stands out and launching less in it saves a notable part of the step."""
    stretch = low_stretch(context)
    if stretch is None:
        return Silent(_why_not(context))
    launches = stretch.launches
    group = context.view.launch_group[launches]
    part, module = _part(context, launches), _module(context, group)
    where = f"{part}, module {module}" if module else part
    share = percent(stretch.length_ns, context.recorded_step_ns) or 0.0
    count = context.selection.count
    return RULE.finding(
        title=f"In {share:.0f} % of each step, {where}, the GPU is busy only {stretch.utilization:.0f} % of the time",
        seen=f"From {100 * stretch.first / LOW_STRETCH_CHUNKS:.0f} to "
        f"{100 * (stretch.last + 1) / LOW_STRETCH_CHUNKS:.0f} % of each step, "
        f"{of_recorded_step(context, stretch.length_ns)}, kernels cover {stretch.utilization:.0f} %; in the rest of it "
        f"{stretch.rest_utilization:.0f} %. {len(launches) // count} kernels, copies and sets are launched in it, most "
        f"of them by {where}.",
        readings=[
            Reading("GPU utilization in the stretch", stretch.utilization, "percent", LOW_STRETCH_PERCENT),
            Reading("GPU utilization in the rest", stretch.rest_utilization, "percent", LOW_STRETCH_REST_PERCENT),
            Reading("Stretch, of the step", share, "percent", LOW_STRETCH_LONGEST_PERCENT),
            Reading("GPU idle in it per step", stretch.idle_ns, "ns"),
            Reading("Launches in it per step", len(launches) // count, "count"),
            Reading("Expected saving", stretch.saving.percent, "percent", LOW_STRETCH_SAVING_PERCENT),
        ],
        evidence=_rows(context, group),
        change=f"Launch less in {where}: one op over many tensors or rows where there are many ops over one each, a "
        "fused op, or torch.compile for this part alone.",
        code=_code(part, module),
        saving=stretch.saving,
    )


def _why_not(context: RuleContext) -> str:
    busy = utilization_by_chunk(context.view, context.selection).sum(axis=0)
    length = context.view.profile.iterations.duration_ns[context.selection.first : context.selection.last + 1].sum()
    low = int((100 * busy < LOW_STRETCH_PERCENT * length / LOW_STRETCH_CHUNKS).sum())
    return (
        f"{low} of {LOW_STRETCH_CHUNKS} equal parts of the step use the GPU for less than half of the time; "
        "no stretch of them stands out whose launching would save enough."
    )


def _part(context: RuleContext, launches: Ints) -> str:
    """The part of the step that launched most of them, or two parts."""
    call = context.profile.launches.call[launches]
    roles = context.profile.ops.role[context.profile.calls.op[call]]
    number = np.bincount(roles, minlength=len(Role))
    order = np.argsort(-number, kind="stable")
    first = _PARTS[Role(int(order[0]))]
    if number[order[0]] >= _MOST * max(len(launches), 1):
        return first
    return f"{first} and {_PARTS[Role(int(order[1]))]}"


def _module(context: RuleContext, group: Ints) -> str:
    """The innermost module in which most of them lie, "" for none."""
    known = group[group >= 0]
    paths = [context.profile.strings[i].split(".") for i in context.view.groups.module[known].tolist()]
    found: list[str] = []
    while True:
        depth = len(found)
        names = [path[depth] for path in paths if len(path) > depth and path[:depth] == found and path[depth]]
        best = max(set(names), key=names.count, default="")
        if not best or names.count(best) < _MOST * len(group):
            return ".".join(found)
        found.append(best)


def _rows(context: RuleContext, group: Ints) -> list[EvidenceRow]:
    """The ops that launched most of them."""
    groups, count = context.view.groups, context.selection.count
    number = np.bincount(group[group >= 0], minlength=len(groups))
    rows = []
    for which in np.argsort(-number, kind="stable")[:_ROWS].tolist():
        if not number[which]:
            break
        label = f"{op_label(context.view, which)}: {number[which] // count} launches in the stretch"
        rows.append(EvidenceRow(label, None, percent(int(number[which]), len(group)), "ops", groups.ids[which]))
    return [*rows, EvidenceRow("Launches", None, None, "launches", "")]


def _code(part: str, module: str) -> str:
    if module:
        return f"model.{module}.compile()\n"
    if part == _PARTS[Role.OTHER]:
        return (
            "# One op over all tensors instead of one per tensor, such as for an average of the weights:\n"
            "torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - decay)\n"
        )
    if part == _PARTS[Role.OPTIMIZER]:
        return "optimizer = torch.optim.AdamW(model.parameters(), fused=True)\n"
    return "model = torch.compile(model)\n"
