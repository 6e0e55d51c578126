"""The advice as text: the saving of each finding first, coloured on a terminal, one line per paragraph in a pipe."""

from __future__ import annotations

import itertools
import os
import textwrap

from rich.text import Text

from tb_dlprof_plugin.advice.finding import CombinedSaving, FindingItem, Reading, SavingItem
from tb_dlprof_plugin.cli.printing import UNKNOWN, percent, print_table, time
from tb_dlprof_plugin.cli.terminal import is_markdown, say, say_code
from tb_dlprof_plugin.cli.visible_console import console
from tb_dlprof_plugin.model.formatting import byte_size, energy, interval
from tb_dlprof_plugin.model.visible import visible
from tb_dlprof_plugin.pages.advice import AdvicePage, RuleLine
from tb_dlprof_plugin.pages.forecast import MixedPrecision, MixedPrecisionChoice

_WIDTH = 110
"""Longer lines are hard to read."""
_INDENT = 3
_LABEL = 9
_PRICE = "bold green"
_STYLES = {"high": "bold red", "medium": "yellow", "low": "dim"}
_OUTCOMES = {"silent": "found nothing", "not_applicable": "does not apply", "failed": "failed"}


def print_advice(page: AdvicePage, verbose: bool) -> None:
    """Findings with the observations, the change and its code; all details if ``verbose``."""
    paper = _Paper()
    paper.line(Text(page.title, style="bold"))
    paper.paragraph(page.headline, 0)
    for number, finding in enumerate(page.findings, 1):
        paper.line(Text())
        _finding(paper, number, finding, next(line for line in page.rules if line.rule == finding.rule), verbose)
    if page.combined is not None and page.combined.findings > 1:
        whole = page.combined
        paper.line(Text())
        price = f"save {time(whole.expected_ns)} a step ({percent(whole.percent)})"
        paper.line(Text.assemble("All together ", (price, _PRICE), f"  {_between(whole)}"))
        paper.paragraph(page.combined_text, _INDENT)
    if verbose:
        _print_forecasts(page.mixed_precision)
        _silent(paper, page.rules)
    else:
        paper.line(Text())
        paper.paragraph(_counts(page.rules), 0, "dim")


class _Paper:
    """The output: wrapped to a terminal's width, never in a pipe, so that it can be searched."""

    def __init__(self) -> None:
        colours = None if os.environ.get("NO_COLOR") else "auto"
        self._console = console(None, color_system=colours)
        self._width = min(self._console.width, _WIDTH) if self._console.is_terminal else None

    def line(self, text: Text) -> None:
        """One line, whatever the names in it hold."""
        parts = ((visible(part.text), part.style or "") for part in text.render(self._console))
        if is_markdown():
            say(text.plain)
        else:
            self._console.print(Text.assemble(*parts), soft_wrap=True)

    def code(self, code: str, indent: int) -> None:
        """Lines of Python."""
        if is_markdown():
            say_code(code)
            return
        for line in code.rstrip().splitlines():
            self.line(Text(" " * indent) + Text(line, style="cyan"))

    def paragraph(self, text: str, indent: int, style: str = "", label: str = "") -> None:
        """``label`` replaces the indent of the first line."""
        lines = [text]
        if self._width is not None:
            # A number and its percent sign stay together: textwrap breaks only at ordinary spaces.
            kept = visible(text).replace(" %", "\u00a0%")
            lines = textwrap.wrap(kept, max(20, self._width - indent), break_on_hyphens=False)
        for number, line in enumerate(lines):
            margin = "" if number else label
            self.line(Text.assemble((margin.ljust(indent), "dim"), (line.replace("\u00a0", " "), style)))


def _finding(paper: _Paper, number: int, finding: FindingItem, rule: RuleLine, verbose: bool) -> None:
    saving = finding.saving
    inner = _INDENT + _LABEL
    head = Text.assemble((f"{number}".ljust(_INDENT), "bold"))
    if saving is None:
        head.append("saving unknown", style="bold")
    else:
        head.append(f"saves {time(saving.expected_ns)} a step ({percent(saving.percent)})", style=_PRICE)
        head.append(f"  {_between(saving)}")
        if saving.low_joules is not None and saving.high_joules is not None:
            head.append(f", {interval(saving.low_joules, saving.high_joules, energy)}")
    head.append("  [").append(finding.severity, style=_STYLES[finding.severity])
    head.append(f", confidence {finding.confidence}]  ").append(finding.rule, style="dim")
    paper.line(head)
    paper.paragraph(finding.title, _INDENT, "bold")

    def part(label: str, text: str) -> None:
        if text:
            paper.paragraph(text, inner, label=" " * _INDENT + label)

    part("seen", finding.seen)
    if verbose:
        for reading in finding.readings:
            limit = "" if reading.threshold is None else f" (threshold {_value(reading, reading.threshold)})"
            paper.paragraph(f"- {reading.label}: {_value(reading, reading.value)}{limit}", inner)
        for row in finding.evidence:
            share = "" if row.percent is None else f", {percent(row.percent)}"
            amount = f": {time(row.value_ns)} a step" if row.value_ns is not None else ""
            paper.paragraph(f"- {row.label}{amount}{share}", inner)
    part("change", finding.change)
    paper.code(finding.code, inner + 2)
    if verbose:
        part("saving", saving.derivation if saving else finding.saving_unknown_because)
        part("confirm", finding.confirm)
        part("leave", rule.ignore_when)
        for reference in finding.references:
            part("read", f"{reference.title}: {reference.url}")
        part("peers", "; ".join(f"{peer.tool}: {peer.name}" for peer in finding.peers))
    elif saving is None:
        part("saving", finding.saving_unknown_because)


def _between(saving: SavingItem | CombinedSaving) -> str:
    return interval(saving.low_ns, saving.high_ns, lambda ns: time(round(ns)) if ns else "0")


def _value(reading: Reading, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if reading.unit == "ns":
        return time(value)
    if reading.unit == "percent":
        return percent(value)
    if reading.unit == "bytes":
        return byte_size(value)
    return f"{value:.2f}" if reading.unit == "ratio" else f"{value:,g}"


def _counts(rules: list[RuleLine]) -> str:
    """How many rules found nothing, and how to list them."""
    parts = []
    for outcome, (one, many) in {
        "silent": ("found nothing", "found nothing"),
        "not_applicable": ("does not apply", "do not apply"),
        "failed": ("failed", "failed"),
    }.items():
        count = sum(line.outcome == outcome for line in rules)
        if count:
            parts.append(f"{count} {one if count == 1 else many}")
    said = f"Of {len(rules)} rules, {', '.join(parts)}. " if parts else ""
    return f"{said}--verbose shows them, and evidence, derivation and confirmation of each finding."


def _silent(paper: _Paper, rules: list[RuleLine]) -> None:
    quiet = [line for line in rules if line.outcome != "fired"]
    if quiet:
        paper.line(Text())
        paper.line(Text("Rules that found nothing:", style="bold"))
    for topic, lines in itertools.groupby(quiet, key=lambda line: line.topic):
        paper.line(Text(topic, style="dim"))
        for line in lines:
            paper.paragraph(f"{line.rule} ({_OUTCOMES[line.outcome]}): {line.why}", 4, label="  -")


def _print_forecasts(found: MixedPrecision) -> None:
    """A line for each precision; one sentence if there is no forecast."""
    refusals = {choice.refusal for choice in found.choices}
    if len(refusals) == 1 and "" not in refusals:
        say("", f"No forecast of mixed precision: {refusals.pop()}")
        return
    say("", "What mixed precision would gain, per step without the profiler; tb-dlprof predict shows the ops:")
    numbers = ((name, "right") for name in ("now", "forecast", "between", "times as fast"))
    print_table((("precision", "left"), *numbers, ("", "left")), [_forecast(choice) for choice in found.choices])


def _forecast(choice: MixedPrecisionChoice) -> tuple[str, ...]:
    found = choice.forecast
    if found is None:
        return (choice.label, "", "", "", "", choice.refusal)
    return (
        choice.label,
        f"{found.unprofiled_step_ms:.2f} ms",
        f"{found.predicted_step_ms:.2f} ms",
        f"{interval(found.low_ms, found.high_ms, '{:.2f}'.format)} ms",
        f"{found.speedup:.2f}",
        found.limit_text,
    )
