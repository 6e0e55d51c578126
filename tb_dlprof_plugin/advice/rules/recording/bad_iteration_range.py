"""Some iterations are unlike the others.

Selected iterations whose time is far from the median of all. Where steps were timed without the profiler, those nearest
to them count: the first ones, which allocate memory, load code or try out algorithms, or one that also validates, saves
or logs.

Why it matters: Every figure of every page is a mean over the selected iterations. One that takes five times as long as
the others moves them all. Savings are then stated for a step that no training takes.

What to change: Select the iterations that are like each other, or record later ones.

When to leave it: The iterations differ by design, such as those of a training whose input sizes vary. The mean over all
of them is what you want to know.

To confirm: With that range selected this finding is gone, and the spread of the iteration times is small.

In other tools:
- DLProf: Bad Iteration Range Detector

Read on:
- [DLProf User Guide: how do I choose a good iteration range to analyze?](https://docs.nvidia.com/deeplearning/frameworks/dlprof-user-guide/index.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rules.recording.startup_calls import once_only
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics import outlier_steps
from tb_dlprof_plugin.metrics.iterations import category_sums, percent
from tb_dlprof_plugin.metrics.outlier_steps import IterationSpread, iteration_spread
from tb_dlprof_plugin.model.profile import CallKind, Ints
from tb_dlprof_plugin.profile_view import Selection, op_label

RULE = Rule(
    __name__,
    __doc__,
    all_iterations=True,
    any_framework=True,
    confidence="high",
)

STRAY_ITERATION_PERCENT = 100 * outlier_steps.STRAY_SHARE
STRAY_ITERATION_DEVIATIONS = outlier_steps.STRAY_DEVIATIONS
"""An iteration is unlike the others if its time differs from their median by more than both: percent of the median, and
standard deviations estimated from the median absolute deviation (times 1.4826, as for a normal distribution). Ours:
DLProf names no figure for its Bad Iteration Range Detector. Steps of a few ms that the CPU paces differ by 30 % in
recorded runs without one of them being unlike the others, which the second figure sees."""

_ROWS = 3
_NOTABLE = 0.1
"""Of the additional time, from which its cause is named."""


def check(context: RuleContext) -> Finding | Silent:
    """Fires where a selected iteration is far from the median, and names the longest range without such ones."""
    selection, numbers = context.selection, context.profile.iterations.number
    if selection.count < thresholds.FEWEST_ITERATIONS:
        return Silent(
            f"{selection.count} of the recorded iterations are selected: too few to tell which is unlike the others.",
            applicable=False,
        )
    spread = iteration_spread(context.view, selection)
    duration, stray = spread.duration_ns, spread.stray
    middle = max(spread.middle_ns, 1.0)
    furthest = int(np.argmax(np.abs(duration - middle)))
    distance = 100 * (float(duration[furthest]) / middle - 1)
    if not stray.any():
        return Silent(
            f"No iteration is unlike the others: the furthest takes {distance:+.0f} % of the median "
            f"{ms(middle)} more or less."
        )
    first, last = spread.kept
    good = Selection(selection.first + first, selection.first + last)
    mean = round(spread.kept_ns)
    shift = 100 * (1 - mean / max(float(duration.mean()), 1.0))
    rows = np.flatnonzero(stray) + selection.first
    named = ", ".join(
        f"{int(numbers[row])} ({ms(int(context.profile.iterations.duration_ns[row]))})" for row in rows[:5].tolist()
    ) + (", ..." if len(rows) > 5 else "")
    cause = _cause(context, rows, good)
    steps = f"{int(numbers[good.first])} to {int(numbers[good.last])}"
    some = good.count > 1
    title = f"{len(rows)} of {selection.count} iterations {'is' if len(rows) == 1 else 'are'} unlike the others: "
    return RULE.finding(
        title=title + (f"use steps {steps}" if some else "record more"),
        seen=f"{_usual(spread)}; unlike {'it' if spread.true_ns is None else 'them'}: {named}. {cause}"
        f"The mean over all that are selected is {ms(context.step_ns)}, "
        + (f"over steps {steps} {ms(mean)} ({-shift:+.0f} %)." if some else "and no two neighbours are alike."),
        readings=[
            Reading("Furthest from the median", abs(distance), "percent", STRAY_ITERATION_PERCENT),
            Reading("Iterations unlike the others", len(rows), "count"),
            Reading("Mean over the selected iterations", context.step_ns, "ns"),
            Reading("Mean over the range to use", mean if some else None, "ns"),
        ],
        evidence=_only_there(context, rows) or _bars(context, rows),
        change=_change(context, good, steps, rows),
        code=f"tb-dlprof advise LOGDIR --first {good.first} --last {good.last}\n" if some else "",
        saving="The range changes what is measured, not the training.",
    ).but(severity="medium" if abs(shift) >= thresholds.MEDIUM_SEVERITY_PERCENT else "low")


def _usual(spread: IterationSpread) -> str:
    """What the stray iterations are unlike."""
    if spread.true_ns is None:
        return f"The median iteration takes {ms(spread.middle_ns)}"
    return (
        f"Without the profiler a step takes {ms(spread.true_ns)}, and the iterations nearest to that "
        f"{ms(spread.middle_ns)}"
    )


def _change(context: RuleContext, good: Selection, steps: str, rows: Ints) -> str:
    if good.count < 2:
        return "Record more iterations, after some that the schedule waits for."
    later = (
        "Or record later: the first ones do what is done only once."
        if int(rows[-1]) == context.selection.first + len(rows) - 1
        else "Or record a stretch without them."
    )
    return (
        f"Select iterations {good.first} to {good.last} of the recording (steps {steps} of the {context.words.run}) at "
        "the top of the page, or on the command line. That shows the usual step: what is unlike it but comes again and "
        f"again is part of the {context.words.training} all the same. {later}"
    )


def _bars(context: RuleContext, rows: Ints) -> list[EvidenceRow]:
    iterations = context.profile.iterations
    return [
        EvidenceRow(f"Step {int(iterations.number[row])}", int(iterations.duration_ns[row]), None, "overview", str(row))
        for row in rows[:_ROWS].tolist()
    ]


def _cause(context: RuleContext, rows: Ints, good: Selection) -> str:
    """What most of the additional time of the stray iterations is; "" where they are the shorter ones."""
    usual = category_sums(context.view, slice(good.first, good.last + 1))
    extra: dict[str, float] = {}
    labels = {
        "dataloader": f"waiting for {context.words.loader}",
        "cpu": "CPU work with the GPU idle",
        "other": context.words.python_idle,
        "tensor_core": "GPU kernels",
        "other_kernels": "GPU kernels",
        "memory": "copies and sets on the GPU",
    }
    for name, value in usual.items():
        mine = sum(category_sums(context.view, slice(row, row + 1))[name] or 0 for row in rows.tolist()) / len(rows)
        if name in labels:
            extra[labels[name]] = extra.get(labels[name], 0.0) + mine - (value or 0) / good.count
    total = float(context.profile.iterations.duration_ns[rows].mean())
    total -= float(context.profile.iterations.duration_ns[good.first : good.last + 1].mean())
    if total <= 0:
        return ""
    text = ""
    if extra:
        most = max(extra, key=lambda label: extra[label])
        if extra[most] > 0:
            text = f"{ms(min(extra[most], total))} of their additional {ms(total)} are {most}. "
    done = once_only(context.view, rows)
    return f"{text}They hold {done.text}. " if done.time_ns > _NOTABLE * total * len(rows) else text


def _only_there(context: RuleContext, rows: Ints) -> list[EvidenceRow]:
    """Ops that no iteration but the stray ones runs, those with most CPU time first."""
    profile, view = context.profile, context.view
    calls, groups = profile.calls, view.groups
    top = (
        profile.ops.top[calls.op] & view.selected_calls(context.selection) & (profile.ops.kind[calls.op] == CallKind.OP)
    )
    there = top & np.isin(view.call_iteration, rows)
    only = np.bincount(view.call_group[there], minlength=len(groups)) > 0
    only &= np.bincount(view.call_group[top & ~there], minlength=len(groups)) == 0
    time = np.bincount(view.call_group[there], weights=calls.duration_ns[there], minlength=len(groups)) * only
    return [
        EvidenceRow(
            f"Only there: {op_label(view, group)}",
            int(time[group]) // len(rows),
            percent(float(time[group]), float(profile.iterations.duration_ns[rows].sum())),
            "ops",
            groups.ids[group],
        )
        for group in np.argsort(-time, kind="stable")[:_ROWS].tolist()
        if time[group] > 0
    ]
