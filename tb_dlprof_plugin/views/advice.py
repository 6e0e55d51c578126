"""The Advice page: the findings, and what the silent rules looked at."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.finding import FindingItem, RuleStatus
from tb_dlprof_plugin.measures import Frame, Selection
from tb_dlprof_plugin.views.common import RunRef, SelectedRange, selected_range
from tb_dlprof_plugin.views.forecast import MixedPrecision, mixed_precision
from tb_dlprof_plugin.views.text import duration


class AdvicePage(msgspec.Struct, frozen=True):
    """``findings`` by falling expected saving; ``mixed_precision`` are the forecasts for this run, all iterations."""

    ref: RunRef
    headline: str
    range: SelectedRange
    findings: list[FindingItem]
    rules: list[RuleStatus]
    mixed_precision: MixedPrecision


def advice_page(frame: Frame, ref: RunRef, selection: Selection) -> AdvicePage:
    """The Advice page over the selected iterations."""
    advice = advise(frame, selection)
    return AdvicePage(
        ref=ref,
        headline=_headline(advice.findings),
        range=selected_range(frame, selection),
        findings=advice.findings,
        rules=advice.rules,
        mixed_precision=mixed_precision(frame, ref),
    )


def _headline(findings: list[FindingItem]) -> str:
    if not findings:
        return "No rule found anything to change in this run."
    best = findings[0]
    one = len(findings) == 1
    count = "1 finding" if one else f"{len(findings)} findings"
    if best.saving is None:
        return f"1 finding: {best.title}." if one else f"{count}; first: {best.title}."
    return (
        f"{count}; {'it' if one else 'the first'} should save about {duration(best.saving.expected_ns)} "
        f"({best.saving.percent:.0f} %) of each step: {best.title}."
    )
