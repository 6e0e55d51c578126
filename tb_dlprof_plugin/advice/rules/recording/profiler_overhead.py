"""The profiler stretches the step.

A recorded step that takes much longer than the steps that the hook timed before the profiler began.

Why it matters: The profiler makes each op and each launch on the CPU longer by a few microseconds. Where the CPU sets
the pace, the GPU then waits for the profiler: its idle time and the step time are not those of the training. Times of
kernels are.

What to change: Leave off what is not needed: `with_stack` costs most, then `profile_memory`, then `record_shapes`.
Read the step time without the profiler on the Overview instead of the recorded one.

When to leave it: You look at kernels, their Tensor Core use and their counts: those are right all the same.

To confirm: Record again: the recorded step should come closer to the one without the profiler.

Read on:
- [PyTorch: torch.profiler](https://docs.pytorch.org/docs/stable/profiler.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.simulation.estimate import step_estimate

RULE = Rule(
    __name__,
    __doc__,
    needs=(Need.PROCESS, Need.TIMED_STEPS),
    confidence="high",
)

PROFILED_STEP_RATIO = 2.0
"""Recorded step over the step without the profiler. Of recorded runs that the CPU paces, with default options, it is
1.54 at the median and at most 1.82 in nine of ten (lab/precision_pairs): that is the cost of a recording."""

PROFILED_STEP_RATIO_WITH_OPTIONS = 1.25
"""The same where options are on that cost time: leaving them off is free."""

_COSTLY = ("with_stack", "profile_memory")


def check(context: RuleContext) -> Finding | Silent:
    """Fires where the recorded step is longer than the one timed before by more than the profiler usually adds."""
    step = step_estimate(context.view, context.selection)
    timed = round(step.ns)
    selection = context.selection
    # A single outlier is covered by bad_iteration_range.
    recorded = int(np.median(context.profile.iterations.duration_ns[selection.first : selection.last + 1]))
    ratio = recorded / timed
    numbers = f"The recorded step takes {ms(recorded)}, without the profiler it takes {ms(timed)}"
    options = _options(context.facts)
    limit = PROFILED_STEP_RATIO_WITH_OPTIONS if options else PROFILED_STEP_RATIO
    if ratio < limit:
        return Silent(f"{numbers}: {ratio:.2f} times as long.")
    added = recorded - timed
    own = _own_ns(context)
    idle = recorded - (context.steps.gpu_busy_ns or 0) // context.selection.count if context.profile.has_gpu else None
    unknown = all(getattr(context.facts, name) is None for name in _COSTLY)
    return RULE.finding(
        title=f"The recorded step is {ratio:.1f} times as long as without the profiler",
        seen=f"{numbers}. "
        + ("Options that cost time: " + ", ".join(options) + ". " if options else "")
        + ("Which options were on was not recorded. " if unknown else "")
        + (
            f"The GPU is idle for {ms(idle)} of the recorded step, much of it because of the profiler. "
            if idle and idle > 0
            else ""
        )
        + "Kernel times, counts and shapes can be trusted; step time, idle time, GPU utilization and CPU times cannot.",
        readings=[
            Reading("Recorded over unprofiled step", ratio, "ratio", limit),
            Reading("Recorded step, median", recorded, "ns"),
            Reading("Step without the profiler", timed, "ns"),
            Reading("Steps timed for it", step.steps, "count"),
            Reading("Profiler's own calls seen in the trace, per step", own, "ns"),
        ],
        evidence=[EvidenceRow("Added by the profiler", added, percent(added, recorded), "overview", "step")],
        change=f"Record without {' and '.join(options)}."
        if options
        else "The options that cost most are off. Take the step time without the profiler, and judge the GPU's idle "
        "time by it; a recording without input shapes (record_shapes=False) is a little lighter, but has no "
        "Tensor Core eligibility.",
        code=_code(options),
        saving="The training is as fast as before: only its recording gets closer to it.",
    ).but(severity="medium" if options else "low")


def _options(facts: RunFacts) -> list[str]:
    return [name for name in _COSTLY if getattr(facts, name)]


def _own_ns(context: RuleContext) -> int:
    """Time of the profiler's and the driver's own work inside calls, as far as the trace shows it, per step."""
    calls = context.profile.calls
    rows = (context.profile.ops.kind == CallKind.OVERHEAD)[calls.op] & context.view.selected_calls(context.selection)
    return int(calls.duration_ns[rows].sum()) // context.selection.count


def _code(options: list[str]) -> str:
    off = "".join(f", {name}=False" for name in options) or ", record_shapes=False"
    return f"with tb_dlprof_plugin.profile(logdir, model=model{off}) as prof:\n    ...\n"
