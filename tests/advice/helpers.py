"""What the rules say of a view, for the tests of rules."""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.finding import FindingItem, RuleStatus
from tb_dlprof_plugin.profile_view import ProfileView


def status_of(view: ProfileView, rule: str, ranks: Sequence[ProfileView] = ()) -> RuleStatus:
    """Whether the rule found something, and why not. It must not have failed."""
    (found,) = [status for status in advise(view, view.selection(), ranks).rules if status.rule == rule]
    assert found.outcome != "failed", found.why
    return found


def finding_of(view: ProfileView, rule: str, ranks: Sequence[ProfileView] = ()) -> FindingItem:
    """The rule's one finding."""
    (found,) = [finding for finding in advise(view, view.selection(), ranks).findings if finding.rule == rule]
    return found


def readings_of(finding: FindingItem) -> dict[str, float | None]:
    """The numbers of a finding by their labels."""
    return {reading.label: reading.value for reading in finding.readings}
