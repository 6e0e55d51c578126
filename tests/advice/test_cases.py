"""Runs the cases of all rules, which lie in `advice.cases`: one module per rule."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest
from advice import cases
from advice.case import ANY, Case
from advice.helpers import readings_of

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.advice.finding import FindingItem, Silent
from tb_dlprof_plugin.advice.needs import Need
from tb_dlprof_plugin.advice.rule_context import RuleContext
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


def test_without_a_gpu_no_rule_about_one_applies(cpu_view: ProfileView) -> None:
    outcomes = {status.rule: status.outcome for status in advise(cpu_view, cpu_view.selection()).rules}
    about_gpus = [one.rule.id for one in all_rules() if {Need.GPU, Need.TENSOR_CORES} & {*one.rule.needs}]
    assert len(about_gpus) > 40
    assert {outcomes[rule] for rule in about_gpus} == {"not_applicable"}


def answers(trace: Any, rule: str, case: Case) -> None:
    """Checks one case on an empty trace."""
    outcome, why, finding = _answer(trace, rule, case)
    assert (outcome, case.seen in why) == (case.outcome, True), why
    if finding is None:
        return
    assert readings_of(finding) | dict(case.readings) == readings_of(finding)
    said = "\n".join(
        (finding.title, finding.seen, finding.change, finding.code, *(row.label for row in finding.evidence))
    )
    assert [text for text in case.says if text not in said] == [], said
    assert case.severity in ("", finding.severity)
    saving = finding.saving and (finding.saving.low_ns, finding.saving.expected_ns, finding.saving.high_ns)
    if saving is not None:
        assert 0 <= saving[0] <= saving[1] <= saving[2] or finding.rule in (
            "amp_not_used",
            "compile_no_effect",
            "graph_break",
        )
    if case.saving_ns is not ANY:
        assert saving == case.saving_ns


def _answer(trace: Any, rule: str, case: Case) -> tuple[str, str, FindingItem | None]:
    """The rule's outcome, what it says, and its finding."""
    own = case.trace(trace)
    if isinstance(own, RuleContext):
        (implemented,) = [one for one in all_rules() if one.rule.id == rule]
        answer = implemented.check(own)
        if isinstance(answer, Silent):
            return "silent" if answer.applicable else "not_applicable", answer.why, None
        return "fired", answer.item.seen, answer.item
    if own is None:
        own = trace.view(facts=case.facts, **({} if case.system is None else {"system": case.system}))
    view, ranks = (own, ()) if isinstance(own, ProfileView) else (own[0], own)
    advice = advise(view, view.selection(), ranks)
    (status,) = [status for status in advice.rules if status.rule == rule]
    return status.outcome, status.why, next((finding for finding in advice.findings if finding.rule == rule), None)
