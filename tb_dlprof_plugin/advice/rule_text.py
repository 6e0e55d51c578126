"""The page of a rule, as Markdown: for `tb-dlprof advise --rule` and the docs."""

from __future__ import annotations

import ast
import functools
import inspect
from importlib import import_module

from tb_dlprof_plugin.advice.rule import CONFIRM, FIX, LEAVE, WHY, Rule
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.advice.topics import modules_by_topic, topic_of


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
    ]
    sections = ((WHY, rule.why), (FIX, rule.fix), (LEAVE, rule.ignore_when), (CONFIRM, rule.confirm))
    parts += [f"## {heading}\n\n{text}" for heading, text in sections if text]
    if thresholds := thresholds_of(rule):
        rows = [f"| `{name}` | {_value(value)} | {source} |" for name, (value, source) in thresholds.items()]
        parts.append(
            "\n".join(["## Thresholds\n\n| threshold | value | meaning and source |", "| --- | --- | --- |", *rows])
        )
    if example:
        parts.append(example)
    if rule.peers:
        peers = "\n".join(f"- {peer.tool}: {peer.name}" for peer in rule.peers)
        parts.append(f"## The same in other tools\n\n{peers}")
    if rule.references:
        links = "\n".join(f"- [{reference.title}]({reference.url})" for reference in rule.references)
        parts.append(f"## Read on\n\n{links}")
    return "\n\n".join(parts) + "\n"


def thresholds_of(rule: Rule) -> dict[str, tuple[object, str]]:
    """Value, and meaning with source, of each threshold: the rule's own, then those that it shares with others.

    Raises:
        KeyError: the rule names a shared threshold that no module documents.
    """
    own = documented_constants(rule.module)
    if all(name in own for name in rule.thresholds):
        return own
    topic = next(modules for modules in modules_by_topic().values() if rule.module in modules)
    shared: dict[str, tuple[object, str]] = {}
    for module in ("tb_dlprof_plugin.advice.thresholds", *topic):
        shared |= documented_constants(module)
    return {**own, **{name: shared[name] for name in rule.thresholds}}


@functools.cache
def documented_constants(module: str) -> dict[str, tuple[object, str]]:
    """Public constants of a module with the docstring below each, or below the last of several that share one."""
    defined = import_module(module)
    found: dict[str, tuple[object, str]] = {}
    waiting: list[str] = []
    last_line = 0
    for node in ast.parse(inspect.getsource(defined)).body:
        if node.lineno > last_line + 1:
            waiting = []
        last_line = node.end_lineno or 0
        if isinstance(node, ast.Assign):
            waiting += [target.id for target in node.targets if isinstance(target, ast.Name) and target.id.isupper()]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            text = " ".join(inspect.cleandoc(node.value.value).replace("``", "`").split())
            found.update({name: (getattr(defined, name), text) for name in waiting if not name.startswith("_")})
    return found


def _value(value: object) -> str:
    if isinstance(value, SpeedupRange):
        return f"{value.expected:g} ({value.low:g} to {value.high:g})"
    return f"{value:,g}" if isinstance(value, (int, float)) else str(value)
