"""Starts a rule of the advice: writes the rule and its cases, which run as they are.

    python tools/new_rule.py layers slow_softmax        # or: make rule TOPIC=layers NAME=slow_softmax

What is written looks for ops by their names and states what the step saves without them. Change `_OPS`, the docstring,
which is the rule's page, and the threshold to what the rule is about; the cases show both answers of a rule, a finding
and a reason for silence.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tb_dlprof_plugin.advice.topics import TOPICS, modules_by_topic

ROOT = Path(__file__).resolve().parents[1]

RULE = '''"""{title}.

GPU work of `aten::conv2d`.

Why it matters: It takes GPU time in each step.

What to change: Replace it by an op that takes less time.

When to leave it: The model needs it.

To confirm: Record again: the ops should be gone.

Read on:
- [PyTorch: conv2d](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html)
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.savings import shorter_step
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.intervals import union
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.model.tree import nearest
from tb_dlprof_plugin.simulation.call_names import calls_named
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(__name__, __doc__, needs=(Need.GPU,))

{upper}_SAVING_PERCENT = 2.0
"""Of the step. Ours: less is within what two recordings of the same training differ by."""

_OPS = ("aten::conv2d",)


def check(context: RuleContext) -> Finding | Silent:
    """Finds that the step gets shorter without the ops."""
    view = context.view
    op = calls_named(view, CallKind.OP, _OPS.__contains__) & view.selected_calls(context.selection)
    if not op.any():
        return Silent("The steps call none of these ops.")
    call = context.profile.launches.call
    work = (call >= 0) & (nearest(op, view.call_parent)[np.maximum(call, 0)] >= 0)
    gone = Change(union(*_span(context, op)), 0.0, np.where(work, 0.0, 1.0))
    estimate = shorter_step(context, gone, gone, gone, "The ops and their GPU work are left out of the replayed step.")
    if estimate.percent < {upper}_SAVING_PERCENT:
        return Silent(f"Without these ops the step would be {{estimate.percent:.1f}} % shorter.")
    time = context.per_step(work)
    return RULE.finding(
        title=f"{{int(op.sum()) / context.selection.count:.3g}} calls a step could be replaced",
        seen=f"Their GPU work takes {{ms(time)}} a step.",
        readings=[
            Reading("GPU time per step", time, "ns"),
            Reading("Share of the step", percent(time, context.recorded_step_ns), "percent"),
            Reading("Expected saving", estimate.percent, "percent", {upper}_SAVING_PERCENT),
        ],
        evidence=op_rows(context, work),
        change="Replace them.",
        saving=estimate,
    )


def _span(context: RuleContext, op: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    calls = context.profile.calls
    return calls.start_ns[op], calls.start_ns[op] + calls.duration_ns[op]
'''

CASES = '''"""Cases of `{name}`: a step with the ops, and one without."""

from __future__ import annotations

from typing import Any

from advice.case import Case


def _with(trace: Any, op: str) -> None:
    trace.gpu()
    trace.step(1, 0, 1000)
    trace.op(op, 10, 900)
    trace.launch("kernel", 12, 30, 800)


CASES = (
    Case("the ops take most of the step", lambda trace: _with(trace, "aten::conv2d"), "fired", "takes 0.80 ms a step"),
    Case("there are none", lambda trace: _with(trace, "aten::add"), "silent", "The steps call none of these ops."),
)
'''


def new_rule(topic: str, name: str) -> dict[Path, str]:
    """The files of a new rule by their paths in the repository.

    Raises:
        ValueError: there is no such topic, the name is no Python name, or a module of this name is there already.
    """
    if topic not in TOPICS:
        raise ValueError(f"there is no topic {topic!r}; there are {', '.join(TOPICS)}")
    if not name.isidentifier() or name != name.lower():
        raise ValueError(f"a rule's name is its file's: small letters and underscores, not {name!r}")
    if any(module.endswith(f".{name}") for modules in modules_by_topic().values() for module in modules):
        raise ValueError(f"there is a module {name!r} in advice/rules already")
    title = name.replace("_", " ").capitalize()
    words = {"name": name, "title": title, "upper": name.upper()}
    return {
        Path("tb_dlprof_plugin/advice/rules", topic, f"{name}.py"): RULE.format(**words),
        Path("tests/advice/cases", f"{name}.py"): CASES.format(**words),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Starts a rule of the advice.")
    parser.add_argument("topic", choices=list(TOPICS), help="folder in tb_dlprof_plugin/advice/rules")
    parser.add_argument("name", help="the rule's id, for example slow_softmax")
    given = parser.parse_args()
    try:
        files = new_rule(given.topic, given.name)
    except ValueError as error:
        sys.exit(str(error))
    for path, text in files.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
