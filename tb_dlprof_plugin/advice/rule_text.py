"""What a rule says of itself, as Markdown: for `tb-dlprof advise --rule` and the pages of the docs."""

from __future__ import annotations

import ast
import functools
import inspect

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.rule import Rule
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.advice.topics import topic_of


def rule_text(rule: Rule, example: str = "") -> str:
    """The page of one rule.

    Args:
        rule: the rule.
        example: a section to put behind the thresholds.
    """
    parts = [
        f"# {rule.title}",
        f"Rule `{rule.id}`. Topic: {topic_of(rule.id)}.",
        f"**Looks for:** {rule.looks_for}",
        f"## Why it matters\n\n{rule.why}",
        f"## What to change\n\n{rule.fix}",
        f"## When to leave it\n\n{rule.ignore_when}",
    ]
    if rule.thresholds:
        known = threshold_sources()
        rows = [f"| `{name}` | {_value(getattr(thresholds, name))} | {known[name]} |" for name in rule.thresholds]
        table = "\n".join(["| threshold | value | meaning and source |", "| --- | --- | --- |", *rows])
        parts.append(f"## Thresholds\n\nIn `tb_dlprof_plugin/advice/thresholds.py`.\n\n{table}")
    if example:
        parts.append(example)
    if rule.peers:
        peers = "\n".join(f"- {peer.tool}: {peer.name}" for peer in rule.peers)
        parts.append(f"## The same in other tools\n\n{peers}")
    if rule.references:
        links = "\n".join(f"- [{reference.title}]({reference.url})" for reference in rule.references)
        parts.append(f"## Read on\n\n{links}")
    return "\n\n".join(parts) + "\n"


@functools.cache
def threshold_sources() -> dict[str, str]:
    """Meaning and source of each threshold by its name: the docstring below it, or below the last that shares one."""
    found: dict[str, str] = {}
    waiting: list[str] = []
    for node in ast.parse(inspect.getsource(thresholds)).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            waiting += [target.id for target in targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            text = " ".join(inspect.cleandoc(node.value.value).replace("``", "`").split())
            found.update(dict.fromkeys(waiting, text))
            waiting = []
        else:
            waiting = []
    return found


def _value(value: object) -> str:
    if isinstance(value, SpeedupRange):
        return f"{value.expected:g} ({value.low:g} to {value.high:g})"
    return f"{value:,g}" if isinstance(value, (int, float)) else str(value)
