"""Every rule on recordings of a training with its fault and of the same training fixed, and the rules' pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted import faults
from planted.common import PLANTED
from planted.held import LARGER, NOT_RECORDED, OF_GPUS, OF_JOBS, OF_SETTINGS, RECORDED, held, planted_rules
from planted.studies import advice_rows
from support.marks import short_of

from tb_dlprof_plugin.advice import rules as rule_folders
from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.advice.rule_text import thresholds_of
from tb_dlprof_plugin.advice.topics import OTHER, TOPICS, topic_of

RULES = planted_rules()
SHORT = RULES[::12]
"""Rules whose trainings `make landing` reads; cases of all rules are in `tests/advice/cases`."""
KEPT_PERCENT = 80
"""Of the stated savings this share at least is realised within its interval."""


@pytest.mark.slow
@pytest.mark.parametrize("rule", short_of(RULES, SHORT))
def test_a_rule_finds_its_fault(rule: str) -> None:
    status = held(rule).fault.status(rule)
    assert status is not None, f"no rule looks for what is planted in {rule}"
    assert status.outcome == "fired", status.why


@pytest.mark.slow
@pytest.mark.parametrize("rule", short_of(RULES, SHORT))
def test_a_rule_is_silent_once_its_fault_is_fixed(rule: str) -> None:
    status = held(rule).fixed.status(rule)
    assert status is not None
    assert status.outcome in ("silent", "not_applicable"), status.why


@pytest.mark.long
def test_what_is_saved_lies_in_the_stated_interval() -> None:
    judged = [held(rule) for rule in RULES if held(rule).within is not None]
    missed = {one.rule: (one.finding.saving, one.realised_ns) for one in judged if one.finding and not one.within}
    assert len(judged) > 10
    assert 100 * (1 - len(missed) / len(judged)) >= KEPT_PERCENT, missed


@pytest.mark.long
def test_the_same_holds_for_sizes_that_the_rules_were_not_written_with() -> None:
    larger = [held(rule, LARGER) for rule in planted_rules(LARGER)]
    assert len(larger) > 20
    assert [one.rule for one in larger if not one.silent] == []
    # Where a fault costs little at these sizes its rule looks and stays silent.
    quiet = {one.rule: one.fault.status(one.rule) for one in larger if not one.fires}
    assert set(quiet) <= {"for_loop_indexing", "launch_bound"}
    assert all(status is not None and status.outcome == "silent" for status in quiet.values()), quiet
    judged = [one for one in larger if one.within is not None]
    assert 100 * sum(bool(one.within) for one in judged) >= KEPT_PERCENT * len(judged)


@pytest.mark.long
def test_no_rule_fails_on_a_planted_training() -> None:
    failed = {
        (rule, status.rule): status.why
        for rule in RULES
        for run in (held(rule).fault, held(rule).fixed)
        for status in run.advice.rules
        if status.outcome == "failed"
    }
    assert failed == {}


def test_every_rule_has_a_planted_training_and_its_recording_or_cases_and_a_topic() -> None:
    rules = {one.rule.id for one in all_rules()}
    others = {*OF_JOBS, *OF_SETTINGS, *OF_GPUS, *NOT_RECORDED}
    cases = {path.stem for path in (Path(__file__).parents[1] / "advice" / "cases").glob("*.py")}
    assert others <= rules - set(PLANTED)
    assert rules - set(PLANTED) - others <= cases, f"no training in {faults.__name__}, and no cases"
    assert set(PLANTED) <= set(RULES), f"not recorded in {RECORDED}"
    assert {rule for rule in rules if topic_of(rule) == OTHER} == set()
    folders = {path.name for path in Path(rule_folders.__file__).parent.iterdir() if (path / "__init__.py").exists()}
    assert folders == set(TOPICS)


@pytest.mark.parametrize("rule", OF_JOBS)
def test_a_rule_about_all_ranks_finds_the_fault_of_one(rule: str) -> None:
    job = held(OF_JOBS[rule])
    fault, fixed = job.fault.status(rule), job.fixed.status(rule)
    assert fault is not None
    assert fault.outcome == "fired", fault.why
    assert fixed is not None
    assert fixed.outcome == "silent", fixed.why


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule", short_of([*OF_SETTINGS, *OF_GPUS], {"fsdp_reshard", "gradient_buckets", "gpu_too_large"})
)
def test_a_rule_finds_its_fault_in_another_recording_and_is_silent_without_it(rule: str) -> None:
    job = held(rule)
    assert job.fires, job.fault.status(rule)
    assert job.silent, job.fixed.status(rule)


def test_every_threshold_that_a_rule_names_says_what_it_is() -> None:
    for one in all_rules():
        missing = [name for name, (_, source) in thresholds_of(one.rule).items() if len(source) < 20]
        assert missing == [], one.rule.id


@pytest.mark.long
def test_the_rules_advise_amp_for_the_models_that_it_made_faster() -> None:
    rows, _ = advice_rows()
    for model, question, _, ours, measured, _ in rows:
        if question == "AMP":
            before, after = (float(word) for word in measured.removeprefix("step ").split(" ms")[0].split(" to "))
            assert ours.startswith("use it") == (after < before), model
