"""Writes docs/rules: a page for each rule, and README.md with all of them and the outcomes of each.

    python docs/rule_pages.py [--out DIRECTORY]

A page is what the rule says of itself, its thresholds with their sources, and as an example what it says of its planted
training (`lab/planted`). They are built by ``make docs`` and not part of the repository; [rules.md](rules.md) is
written by hand.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "lab")]

from planted import faults, studies  # noqa: E402, F401  # faults fill PLANTED
from planted.common import PLANTED  # noqa: E402
from planted.held import LARGER, NOT_RECORDED, OF_GPUS, OF_JOBS, OF_SETTINGS, RECORDED, Held, all_held, held  # noqa: E402
from planted.tables import DEMO_COLUMNS, PLANTED_COLUMNS, demo_rows, markdown, planted_row, totals  # noqa: E402

from tb_dlprof_plugin.advice.engine import all_rules  # noqa: E402
from tb_dlprof_plugin.advice.finding import FindingItem, Reading  # noqa: E402
from tb_dlprof_plugin.advice.rule import Rule  # noqa: E402
from tb_dlprof_plugin.advice.rule_text import rule_text  # noqa: E402
from tb_dlprof_plugin.advice.topics import sort_key, topic_of  # noqa: E402
from tb_dlprof_plugin.model.formatting import byte_size, duration  # noqa: E402

RULES = ROOT / "docs" / "rules"
_NO_EXAMPLE = "## Example\n\nNo recording has it. Its cases are in `tests/advice/cases/{}.py`."


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=RULES, help="the directory of the pages; links are right in docs/rules"
    )
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    pages = all_pages()
    for stale in {path.name for path in args.out.glob("*.md")} - {*pages}:
        (args.out / stale).unlink()
    for name, text in pages.items():
        (args.out / name).write_text(text, encoding="utf-8")
    print(f"{len(pages)} pages in {args.out}")


def all_pages() -> dict[str, str]:
    """Name and text of each page."""
    rules = sorted((one.rule for one in all_rules()), key=lambda rule: sort_key(rule.id))
    planted = {one.rule: one for one in all_held(RECORDED)}
    examples = {rule: _example(one, rule) for rule, one in planted.items()}
    examples |= {rule: _example(replace(planted[of], rule=rule), of) for rule, of in OF_JOBS.items() if of in planted}
    examples |= {rule: _example(held(rule), "") for rule in (*OF_SETTINGS, *OF_GPUS)}
    examples |= {rule: f"## Example\n\nNo recording has it. {why}" for rule, why in NOT_RECORDED.items()}
    pages = {f"{rule.id}.md": rule_text(rule, examples.get(rule.id, _NO_EXAMPLE.format(rule.id))) for rule in rules}
    rows = [planted[rule.id] for rule in rules if rule.id in planted]
    larger = sorted(all_held(LARGER), key=lambda one: sort_key(one.rule))
    sections = {
        "All rules": "What they are and how they are judged: [the rules](../rules.md).\n\n" + _index(rules),
        "On trainings with their fault, and fixed": _table(rows),
        "On the same trainings at 1.5 times the batches and widths": _table(larger),
        "On the recorded runs of the demo's six models": markdown(DEMO_COLUMNS, demo_rows(_link)),
        "What studies of the six models advised": studies.tables(),
    }
    return {**pages, "README.md": "".join(f"# {title}\n\n{text.strip()}\n\n" for title, text in sections.items())}


def _table(rows: list[Held]) -> str:
    return markdown(PLANTED_COLUMNS, [planted_row(one, _link) for one in rows]) + f"\n{totals(rows)}\n"


def _example(planted: Held, training_of: str) -> str:
    """What the rule says of a training with its fault, and what fixing it saved; ``training_of`` is "" where the
    recording is a job or was made for something else."""
    rule = planted.rule
    machine = f", recorded on {planted.machine}" if planted.machine else ""
    if training_of:
        training = PLANTED[training_of]
        file = training.file.resolve().relative_to(ROOT).as_posix()
        about = f"[`{training_of}` in `{file}`](../../{file}) is a training with this fault{machine}. {training.about}"
    elif rule in OF_GPUS:
        about = f"The training in `tests/data/{OF_GPUS[rule][0]}` has it{machine}; without it: `{OF_GPUS[rule][1]}`."
    else:
        jobs = "[`lab/ranks`](../../lab/ranks/README.md)"
        about = f"The job `{OF_SETTINGS[rule][0].rpartition('/')[2]}` of {jobs} has it{machine}."
    lines = ["## Example", about]
    if planted.finding is None:
        status = planted.fault.status(rule)
        lines.append(f"The rule does not find it: {status.why if status else 'unknown'}")
    else:
        lines += list(_finding(planted.finding))
    twin = planted.fixed.status(rule)
    saved = "" if rule in OF_GPUS else f"Fixed: {_realised(planted)} "
    lines.append(f"{saved}The rule then says: {twin.why if twin else 'nothing.'}")
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
        return "how long its steps take cannot be compared."
    batches = planted.fault.batch_size, planted.fixed.batch_size
    scaled = ""
    if batches[0] and batches[1] and batches[0] != batches[1]:
        scaled = f" with a batch of {batches[1]} instead of {batches[0]}, {duration(saved)} less for the same samples"
    kept = {None: "", True: ", as stated", False: ", which the stated interval does not hold"}[planted.within]
    much = scaled or f", {duration(abs(saved))} {'less' if saved >= 0 else 'more'}"
    return f"a step without the profiler takes {duration(after)} instead of {duration(before)}{much}{kept}."


def _index(rules: list[Rule]) -> str:
    """The rules by topic."""
    parts = []
    for topic, group in itertools.groupby(rules, key=lambda rule: topic_of(rule.id)):
        rows = [
            (_link(rule.id), rule.title, "; ".join(f"{peer.tool}: {peer.name}" for peer in rule.peers))
            for rule in group
        ]
        parts.append(f"## {topic}\n\n{markdown(('rule', 'says', 'in other tools'), rows)}")
    return "\n".join(parts)


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


if __name__ == "__main__":
    main()
