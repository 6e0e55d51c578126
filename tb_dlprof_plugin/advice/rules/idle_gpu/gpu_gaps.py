"""The GPU idles in long gaps.

Single gaps of a tenth of the step or more in which the GPU has nothing to run. The CPU launches nothing for a while: it
runs Python code or ops of its own, copies, or waits.

Why it matters: What the CPU computes between two launches adds to the step as soon as the GPU is out of work.

What to change: Take that work off the training thread, into a DataLoader worker or a thread. Do it once instead of in
each step, or do it on the GPU. If the GPU has enough other work queued, doing it later in the step hides it too.

When to leave it: The gap is not part of every step of the training, such as a checkpoint.

To confirm: Record again: on the Launches page the longest gaps should be shorter.

In other tools:
- Nsight Systems: GPU gaps

Read on:
- [Nsight Systems: expert systems](https://docs.nvidia.com/nsight-systems/UserGuide/index.html#expert-systems-analysis)
- [PyTorch: performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import of_recorded_step
from tb_dlprof_plugin.advice.frameworks import ANY, GUIDE, JAX_ASYNC, TF_PROFILER, FrameworkRemedy
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.idle_gpu.long_gaps import LONG_GAP_PERCENT, LongGaps, long_gaps
from tb_dlprof_plugin.advice.savings import Saving, shorter_step, that_goes
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.cpu_activity import ACTIVITIES
from tb_dlprof_plugin.metrics.idle_gaps import idle_gaps
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.frameworks import JAX, TENSORFLOW
from tb_dlprof_plugin.model.intervals import covered
from tb_dlprof_plugin.model.profile import CallKind, Role
from tb_dlprof_plugin.profile_view import op_name
from tb_dlprof_plugin.simulation.change import Change

_REMEDIES = {
    ANY: FrameworkRemedy(
        "Do what the CPU does in the gap once, in another thread, or after the next launches.", references=(GUIDE,)
    ),
    JAX: FrameworkRemedy(
        "Take what Python does in the gap out of the step: do it once, in another thread, or inside jax.jit. "
        "Values read from the GPU (float(loss)) make such gaps, too.",
        references=(JAX_ASYNC,),
    ),
    TENSORFLOW: FrameworkRemedy(
        "Take what Python does in the gap out of the step: callbacks, metrics and summaries once in many steps, "
        "preprocessing into tf.data.",
        references=(TF_PROFILER,),
    ),
}
"""In the words of other frameworks and recorders."""

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.CUDA_CALLS, Need.GPU),
    thresholds=("LONG_GAP_PERCENT", "PAUSE_NS", "PAUSES_LEFT"),
    remedies=_REMEDIES,
)

LONG_GAPS_SHARE_PERCENT = 5.0
"""Of the steps, all long gaps together: torch-tb-profiler's threshold for time in which the GPU waits for data."""

_DOES = {
    "synchronising": "waits for the GPU in a synchronising call",
    "copying": "copies",
    "launching": "prepares launches",
    "ops": "runs ops on the CPU",
    "unknown": "does what was not recorded",
}
_ROWS = 5


def check(context: RuleContext) -> Finding | Silent:
    """Fires where long gaps take a notable share of the steps."""
    gaps = long_gaps(context.view, context.selection)
    count = context.selection.count
    idle = int(gaps.duration_ns.sum()) // count
    share = percent(idle, context.recorded_step_ns) or 0.0
    if share < LONG_GAPS_SHARE_PERCENT:
        return Silent(_why_not(context, gaps, share))
    steps = len(np.unique(gaps.iteration))
    if 2 * steps < count:
        return Silent(
            f"Long gaps take {share:.1f} % of the recorded time, but only {steps} of {count} iterations have one."
        )
    estimate = _saving(context, gaps, idle)
    if estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(
            f"Gaps take {share:.1f} % of the recorded step, but without what the CPU does in them it would be only "
            f"{estimate.percent:.1f} % shorter."
        )
    does = ACTIVITIES[int(np.bincount(gaps.activity, weights=gaps.duration_ns).argmax())]
    doing = _DOES.get(does, context.words.python)
    where = _where(context, gaps)
    return RULE.finding(
        title=f"The GPU idles {ms(idle, 1)} of each step while the CPU {doing}",
        seen=f"{len(gaps)} gaps of {LONG_GAP_PERCENT:.0f} % of the recorded step or more in {steps} of "
        f"{count} iterations, {ms(gaps.duration_ns.mean())} each on average: "
        f"{of_recorded_step(context, idle)}. "
        f"In most of that time the CPU {doing}{where}.",
        readings=[
            Reading("Long gaps, of the recorded step", share, "percent", LONG_GAPS_SHARE_PERCENT),
            Reading("GPU idle in them per step", idle, "ns"),
            Reading("Longest gap", int(gaps.duration_ns.max()), "ns"),
            Reading("Iterations with such a gap", steps, "count"),
            Reading("Iterations", count, "count"),
        ],
        evidence=_rows(context, gaps),
        change=_change(does, where),
        saving=estimate,
    ).but(confidence="high" if steps == count else "medium")


def _saving(context: RuleContext, gaps: LongGaps, idle: int) -> Saving:
    left = thresholds.PAUSES_LEFT
    return shorter_step(
        context,
        Change(gaps.pauses, left.high),
        Change(gaps.pauses, left.expected),
        Change(gaps.pauses, left.low),
        f"At most the {ms(idle)} of the gaps. Of what the CPU does in and before them {that_goes(left)} can "
        "leave the training thread.",
    )


def _why_not(context: RuleContext, gaps: LongGaps, share: float) -> str:
    if len(gaps):
        return f"Long gaps take {share:.1f} % of the recorded step."
    every = idle_gaps(context.view, context.selection).duration_ns
    longest = percent(int(every.max(initial=0)), context.recorded_step_ns) or 0.0
    return (
        f"The longest gap takes {longest:.1f} % of a recorded step, or the CPU launches, or loads data, for most of it."
    )


def _where(context: RuleContext, gaps: LongGaps) -> str:
    """Between which ops the most common gap lies: ", before the first kernel of <op>"."""
    following = gaps.next[gaps.next >= 0]
    group = context.view.launch_group[following]
    group = group[group >= 0]
    if not len(group):
        return ""
    groups, strings = context.view.groups, context.profile.strings
    which = int(np.bincount(group).argmax())
    name = op_name(strings[groups.module[which]], strings[groups.op_type[which]])
    backward = "the backward pass of " if groups.role[which] == Role.BACKWARD else ""
    return f", before {backward}{name} is launched"


def _rows(context: RuleContext, gaps: LongGaps) -> list[EvidenceRow]:
    """The ops and annotations that take most of the CPU's time in the gaps, then what follows, then the page."""
    profile, strings, count = context.profile, context.profile.strings, context.selection.count
    calls, ops = profile.calls, profile.ops
    inside = covered(gaps.whole, calls.start_ns, calls.start_ns + calls.duration_ns)
    kind = ops.kind[calls.op]
    long = (inside > thresholds.PAUSE_NS // 2) & (context.view.call_group >= 0) & ops.top[calls.op]
    long &= (kind == CallKind.OP) | (kind == CallKind.RUNTIME)
    rows = []
    groups, whole = context.view.groups, int(gaps.duration_ns.sum())
    time = np.bincount(context.view.call_group[long], weights=inside[long], minlength=len(groups))
    for which in np.argsort(-time, kind="stable")[:_ROWS].tolist():
        if not time[which]:
            break
        name = op_name(strings[groups.module[which]], strings[groups.op_type[which]])
        rows.append(
            EvidenceRow(
                f"{name} on the CPU in the gaps",
                int(time[which]) // count,
                percent(float(time[which]), whole),
                "ops",
                groups.ids[which],
            )
        )
    longest = int(gaps.duration_ns.argmax())
    number = int(profile.iterations.number[gaps.iteration[longest]])
    return [
        *rows,
        EvidenceRow(f"Longest gap, in iteration {number}", int(gaps.duration_ns[longest]), None, "launches", ""),
    ]


def _change(does: str, where: str) -> str:
    if does == "ops":
        return f"Run these ops on the GPU, or in a DataLoader worker{where.replace(', before', '; they come before')}."
    if does in ("synchronising", "copying"):
        return "Wait later, or not at all: read results at the end of the step, copy from pinned memory asynchronously."
    return (
        "Find the code that runs there (record once more with with_stack=True, or with record_function around it) and "
        "do it once before the training, in a DataLoader worker or thread, or after the next launches."
    )
