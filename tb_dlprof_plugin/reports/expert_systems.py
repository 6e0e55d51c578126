"""DLProf's Expert Systems Report (User Guide 1.8, section 10.9): the problems found, and their remedies.

The first two columns are DLProf's. Added are what a finding should save per step (ns, and in percent of the step), its
severity and confidence, what was seen and what a second run should show.
"""

from __future__ import annotations

from tb_dlprof_plugin.advice.finding import FindingItem
from tb_dlprof_plugin.pages.advice import advice_page
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.table import Cell, Report
from tb_dlprof_plugin.store.run_ref import RunRef

COLUMNS = (
    "Problem", "Recommendation", "Saving", "Saving Low", "Saving High", "Saving (%)", "Severity", "Confidence", "Seen",
    "Code", "Confirm", "Rule",
)  # fmt: skip
KEYS = {"Saving": "saving_ns", "Saving Low": "saving_low_ns", "Saving High": "saving_high_ns"}


def expert_systems_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """One row per finding, in the order of the Advice page."""
    return Report(COLUMNS, [_cells(finding) for finding in advice_page(view, ref, selection).findings], KEYS)


def _cells(finding: FindingItem) -> tuple[Cell, ...]:
    saving = finding.saving
    amounts = (saving.expected_ns, saving.low_ns, saving.high_ns, saving.percent) if saving else (None,) * 4
    return (
        finding.title, finding.change, *amounts, finding.severity, finding.confidence, finding.seen, finding.code,
        finding.confirm, finding.rule,
    )  # fmt: skip
