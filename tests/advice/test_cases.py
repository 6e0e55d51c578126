"""Runs the cases of all rules, which lie in `advice.cases`: one module per rule."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest
from advice import cases
from advice.case import ANY, Case
from advice.helpers import finding_of, readings_of, status_of

from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.profile_view import ProfileView

ALL = [
    pytest.param(module.name, case, id=f"{module.name}: {case.name}")
    for module in pkgutil.iter_modules(cases.__path__)
    for case in importlib.import_module(f"advice.cases.{module.name}").CASES
]


@pytest.mark.parametrize(("rule", "case"), ALL)
def test_a_rule_answers_as_its_case_says(new_trace, training, rule: str, case: Case) -> None:
    answers(new_trace() if case.training is None else training(**case.training), rule, case)


def test_each_rule_has_cases_in_a_module_of_its_name() -> None:
    assert {module.name for module in pkgutil.iter_modules(cases.__path__)} == {one.rule.id for one in all_rules()}


def answers(trace: Any, rule: str, case: Case) -> None:
    """Checks one case on an empty trace."""
    view, ranks = _view(trace, case)
    status = status_of(view, rule, ranks)
    assert (status.outcome, case.seen in status.why) == (case.outcome, True), status.why
    if case.outcome != "fired":
        return
    finding = finding_of(view, rule, ranks)
    assert readings_of(finding) | dict(case.readings) == readings_of(finding)
    said = "\n".join(
        (finding.title, finding.seen, finding.change, finding.code, *(row.label for row in finding.evidence))
    )
    assert [text for text in case.says if text not in said] == [], said
    assert case.severity in ("", finding.severity)
    saving = finding.saving and (finding.saving.low_ns, finding.saving.expected_ns, finding.saving.high_ns)
    if saving is not None:
        assert 0 <= saving[0] <= saving[1] <= saving[2] or finding.rule == "amp_not_used"
    if case.saving_ns is not ANY:
        assert saving == case.saving_ns


def _view(trace: Any, case: Case) -> tuple[ProfileView, tuple[ProfileView, ...]]:
    """The view that a case is about, and those of all ranks where there are several."""
    own = case.trace(trace)
    if own is None:
        options = {} if case.system is None else {"system": case.system}
        return trace.view(facts=case.facts, **options), ()
    return (own, ()) if isinstance(own, ProfileView) else (own[0], tuple(own))
