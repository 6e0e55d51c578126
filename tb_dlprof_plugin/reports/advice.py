"""The advice as data for programs: one flat entry per finding, times in ms."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.advice.finding import Confidence, EvidenceRow, FindingItem, Peer, Reading, Reference, Severity
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.advice import AdvicePage, RuleLine
from tb_dlprof_plugin.pages.common import SelectedRange, StepFigures
from tb_dlprof_plugin.store.run_ref import RunRef

_MS = 1e6


class FindingEntry(msgspec.Struct, frozen=True):
    """One finding. Savings are ms per step, null where unknown; ``saving_percent`` is of the step.

    ``step_ms`` is the step without the profiler, which no saving exceeds.
    """

    rule: str
    severity: Severity
    confidence: Confidence
    title: str
    saving_ms: float | None
    saving_low_ms: float | None
    saving_high_ms: float | None
    saving_percent: float | None
    step_ms: float
    derivation: str
    saving_unknown_because: str
    seen: str
    readings: list[Reading]
    evidence: list[EvidenceRow]
    change: str
    code: str
    confirm: str
    references: list[Reference]
    peers: list[Peer]


class CombinedEntry(msgspec.Struct, frozen=True):
    """The combined saving of all findings (ms per step); ``added_up_ms`` is their plain sum."""

    saving_ms: float
    saving_low_ms: float
    saving_high_ms: float
    saving_percent: float
    added_up_ms: float
    findings: int
    text: str


class AdviceReport(msgspec.Struct, frozen=True):
    """``findings`` by falling expected saving, ``rules`` with an entry for each rule, by topic."""

    ref: RunRef
    title: str
    headline: str
    range: SelectedRange
    step: StepFigures
    findings: list[FindingEntry]
    combined: CombinedEntry | None
    rules: list[RuleLine]


def advice_report(page: AdvicePage) -> AdviceReport:
    """The report of a page."""
    whole = page.combined
    return struct_from(
        AdviceReport,
        page,
        findings=[_entry(finding, page.step.ms) for finding in page.findings],
        combined=None
        if whole is None
        else CombinedEntry(
            saving_ms=whole.expected_ns / _MS,
            saving_low_ms=whole.low_ns / _MS,
            saving_high_ms=whole.high_ns / _MS,
            saving_percent=whole.percent,
            added_up_ms=whole.added_up_ns / _MS,
            findings=whole.findings,
            text=page.combined_text,
        ),
    )


def _entry(finding: FindingItem, step_ms: float) -> FindingEntry:
    saving = finding.saving
    return struct_from(
        FindingEntry,
        finding,
        saving_ms=saving.expected_ns / _MS if saving else None,
        saving_low_ms=saving.low_ns / _MS if saving else None,
        saving_high_ms=saving.high_ns / _MS if saving else None,
        saving_percent=saving.percent if saving else None,
        step_ms=step_ms,
        derivation=saving.derivation if saving else "",
    )
