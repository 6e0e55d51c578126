"""Ranks collect garbage in turns.

Runs of Python's garbage collector on several ranks in different steps.

Why it matters: A rank that collects launches nothing, and all others wait for it in the next collective. Each rank
collects when its own counters say so: of many ranks one does in nearly every step, and each of these steps is longer.

What to change: Call `gc.disable()` after the set-up, and `gc.collect()` on all ranks in the same steps, every few
hundred.

When to leave it: The training makes reference cycles with large tensors, which only the collector frees.

To confirm: Record all ranks again: no rank collects in a step in which the others do not.

Read on:
- [Python: gc](https://docs.python.org/3/library/gc.html)
- [Lin et al., Understanding Stragglers in Large Model Training Using What-if Analysis](https://arxiv.org/abs/2505.05713)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule import Finding, JobNeed, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import stated
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.fleet.chosen_steps import common_steps
from tb_dlprof_plugin.metrics.iterations import percent

RULE = Rule(
    __name__,
    __doc__,
    needs=(JobNeed.OTHER_RANKS,),
    thresholds=("WORTHWHILE_SAVING_PERCENT",),
    group="imbalance",
)


def check(context: RuleContext) -> Finding | Silent:
    """Fires where collecting in the same steps saves `WORTHWHILE_SAVING_PERCENT` of the step."""
    replayed = context.replayed_job
    assert replayed is not None
    assert replayed.job.step is not None
    numbers = common_steps(replayed.facts)
    rows = [one.steps.garbage_ns[np.isin(one.steps.number, numbers)] for one in replayed.facts]
    if not len(numbers) or any((row < 0).any() for row in rows):
        return Silent("Not applicable: this recording has no runs of Python's garbage collector.", applicable=False)
    table = np.stack(rows)
    ranks = int((table.sum(axis=1) > 0).sum())
    longest_ns, mean_ns = float(table.max(axis=0).mean()), float(table.mean())
    if ranks < 2:
        return Silent(f"The collector runs on {ranks} of {len(rows)} ranks in the recorded steps.")
    # What all ranks need together is left, if they collect in the same steps.
    turns_ns = longest_ns - mean_ns
    even = replayed.scenarios.even_ms
    even_ns = 0.0 if even is None else max(1 - even / replayed.job.step.ms, 0.0) * context.step_ns
    expected = min(turns_ns, even_ns)
    seen = (
        f"The collector runs on {ranks} of {len(rows)} ranks; the one that collects longest takes "
        f"{ms(longest_ns)} of a step, all of them {ms(mean_ns)} in the mean."
    )
    if (percent(expected, context.step_ns) or 0.0) < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(seen)
    return RULE.finding(
        title=f"Ranks collect garbage in turns: {ms(turns_ns)} of each step",
        seen=seen,
        readings=[
            Reading("Ranks on which the collector runs", ranks, "count"),
            Reading("Collecting on the rank with most of it, per step", longest_ns, "ns"),
            Reading("Collecting in the mean of the ranks, per step", mean_ns, "ns"),
        ],
        change="Collect on all ranks in the same steps.",
        code="gc.collect()\ngc.disable()\nfor number, batch in enumerate(loader):\n    train_step(batch)\n"
        "    if number % 500 == 0:\n        gc.collect()\n",
        saving=stated(
            context,
            0.0,
            expected,
            max(longest_ns, expected),
            f"In the same steps {ms(turns_ns)} of collecting would not be waited for; the recorded job, "
            f"replayed with even ranks and steps, is {ms(even_ns)} shorter, which bounds it. Nothing where "
            "hosts are far ahead of their GPUs; at best, without collecting at all, all of it.",
        ),
    )
