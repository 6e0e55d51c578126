"""Ops have no module names.

A recording without the ranges that say which module of the model each op belongs to.

Why it matters: Without them all convolutions of a model are one row, and all linear layers another. It does not show
which layer to change. The Modules page is empty, and findings cannot name a layer. DLProf needed `emit_nvtx()` for the
same.

What to change: Give the model to the hook: `profile(logdir, model=model)`. The ranges cost about 1 us per call of a
module, while the profiler records and at no other time.

When to leave it: The code that was recorded calls functions only and has no `torch.nn.Module`.

To confirm: The Modules page shows the model, and ops are called after its layers.

In other tools:
- DLProf: Emit NVTX Missing Detector

Read on:
- [PyTorch: torch.profiler, with_modules and with_stack](https://docs.pytorch.org/docs/stable/profiler.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.frameworks import ANY, JAX_PROFILING, NVTX, UNDER_NSYS, FrameworkRemedy
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent, lacks
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.parallel_settings import DATA_PARALLEL
from tb_dlprof_plugin.metrics.run_setup import run_setup
from tb_dlprof_plugin.model.frameworks import JAX, TENSORFLOW
from tb_dlprof_plugin.model.profile import CallKind, Role
from tb_dlprof_plugin.profile_view import op_label

_MODULE_RANGES = """def begin(module, args):
    torch.cuda.nvtx.range_push(module.path)

for path, module in model.named_modules():
    module.path = path
    module.register_forward_pre_hook(begin)
    module.register_forward_hook(lambda *_: torch.cuda.nvtx.range_pop())
"""
_REMEDIES = {
    UNDER_NSYS: FrameworkRemedy("Push an NVTX range around each module.", _MODULE_RANGES, (NVTX,)),
    ANY: FrameworkRemedy(
        "Push an NVTX range around each part of the program.",
        'nvtxRangePushA("solver");\n...\nnvtxRangePop();\n',
        (NVTX,),
    ),
    JAX: FrameworkRemedy(
        "Name the parts of the model. Flax names its modules by itself.",
        'with jax.named_scope("attention"):\n    y = attention(x)\n',
        (JAX_PROFILING,),
    ),
    TENSORFLOW: FrameworkRemedy(
        "Name the parts of the model. Keras names its layers by itself.",
        'with tf.name_scope("attention"):\n    y = attention(x)\n',
    ),
}
"""In the words of other frameworks and recorders."""

RULE = Rule(
    __name__,
    __doc__,
    without_steps=True,
    confidence="high",
    severity="low",
    remedies=_REMEDIES,
)

_HOOK = """with tb_dlprof_plugin.profile(logdir, model=model) as prof:
    ...
"""
_ROWS = 3


def check(context: RuleContext) -> Finding | Silent:
    """Fires where no module range was recorded."""
    profile, view = context.profile, context.view
    ops, calls, strings = profile.ops, profile.calls, profile.strings
    modules = ops.kind == CallKind.MODULE
    if modules.any():
        return Silent(f"{len(np.unique(ops.module[modules]))} modules were recorded.")
    if (ops.module > 0).any():
        return Silent(f"Ops name {len(np.unique(ops.module[ops.module > 0]))} modules.")
    if run_setup(view).compiled:
        return lacks(Need.EAGER)
    if context.parallel.wrapper == DATA_PARALLEL:
        return Silent("DataParallel runs the model in threads of its own, which are not recorded.", applicable=False)
    top = ops.top[calls.op] & view.selected_calls(context.selection)
    top &= np.isin(ops.role[calls.op], (Role.FORWARD, Role.BACKWARD, Role.OTHER))
    if not top.any():
        return Silent("No op of a model was recorded.", applicable=False)
    groups = view.groups
    members = np.bincount(view.call_group[top], minlength=len(groups)) / context.selection.count
    used = np.flatnonzero(members)
    per_step = float(members.sum())
    several = used[np.argsort(-members[used], kind="stable")][:_ROWS]
    time = context.ops.gpu_ns if profile.has_gpu else context.ops.cpu_total_ns
    whole = int(time.sum())
    switched_off = context.facts.module_ranges is False
    return RULE.finding(
        title="The recording has no module names",
        seen=f"The {per_step:.0f} ops of {context.each_step} are in {len(used)} rows, because ops of one kind look "
        "the same; for example "
        + ", ".join(f"{strings[groups.op_type[g]]} stands for {members[g]:.0f} calls" for g in several.tolist())
        + ".",
        readings=[
            Reading(f"Ops of {context.each_step}", per_step, "count"),
            Reading("Rows that they are shown in", len(used), "count"),
        ],
        evidence=[
            EvidenceRow(
                op_label(context.view, g),
                int(time[g]) // context.selection.count,
                percent(int(time[g]), whole),
                "ops",
                groups.ids[g],
            )
            for g in several.tolist()
        ],
        change="The hook has the model, but module_ranges=False switches the ranges off: drop it."
        if switched_off
        else "Pass the model to the hook. Where the trace was made without the hook, with_stack=True records "
        "the classes of modules, without their paths.",
        code=_HOOK,
        saving="Names change what can be seen, not the training.",
    )
