"""Writes the pages of the rules: docs/rules/<rule>.md, and the generated parts of docs/rules/README.md.

    python -m benchmarks.planted.document            # write
    python -m benchmarks.planted.document --check    # exit 1 where a page is not what would be written

A page is what the rule says of itself, its thresholds with the docstrings that name their sources, and as an example
what it says of its planted training. In README.md everything between ``<!-- NAME -->`` and ``<!-- end of NAME -->``
is generated, the rest is written by hand.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.advice.finding import FindingItem, Reading
from tb_dlprof_plugin.advice.rule import Rule
from tb_dlprof_plugin.advice.thresholds import SpeedupRange
from tb_dlprof_plugin.advice.topics import sort_key, topic_of
from tb_dlprof_plugin.model.formatting import byte_size, duration

from . import studies
from .held import LARGER, RECORDED, Held, all_held
from .tables import DEMO_COLUMNS, PLANTED_COLUMNS, demo_rows, markdown, planted_row, totals

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "rules"
MADE_BY = "<!-- Made by python -m benchmarks.planted.document -->"


def main(arguments: list[str] | None = None) -> int:
    """Entry point of the script; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 where a page is stale")
    parser.add_argument("--recorded", type=Path, default=RECORDED, help="what benchmarks.planted.record wrote")
    args = parser.parse_args(arguments)
    pages = all_pages(args.recorded)
    stale = [name for name, text in pages.items() if not _is(DOCS / name, text)]
    stale += [path.name for path in DOCS.glob("*.md") if path.name not in pages]
    if args.check:
        for name in stale:
            print(f"docs/rules/{name} is stale: run python -m benchmarks.planted.document")
        return 1 if stale else 0
    for name in stale:
        if name in pages:
            (DOCS / name).write_text(pages[name], encoding="utf-8")
        else:
            (DOCS / name).unlink()
        print(f"docs/rules/{name}")
    return 0


def all_pages(recorded: Path = RECORDED) -> dict[str, str]:
    """Name and text of each page in docs/rules."""
    rules = sorted((one.rule for one in all_rules()), key=lambda rule: sort_key(rule.id))
    planted = {one.rule: one for one in all_held(recorded)}
    pages = {f"{rule.id}.md": rule_page(rule, planted.get(rule.id)) for rule in rules}
    rows = [planted[rule.id] for rule in rules if rule.id in planted]
    larger = sorted(all_held(LARGER), key=lambda one: sort_key(one.rule))
    parts = {
        "index": _index(rules),
        "larger": markdown(PLANTED_COLUMNS, [planted_row(one, _link) for one in larger]) + f"\n{totals(larger)}\n",
        "planted": markdown(PLANTED_COLUMNS, [planted_row(one, _link) for one in rows]) + f"\n{totals(rows)}\n",
        "demo": markdown(DEMO_COLUMNS, demo_rows(_link)),
        "studies": studies.tables(),
    }
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = _replaced(text, name, part)
    return {**pages, "README.md": text}


def rule_page(rule: Rule, planted: Held | None) -> str:
    """The page of one rule."""
    parts = [
        MADE_BY,
        f"# {rule.title}",
        f"Rule `{rule.id}`. Topic: {topic_of(rule.id)}. [All rules](README.md)",
        f"**Looks for:** {rule.looks_for}",
        f"## Why it matters\n\n{rule.why}",
        f"## What to change\n\n{rule.fix}",
        f"## When to leave it\n\n{rule.ignore_when}",
    ]
    if rule.thresholds:
        rows = [(f"`{name}`", _value(getattr(thresholds, name)), SOURCES[name]) for name in rule.thresholds]
        table = markdown(("threshold", "value", "meaning and source"), rows)
        parts.append(f"## Thresholds\n\nIn `tb_dlprof_plugin/advice/thresholds.py`.\n\n{table.rstrip()}")
    if planted is not None:
        parts.append(_example(planted))
    if rule.peers:
        peers = "\n".join(f"- {peer.tool}: {peer.name}" for peer in rule.peers)
        parts.append(f"## The same in other tools\n\n{peers}")
    if rule.references:
        links = "\n".join(f"- [{reference.title}]({reference.url})" for reference in rule.references)
        parts.append(f"## Read on\n\n{links}")
    return "\n\n".join(parts) + "\n"


def _example(planted: Held) -> str:
    """What the rule says of its planted training, and what fixing it saved."""
    rule = planted.rule
    machine = f", recorded on {planted.machine}" if planted.machine else ""
    snippet = f"benchmarks/planted/snippets/{rule}.py"
    about = f"[`{snippet}`](../../{snippet}) is a training with this fault{machine}. {_about(rule)}"
    lines = ["## Example", about]
    if planted.finding is None:
        status = planted.fault.status(rule)
        lines.append(f"The rule does not find it: {status.why if status else 'unknown'}")
    else:
        lines += list(_finding(planted.finding))
    twin = planted.fixed.status(rule)
    lines.append(f"Fixed: {_realised(planted)} The rule then says: {twin.why if twin else 'nothing.'}")
    return "\n\n".join(lines)


def _finding(finding: FindingItem) -> Iterator[str]:
    price = "saving unknown"
    if finding.saving is not None:
        item = finding.saving
        low = duration(item.low_ns) if item.low_ns else "0"
        price = f"saves {duration(item.expected_ns)} a step ({item.percent:.1f} %), {low} to {duration(item.high_ns)}"
    yield f"> **{finding.title}**\\\n> {price}; severity {finding.severity}, confidence {finding.confidence}"
    yield finding.seen
    if finding.readings:
        rows = [
            (one.label, _reading(one, one.value), "" if one.threshold is None else _reading(one, one.threshold))
            for one in finding.readings
        ]
        yield markdown(("reading", "value", "threshold"), rows).rstrip()
    yield f"Change: {finding.change}"
    if finding.code:
        yield f"```python\n{finding.code.rstrip()}\n```"
    if finding.saving is None:
        yield f"No saving is stated: {finding.saving_unknown_because}"
    else:
        yield f"How the saving was computed: {finding.saving.derivation}"
    yield f"To confirm: {finding.confirm}"


def _realised(planted: Held) -> str:
    saved, before, after = planted.realised_ns, planted.fault.step_ns, planted.fixed.step_ns
    if saved is None or before is None or after is None:
        return "the steps were not timed without the profiler."
    batches = planted.fault.batch_size, planted.fixed.batch_size
    scaled = ""
    if batches[0] and batches[1] and batches[0] != batches[1]:
        scaled = f" with a batch of {batches[1]} instead of {batches[0]}, {duration(saved)} less for the same samples"
    kept = {None: "", True: ", as stated", False: ", which the stated interval does not hold"}[planted.within]
    much = scaled or f", {duration(abs(saved))} {'less' if saved >= 0 else 'more'}"
    return f"a step without the profiler takes {duration(after)} instead of {duration(before)}{much}{kept}."


def _about(rule: str) -> str:
    """What the planted training says of its fault and of how it is fixed: the first paragraph of its docstring."""
    source = (RECORDED.parent / "snippets" / f"{rule}.py").read_text(encoding="utf-8")
    text = ast.get_docstring(ast.parse(source)) or ""
    return " ".join(text.split("\n\n")[0].replace("``", "`").split())


def _index(rules: list[Rule]) -> str:
    """The rules by topic."""
    parts = []
    for topic, group in itertools.groupby(rules, key=lambda rule: topic_of(rule.id)):
        rows = [
            (_link(rule.id), rule.title, "; ".join(f"{peer.tool}: {peer.name}" for peer in rule.peers))
            for rule in group
        ]
        parts.append(f"### {topic}\n\n{markdown(('rule', 'says', 'in other tools'), rows)}")
    return "\n".join(parts)


def _sources() -> dict[str, str]:
    """For each threshold the docstring below it, or below the last of several that share one."""
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


SOURCES = _sources()
"""Meaning and source of each threshold, by its name."""


def _value(value: object) -> str:
    if isinstance(value, SpeedupRange):
        return f"{value.expected:g} ({value.low:g} to {value.high:g})"
    return f"{value:,g}" if isinstance(value, (int, float)) else str(value)


def _reading(reading: Reading, value: float | None) -> str:
    if value is None:
        return "unknown"
    if reading.unit == "ns":
        return duration(value)
    if reading.unit == "bytes":
        return byte_size(value)
    return f"{value:.1f} %" if reading.unit == "percent" else f"{value:,.6g}"


def _link(rule: str) -> str:
    return f"[`{rule}`]({rule}.md)"


def _replaced(text: str, name: str, part: str) -> str:
    """The text with what stands between the marks of a name replaced."""
    marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    if not marks.search(text):
        raise SystemExit(f"docs/rules/README.md has no place for {name!r}")
    return marks.sub(lambda found: f"{found[1]}\n{part.strip()}\n\n{found[2]}", text)


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
