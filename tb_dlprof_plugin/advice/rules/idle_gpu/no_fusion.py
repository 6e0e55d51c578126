"""Pointwise ops are not fused.

Three or more pointwise kernels in a row over tensors of one size, between two matrix products. Their time is that of
moving memory.

Why it matters: Each such op reads its inputs from memory and writes its result back. The next one reads it again. A
fused kernel reads what comes in and writes what goes out.

What to change: Use PyTorch's own function where the chain spells one out (`nn.GELU`, `nn.SiLU`, `nn.RMSNorm`,
`F.scaled_dot_product_attention`), or let `torch.compile` fuse it: the whole model, or the module or function.

When to leave it: The chain lies in code that `torch.compile` cannot take and no function of PyTorch computes.

To confirm: Record again: instead of the chain there should be one op, or a triton_ kernel.

In other tools:
- DLProf: No Fusion Detector

Read on:
- [PyTorch: torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
- [PyTorch: performance tuning guide, fuse operations](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#fuse-operations)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.idle_gpu.pointwise_chains import CHAIN_KERNELS, Chains, chains
from tb_dlprof_plugin.advice.savings import shorter_step
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.run_setup import run_setup
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Floats, Role
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.GPU,),
    thresholds=("CHAIN_KERNELS", "CHAIN_NS"),
    facts=("compiled",),
)

NO_FUSION_SAVING_PERCENT = 5.0
"""Of the step. Of recorded trainings of 20 models only two come above it, GPT-2 and LLaMA, whose GELU and RMSNorm are
written out in pointwise ops; the others stay below 4 %."""

_BEST, _EXPECTED, _WORST = 0, 1, 2


def check(context: RuleContext) -> Finding | Silent:
    """Fires where moving no results between the ops of such chains saves a notable part of the step."""
    if context.facts.record_shapes is False:
        return Silent("Shapes were not recorded (record_shapes=False).", applicable=False)
    found = chains(context.view, context.selection)
    if not len(found):
        return Silent(
            f"No {CHAIN_KERNELS} pointwise kernels that compute over tensors of one size follow each other "
            "between two matrix products."
        )
    launches = found.of_launch >= 0
    time, count = context.per_step(launches), context.selection.count
    estimate = shorter_step(
        context,
        Change(gpu=_left(found, _WORST)),
        Change(gpu=_left(found, _EXPECTED)),
        Change(gpu=_left(found, _BEST)),
        f"Chains of pointwise kernels take {ms(time)}. Fused they would take "
        + " to ".join(f"{found.fused_ns[:, at].sum() / count / 1e6:.2f}" for at in (_BEST, _WORST))
        + f" ms (expected {found.fused_ns[:, _EXPECTED].sum() / count / 1e6:.2f}), by what comes in from outside of "
        "each chain and what the backward pass needs of it.",
    )
    if estimate.percent < NO_FUSION_SAVING_PERCENT:
        return Silent(
            f"Chains of pointwise kernels take {ms(time)} of a step; fused they should save "
            f"{estimate.percent:.1f} % of it."
        )
    share = percent(time, context.step_ns) or 0.0
    module, ops = _longest(context, found)
    where = f" in {module}" if module else ""
    number = int(launches.sum()) // count
    compiled = run_setup(context.view).compiled
    return RULE.finding(
        title=f"Pointwise ops are not fused: chains of them take {share:.0f} % of each step",
        seen=f"{number} pointwise kernels a step stand in chains of {int(found.kernels.min())} to "
        f"{int(found.kernels.max())} over tensors of one size and take {time / 1e6:.2f} of {context.step_ns / 1e6:.2f} "
        f"ms. They move {found.moved.sum() / count / 1e9:.1f} GB a step. The chain that takes longest{where}: {ops}.",
        readings=[
            Reading("Kernels in chains per step", number, "count"),
            Reading("Their time per step", time, "ns"),
            Reading("Share of the step", share, "percent"),
            Reading("Longest chain", int(found.kernels.max()), "count", float(CHAIN_KERNELS)),
            Reading("Bytes moved by them per step", int(found.moved.sum()) // count, "bytes"),
            Reading("Expected saving", estimate.percent, "percent", NO_FUSION_SAVING_PERCENT),
        ],
        evidence=op_rows(context, launches),
        change=f"Replace the chain{where} by PyTorch's own function where there is one, or compile "
        + (f"{module}: " if module else "it: ")
        + ("torch.compile is in use, but not there." if compiled else "torch.compile fuses pointwise ops."),
        code=f"model.{module}.compile()  # or nn.GELU, nn.SiLU, nn.RMSNorm ... in its place\n"
        if module
        else "model = torch.compile(model)\n",
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """torch.compile."""
    return "torch.compile" if run_setup(candidate).compiled and not run_setup(base).compiled else ""


def _left(found: Chains, at: int) -> Floats:
    """Per launch the share of its time that is left of it in a fused kernel."""
    share = found.fused_ns[:, at] / np.maximum(found.time_ns, 1)
    result: Floats = take_or(share, found.of_launch, 1.0)
    return result


def _longest(context: RuleContext, found: Chains) -> tuple[str, str]:
    """Module and ops of the chain that takes longest, forward ones first: there the user's code is."""
    profile, groups, strings = context.profile, context.view.groups, context.profile.strings
    first = 0
    for chain in range(min(len(found), 20)):
        rows = np.flatnonzero(found.of_launch == chain)
        if (profile.ops.role[context.view.launch_op[rows]] != Role.BACKWARD).all():
            first = chain
            break
    rows = np.flatnonzero(found.of_launch == first)
    rows = rows[np.argsort(profile.calls.start_ns[profile.launches.call[rows]], kind="stable")]
    names = [strings[i].removeprefix("aten::") for i in profile.ops.name[context.view.launch_op[rows]].tolist()]
    group = context.view.launch_group[rows]
    modules = [strings[i] for i in groups.module[group[group >= 0]].tolist()]
    return max(sorted(set(modules)), key=modules.count, default=""), ", ".join(names)
