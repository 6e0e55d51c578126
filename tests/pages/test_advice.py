"""The Advice page: its headline, what the findings save together, and the rules by topic."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from support.recorded_runs import DEMO, recorded_view

from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.advice.finding import CombinedSaving, FindingItem, RuleStatus, SavingItem
from tb_dlprof_plugin.advice.topics import OTHER, TOPICS
from tb_dlprof_plugin.pages.advice import _combined_text, _headline, advice_page, rule_lines
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef


def test_half_precision_and_tf32_are_choices_of_one_change(ref: RunRef) -> None:
    view = recorded_view(DEMO / "resnet50" / "fp32")
    findings = advice_page(view, ref, view.selection()).findings
    assert {(one.rule, one.alternatives, one.choice) for one in findings} >= {
        ("amp_not_used", "Change the precision", "BF16"),
        ("tf32_off", "Change the precision", "TF32"),
    }
    assert all(one.alternatives == one.choice == "" for one in findings if one.rule == "cudnn_benchmark_off")


@pytest.fixture(scope="module")
def finding(gpu_view: ProfileView, ref: RunRef) -> FindingItem:
    return advice_page(gpu_view, ref, gpu_view.selection()).findings[0]


def _saving(finding: FindingItem, title: str, milliseconds: float | None) -> FindingItem:
    ns = None if milliseconds is None else int(1e6 * milliseconds)
    saving = None if ns is None else SavingItem(0, ns, 2 * ns, 10 * (milliseconds or 0), "")
    return msgspec.structs.replace(finding, title=title, saving=saving)


def test_the_headline_says_how_much_is_to_be_had_and_where_most_of_it_is(finding: FindingItem) -> None:
    one, two = _saving(finding, "Turn it on", 3), _saving(finding, "Turn it off", None)
    both = CombinedSaving(0, 3_500_000, 7_000_000, 35.0, 2, 5_000_000)
    alone = CombinedSaving(0, 3_000_000, 6_000_000, 30.0, 1, 3_000_000)
    assert _headline([], None, 0) == "No rule found anything to change in this run."
    assert _headline([], None, 2) == "No finding is left. 2 more are set aside."
    assert _headline([two], None, 0) == "1 finding: Turn it off."
    assert _headline([one, two], alone, 0) == (
        "2 findings; the first should save about 3.00 ms (30 %) of each step: Turn it on."
    )
    assert _headline([one, one], both, 1) == (
        "2 findings; together they should save about 3.50 ms (35 %) of each step. 1 more is set aside."
    )


def test_why_the_whole_is_less_than_the_sum_is_said_only_where_it_is() -> None:
    assert _combined_text(None) == ""
    assert _combined_text(CombinedSaving(0, 3, 6, 30.0, 1, 3)) == ""
    assert "so they add up" in _combined_text(CombinedSaving(0, 5_000_000, 6_000_000, 30.0, 2, 5_000_000))
    assert "One by one they save 8.00 ms, together 5.00 ms: " in _combined_text(
        CombinedSaving(0, 5_000_000, 6_000_000, 30.0, 2, 8_000_000)
    )
    more = _combined_text(CombinedSaving(0, 18_400_000, 20_000_000, 30.0, 2, 16_500_000))
    assert more == "One by one they save 16.5 ms, together 18.4 ms: each removes what hides part of another's saving."


def test_what_is_set_aside_is_left_out_of_the_combined_saving_alone(gpu_view: ProfileView, ref: RunRef) -> None:
    whole = advice_page(gpu_view, ref, gpu_view.selection())
    with_saving = [f.rule for f in whole.findings if f.saving]
    assert whole.combined is not None
    assert whole.combined.findings == len(with_saving) > 1
    without = advice_page(gpu_view, ref, gpu_view.selection(), {with_saving[0]})
    assert without.combined is not None
    assert without.combined.findings == len(with_saving) - 1
    assert (without.findings, without.rules) == (whole.findings, whole.rules)
    assert advice_page(gpu_view, ref, gpu_view.selection(), set(with_saving)).combined is None


def test_every_rule_is_listed_once_and_topic_by_topic(gpu_view: ProfileView, ref: RunRef) -> None:
    lines = advice_page(gpu_view, ref, gpu_view.selection()).rules
    assert sorted(line.rule for line in lines) == sorted(one.rule.id for one in all_rules())
    topics = [topic for topic, _ in itertools.groupby(line.topic for line in lines)]
    assert len(topics) == len(set(topics))
    assert topics == [topic for topic in (*TOPICS.values(), OTHER) if topic in topics]
    assert all(line.looks_for and line.ignore_when for line in lines)


def test_a_rule_that_no_topic_names_comes_last() -> None:
    statuses = [RuleStatus("unheard_of", "New", "silent", "?"), RuleStatus("tf32_off", "TF32", "silent", "?")]
    assert [(line.rule, line.topic) for line in rule_lines(statuses)] == [
        ("tf32_off", "Precision and Tensor Cores"),
        ("unheard_of", OTHER),
    ]
