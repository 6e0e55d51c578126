"""Runs the cases of all rules, which lie in `advice.cases`: one module per rule."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from advice import cases
from advice.case import Case
from advice.helpers import finding_of, readings_of, status_of

from tb_dlprof_plugin.advice.engine import all_rules

ALL = [
    pytest.param(module.name, case, id=f"{module.name}: {case.name}")
    for module in pkgutil.iter_modules(cases.__path__)
    for case in importlib.import_module(f"advice.cases.{module.name}").CASES
]


@pytest.mark.parametrize(("rule", "case"), ALL)
def test_a_rule_answers_as_its_case_says(new_trace, rule: str, case: Case) -> None:
    answers(new_trace(), rule, case)


def test_each_module_of_cases_is_named_like_its_rule() -> None:
    assert {module.name for module in pkgutil.iter_modules(cases.__path__)} <= {one.rule.id for one in all_rules()}


def answers(trace, rule: str, case: Case) -> None:
    """Checks one case on an empty trace."""
    case.trace(trace)
    view = trace.view(facts=case.facts)
    status = status_of(view, rule)
    assert (status.outcome, case.seen in status.why) == (case.outcome, True), status.why
    if case.outcome != "fired":
        return
    finding = finding_of(view, rule)
    assert readings_of(finding) | case.readings == readings_of(finding)
    if case.saving_ns is not None:
        assert finding.saving is not None
        assert (finding.saving.low_ns, finding.saving.expected_ns, finding.saving.high_ns) == case.saving_ns
