"""The Advice page: the findings, their combined saving, and what the other rules checked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

import msgspec

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.advice.finding import CombinedSaving, FindingItem, RuleOutcome, RuleStatus
from tb_dlprof_plugin.advice.topics import OTHER, sort_key, topic_of
from tb_dlprof_plugin.model.formatting import duration
from tb_dlprof_plugin.model.request import Option, names
from tb_dlprof_plugin.pages.common import SelectedRange, StepFigures, run_title, selected_range, step_figures
from tb_dlprof_plugin.pages.forecast import MixedPrecision, mixed_precision
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.store.run_ref import RunRef


class RuleLine(msgspec.Struct, frozen=True):
    """A rule, its outcome and the reason; ``looks_for`` and ``ignore_when`` are its fixed texts."""

    rule: str
    title: str
    topic: str
    outcome: RuleOutcome
    why: str
    looks_for: str
    ignore_when: str


class AdvicePage(msgspec.Struct, frozen=True):
    """``step`` is the step without the profiler, which savings refer to. ``findings`` by falling expected saving;
    ``mixed_precision`` are the forecasts for this run, all iterations.

    ``combined`` is the combined saving of the open findings, ``combined_text`` explains it. ``rules`` are
    sorted by topic.
    """

    ref: RunRef
    title: str
    headline: str
    range: SelectedRange
    step: StepFigures
    findings: list[FindingItem]
    combined: CombinedSaving | None
    combined_text: str
    rules: list[RuleLine]
    mixed_precision: MixedPrecision


def advice_page(
    view: ProfileView,
    ref: RunRef,
    selection: Selection,
    set_aside: Annotated[
        Collection[str], Option("Rules that the headline and the combined saving leave out.", read=names)
    ] = (),
) -> AdvicePage:
    """The Advice page over the selected iterations."""
    advice = advise(view, selection, set_aside=set_aside)
    findings, combined = advice.findings, advice.combined
    left = [finding for finding in findings if finding.rule not in set_aside]
    return AdvicePage(
        ref=ref,
        title=run_title(view),
        headline=_headline(left, combined, len(findings) - len(left)),
        range=selected_range(view, selection),
        step=step_figures(step_estimate(view, selection)),
        findings=findings,
        combined=combined,
        combined_text=_combined_text(combined),
        rules=rule_lines(advice.rules),
        mixed_precision=mixed_precision(view, ref),
    )


def rule_lines(statuses: list[RuleStatus]) -> list[RuleLine]:
    """The outcome of each rule, by topic."""
    texts = {one.rule.id: one.rule for one in all_rules()}
    lines = []
    for status in sorted(statuses, key=lambda status: sort_key(status.rule)):
        rule = texts.get(status.rule)
        lines.append(
            RuleLine(
                rule=status.rule,
                title=status.title,
                topic=topic_of(status.rule) if rule else OTHER,
                outcome=status.outcome,
                why=status.why,
                looks_for=rule.looks_for if rule else "",
                ignore_when=rule.ignore_when if rule else "",
            )
        )
    return lines


def _headline(findings: list[FindingItem], combined: CombinedSaving | None, set_aside: int) -> str:
    aside = f" {set_aside} more {'is' if set_aside == 1 else 'are'} set aside." if set_aside else ""
    if not findings:
        return f"No finding is left.{aside}" if aside else "No rule found anything to change in this run."
    best = findings[0]
    count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    if best.saving is None:
        return f"{count}{':' if len(findings) == 1 else '; first:'} {best.title}.{aside}"
    if combined is not None and combined.findings > 1:
        return (
            f"{count}; together they should save about {duration(combined.expected_ns)} "
            f"({combined.percent:.0f} %) of each step.{aside}"
        )
    return (
        f"{count}; {'it' if len(findings) == 1 else 'the first'} should save about "
        f"{duration(best.saving.expected_ns)} ({best.saving.percent:.0f} %) of each step: {best.title}.{aside}"
    )


def _combined_text(combined: CombinedSaving | None) -> str:
    """Explanation of the combined saving; "" with fewer than two savings."""
    if combined is None or combined.findings < 2:
        return ""
    whole, added_up = duration(combined.expected_ns), duration(combined.added_up_ns)
    if whole == added_up:
        return "They concern different parts of the step, so they add up."
    text = f"One by one they save {added_up}, together {whole}: "
    if combined.expected_ns > combined.added_up_ns:
        return f"{text}each removes what hides part of another's saving."
    return (
        f"{text}only one of several alternatives can be made. Two changes to the same part of the step cannot both "
        "save it."
    )
