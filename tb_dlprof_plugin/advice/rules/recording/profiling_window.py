"""Other steps should be recorded.

A recording of one or two iterations, or of so many events that it takes long to read. Or one of the first steps, in
which memory is allocated and code is loaded.

Why it matters: Two iterations give no interval for a mean: a speedup cannot be separated from chance. The first steps
of a process do what no later one does. A recording of a hundred iterations says no more than one of ten. Its file is
ten times as large.

What to change: Let the schedule wait for some steps, warm up for some, and record about ten.

When to leave it: The start of the training is what you want to see.

To confirm: Record again: the Overview should show iterations of nearly the same length.

Read on:
- [PyTorch: torch.profiler.schedule](https://docs.pytorch.org/docs/stable/profiler.html)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.frameworks import JAX_PROFILING, NSYS, TF_PROFILER, UNDER_NSYS, FrameworkRemedy
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.recording.startup_calls import once_only
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.frameworks import JAX, TENSORFLOW

_WINDOW = """if step == 10:
    torch.cuda.profiler.start()
if step == 20:
    torch.cuda.profiler.stop()
# nsys profile --trace=cuda,nvtx --capture-range=cudaProfilerApi python train.py
"""
_REMEDIES = {
    UNDER_NSYS: FrameworkRemedy("Record some ten steps, after the first ones.", _WINDOW, (NSYS,)),
    JAX: FrameworkRemedy(
        "Record some ten steps, after those that compile.",
        "for step in range(20):\n    if step == 10:\n        jax.profiler.start_trace(logdir)\n    ...\n"
        "jax.profiler.stop_trace()\n",
        (JAX_PROFILING,),
    ),
    TENSORFLOW: FrameworkRemedy(
        "Record some ten steps, after the first ones.",
        "tf.keras.callbacks.TensorBoard(logdir, profile_batch=(10, 20))\n",
        (TF_PROFILER,),
    ),
}
"""In the words of other frameworks and recorders."""

RULE = Rule(
    __name__,
    __doc__,
    thresholds=("FEWEST_ITERATIONS",),
    confidence="high",
    remedies=_REMEDIES,
)

MANY_EVENTS = 1_000_000
"""Events of a recording that is a burden: the PyTorch Profiler tab needs 38 us and 3 KB for each, 40 s and 3 GB in all,
and the trace file has 100 to 200 MB."""

FIRST_STEPS = 2
"""A recording that begins at one of these steps, counted from 0, may hold what is done only once. torch's own examples
wait for one step and warm up for one."""

ONCE_ONLY_SHARE_PERCENT = 5.0
"""Of the recorded time, from which allocating and loading code spoil the figures."""

_ENOUGH = 10
_MUCH_LONGER = 2.0
"""Times the later steps that a first one takes which does more than they do."""


def check(context: RuleContext) -> Finding | Silent:
    """Looks at all iterations of the recording, whichever are selected."""
    iterations, source = context.profile.iterations, context.profile.source
    count, events = len(iterations), source.trace_events
    early = _early(context)
    few = count < thresholds.FEWEST_ITERATIONS
    many = events is not None and events > MANY_EVENTS and count > 1
    if not (few or many or early):
        size = "" if events is None else f", {events:,} events"
        return Silent(f"{count} iterations were recorded from step {int(iterations.number[0])} on{size}.")
    seen, titles = [], []
    readings = [
        Reading("Iterations recorded", count, "count", thresholds.FEWEST_ITERATIONS),
        Reading("First step recorded", int(iterations.number[0]), "count", FIRST_STEPS),
        Reading("Events in the trace", events, "count", MANY_EVENTS),
    ]
    if early is not None:
        titles.append("the first steps of the training were recorded")
        seen.append(f"The recording begins with step {int(iterations.number[0])}. {early.text}")
        readings.append(Reading("Done only once", early.percent, "percent", ONCE_ONLY_SHARE_PERCENT))
    if few:
        titles.append(f"only {count} iteration{'s were' if count > 1 else ' was'} recorded")
        seen.append(
            "With one iteration there is no spread and no interval."
            if count == 1
            else f"Two iterations took {_times(context)} ms: the 95 % interval of their mean reaches six times their "
            "difference to either side (Student's t is 12.7 for one degree of freedom)."
        )
    if many and events is not None:
        titles.append(f"the recording is large: {events / 1e6:.1f} million events")
        seen.append(
            f"{count} iterations of {events // count:,} events each were recorded; {_enough(count, events)} are enough."
        )
    active = _enough(count, events) if many and events is not None else _ENOUGH
    title = "; ".join(titles)
    return RULE.finding(
        title=title[0].upper() + title[1:],
        seen=" ".join(seen),
        readings=readings,
        evidence=[
            EvidenceRow(f"Step {int(iterations.number[i])}", int(iterations.duration_ns[i]), None, "overview", str(i))
            for i in range(min(count, 3))
        ],
        change=f"Record {active} steps, after some that the schedule waits for and a few to warm up. The first ones "
        "allocate, load code, and are timed without the profiler.",
        code="with tb_dlprof_plugin.profile(\n    logdir,\n    model=model,\n"
        f"    schedule=dict(wait=5, warmup=3, active={active}, repeat=1),\n) as prof:\n    ...\n",
        saving="The schedule changes what is measured, not the training.",
    ).but(severity="medium" if few or early else "low")


@dataclass(frozen=True, slots=True)
class _Early:
    """Percent of the recorded time that the first steps spend on what later ones do not do, and in words."""

    percent: float
    text: str


def _early(context: RuleContext) -> _Early | None:
    """Where the first steps were recorded and it is a notable part."""
    iterations = context.profile.iterations
    if iterations.found_by != "profiler_step" or int(iterations.number[0]) > FIRST_STEPS:
        return None
    whole = int(iterations.duration_ns.sum())
    done = once_only(context.view, np.arange(len(iterations)))
    share = percent(done.time_ns, whole) or 0.0
    text = f"It holds {done.text}, for what later steps do not do." if done.calls else ""
    later = iterations.duration_ns[1:]
    if len(later) and iterations.duration_ns[0] >= _MUCH_LONGER * np.median(later):
        longer = int(iterations.duration_ns[0] - np.median(later))
        share = max(share, percent(longer, whole) or 0.0)
        times = f"The first step takes {ms(iterations.duration_ns[0])}, later ones {np.median(later) / 1e6:.2f}."
        text = f"{times} {text}".strip()
    return _Early(share, text) if share >= ONCE_ONLY_SHARE_PERCENT else None


def _times(context: RuleContext) -> str:
    return " and ".join(f"{duration / 1e6:.2f}" for duration in context.profile.iterations.duration_ns.tolist())


def _enough(count: int, events: int) -> int:
    """Iterations that keep within the limit, at most `_ENOUGH` and at least the fewest that will do."""
    return max(thresholds.FEWEST_ITERATIONS, min(_ENOUGH, MANY_EVENTS * count // events))
