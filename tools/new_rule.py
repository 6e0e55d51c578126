"""Starts a rule of the advice: writes the rule, its test and its planted training, all of which run as they are.

    python tools/new_rule.py layers slow_softmax        # or: make rule TOPIC=layers NAME=slow_softmax

What is written looks for ops by their names and states what the step saves without them. Change `_OPS`, the texts and
the threshold to what the rule is about; the test shows both answers of a rule, a finding and a reason for silence.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tb_dlprof_plugin.advice.topics import TOPICS, modules_by_topic

ROOT = Path(__file__).resolve().parents[1]

RULE = '''"""{title}."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.finding import Reading, Silent
from tb_dlprof_plugin.advice.rule import Finding, Rule
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.savings import shorter_step
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.intervals import union
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.model.tree import nearest
from tb_dlprof_plugin.simulation.call_names import calls_named
from tb_dlprof_plugin.simulation.change import Change

RULE = Rule(
    id="{name}",
    title="{title}",
    looks_for="GPU work of `aten::conv2d`.",
    why="It takes GPU time in each step.",
    fix="Replace it by an op that takes less time.",
    ignore_when="The model needs it.",
)

_OPS = ("aten::conv2d",)
_WORTHWHILE_PERCENT = 2.0
"""Of the step. Ours: less is within what two recordings of the same training differ by."""


def check(context: RuleContext) -> Finding | Silent:
    """Finds that the step gets shorter without the ops."""
    if not context.profile.has_gpu:
        return Silent("The run used no GPU.", applicable=False)
    view = context.view
    op = calls_named(view, CallKind.OP, _OPS.__contains__) & view.selected_calls(context.selection)
    if not op.any():
        return Silent("The steps call none of these ops.")
    call = context.profile.launches.call
    work = (call >= 0) & (nearest(op, view.call_parent)[np.maximum(call, 0)] >= 0)
    gone = Change(union(*_span(context, op)), 0.0, np.where(work, 0.0, 1.0))
    estimate = shorter_step(context, gone, gone, gone, "The ops and their GPU work are left out of the replayed step.")
    if estimate.percent < _WORTHWHILE_PERCENT:
        return Silent(f"Without these ops the step would be {{estimate.percent:.1f}} % shorter.")
    time = context.per_step(work)
    return RULE.finding(
        title=f"{{int(op.sum()) / context.selection.count:.3g}} calls a step could be replaced",
        seen=f"Their GPU work takes {{time / 1e6:.2f}} ms a step.",
        readings=[
            Reading("GPU time per step", time, "ns"),
            Reading("Share of the step", percent(time, context.recorded_step_ns), "percent"),
            Reading("Expected saving", estimate.percent, "percent", _WORTHWHILE_PERCENT),
        ],
        evidence=op_rows(context, work),
        change="Replace them.",
        saving=estimate,
        confirm="Record again: the ops should be gone.",
        confidence="medium",
    )


def _span(context: RuleContext, op: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    calls = context.profile.calls
    return calls.start_ns[op], calls.start_ns[op] + calls.duration_ns[op]
'''

TEST = '''"""The rule `{name}`: a step with the ops, and one without."""

from __future__ import annotations

from tb_dlprof_plugin.advice.finding import Silent
from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.rules.{topic} import {name}


def test_ops_that_take_much_of_the_step_are_found(training) -> None:
    view = training("fp32").view()
    finding = {name}.check(RuleContext(view, view.selection()))
    assert not isinstance(finding, Silent)
    assert finding.item.rule == "{name}"
    assert finding.saving is not None
    assert finding.saving.expected_ns > 0


def test_a_step_without_them_gives_a_reason(new_trace) -> None:
    trace = new_trace()
    trace.gpu(9, 0)
    trace.step(1, 0, 100)
    trace.op("aten::add", 10, 20)
    trace.launch("kernel", 12, 30, 20)
    view = trace.view()
    answer = {name}.check(RuleContext(view, view.selection()))
    assert answer == Silent("The steps call none of these ops.")
'''

SNIPPET = '''"""Fault: convolutions that nothing needs. Fixed: they are left out.

python -m benchmarks.planted.snippets.{name} --logdir runs/planted [--{flag}]
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def train(logdir: Path, {flag}: bool) -> None:
    """A small network, once with twelve convolutions that keep the size, once without."""
    channels = size(256, 8)
    extra = [] if {flag} else [nn.Conv2d(channels, channels, 3, padding=1) for _ in range(12)]
    model = nn.Sequential(nn.Conv2d(3, channels, 3), *extra, nn.Flatten(), nn.LazyLinear(10)).to(DEVICE)
    inputs = torch.randn(size(64, 4), 3, 32, 32, device=DEVICE)
    targets = torch.randn(len(inputs), 10, device=DEVICE)
    model(inputs)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
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
    words = {"name": name, "topic": topic, "title": title, "flag": "fixed"}
    return {
        Path("tb_dlprof_plugin/advice/rules", topic, f"{name}.py"): RULE.format(**words),
        Path("tests/advice/rules", f"test_{name}.py"): TEST.format(**words),
        Path("benchmarks/planted/snippets", f"{name}.py"): SNIPPET.format(**words),
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
    print(f"Then, on a GPU: python -m benchmarks.planted.record --rules {given.name} --out benchmarks/planted/recorded")


if __name__ == "__main__":
    main()
