"""DDP searches for unused parameters in each step.

`find_unused_parameters=True` of DistributedDataParallel without `static_graph=True`, in a model that leaves some
parameters unused.

Why it matters: The search walks the autograd graph after each forward pass. The ranks agree on what is unused before
the optimizer may step. With a static graph DDP learns it in the first step.

What to change: Pass `static_graph=True` to DistributedDataParallel.

When to leave it: Steps use different parameters: layers dropped at random, experts, or losses that take turns. DDP
then gives wrong gradients or an error.

To confirm: Record again: no call of search_unused_parameters, and a shorter step.

Read on:
- [PyTorch: DistributedDataParallel, static_graph](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent, lacks
from tb_dlprof_plugin.advice.rules.layers.unused_parameters import search_calls
from tb_dlprof_plugin.advice.rules.multi_gpu.replayed_calls import worthwhile
from tb_dlprof_plugin.advice.savings import change, saved
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.parallel_settings import parallel_settings
from tb_dlprof_plugin.profile_view import ProfileView

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.PROCESS, Need.DISTRIBUTED_DATA_PARALLEL),
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
    group="unused_parameters",
)


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the search takes `WORTHWHILE_SAVING_PERCENT` of the step, and cannot be left out."""
    facts, settings = context.facts, context.parallel
    if settings.ddp is not None and settings.ddp.static_graph:
        return Silent("static_graph is on.")
    search = search_calls(context)
    if not settings.find_unused_parameters or not search.any():
        return Silent("DDP does not search for unused parameters.")
    if facts.unused_parameters is None:
        return lacks(Need.GRADIENTS_SEEN)
    if not facts.unused_parameters:
        return Silent("All parameters are used: the search can be left out (rule unused_parameters).")
    count = context.selection.count
    took_ns = int(context.profile.calls.duration_ns[search].sum()) / count
    estimate = saved(
        context,
        change(context, gone=search),
        f"The search takes the CPU {ms(took_ns)} of a recorded step, and goes.",
    )
    seen = (
        f"{facts.unused_parameters} of {facts.trainable_parameters} parameters got no gradient, and DDP searches for "
        f"them in each step: {ms(took_ns)} on the CPU."
    )
    if not worthwhile(context, estimate):
        return Silent(f"{seen} Without the search the step is {ms(estimate.expected_ns)} shorter.")
    return RULE.finding(
        title=f"DDP searches for unused parameters in each step: {ms(took_ns)} on the CPU",
        seen=seen,
        readings=[
            Reading("Parameters without a gradient", facts.unused_parameters, "count"),
            Reading("Search on the CPU per step", took_ns, "ns"),
        ],
        change="If every step uses the same parameters, say so: static_graph=True.",
        code="model = DistributedDataParallel(model, static_graph=True)\n",
        saving=estimate,
    )


def was_applied(base: ProfileView, candidate: ProfileView) -> str:
    """The graph was made static."""
    before, after = parallel_settings(base).ddp, parallel_settings(candidate).ddp
    applied = before is not None and after is not None and before.static_graph is False and after.static_graph
    return "static_graph on" if applied else ""
