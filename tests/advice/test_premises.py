"""What no finding, headline, forecast or plan may say of a recording that lacks the premise for it."""

from __future__ import annotations

import dataclasses

import pytest
from advice.recorded import opened
from support.recorded_runs import DEMO, recorded_view

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.metrics.needs import Need, missing
from tb_dlprof_plugin.metrics.outlier_steps import steady
from tb_dlprof_plugin.metrics.trust import trust
from tb_dlprof_plugin.model.plan_request import PlanRequest
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.pages.advice import advice_page
from tb_dlprof_plugin.pages.compare import CompareInput, compare_page
from tb_dlprof_plugin.pages.launches import launches_page
from tb_dlprof_plugin.pages.overview import overview
from tb_dlprof_plugin.pages.plan_rows import step_or_reason
from tb_dlprof_plugin.planning import ForecastError, forecast
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.store.run_ref import RunRef

REF = RunRef("run", "", 0, 0)
SOUND = ["lenet/fp32", "resnet50/amp-bf16", "vgg16/tf32", "mlp/fp32"]
"""Recorded trainings with findings of high severity once their steps are marked, and without."""


def without_steps(view: ProfileView) -> ProfileView:
    """The same recording where nothing marks its steps, and no step was timed."""
    whole = view.profile.iterations
    one = dataclasses.replace(
        whole,
        number=whole.number[:1],
        start_ns=whole.start_ns[:1],
        stop_ns=whole.stop_ns[-1:],
        host_start_ns=whole.host_start_ns[:1],
        host_stop_ns=whole.host_stop_ns[-1:],
        category_ns=whole.category_ns.sum(axis=0, keepdims=True),
        found_by="none",
    )
    return ProfileView(dataclasses.replace(view.profile, iterations=one))


def with_pause(trace, step: int, pause_us: float):
    """A training of `training` in which the DataLoader needs so much longer for the batch of one step."""
    at = 1000 * step + 100
    for event in trace.events:
        if event["name"].startswith(("enumerate(DataLoader)", "ProfilerStep#")) and event["ts"] == 1000 * step:
            event["dur"] += pause_us
        elif event["ts"] >= at:
            event["ts"] += pause_us
    return trace


@pytest.mark.parametrize("name", SOUND)
def test_no_saving_and_nothing_high_is_said_without_steps(name: str) -> None:
    view = without_steps(recorded_view(DEMO / name))
    advice = advise(view, view.selection())
    assert advice.combined is None
    for finding in advice.findings:
        assert finding.saving is None
        assert finding.saving_unknown_because
        assert "high" not in (finding.severity, finding.confidence)
        assert "each step" not in finding.title + finding.seen
    assert "no_iterations" in {finding.rule for finding in advice.findings}


def test_pages_speak_of_the_recording_where_no_steps_are_known() -> None:
    view = without_steps(recorded_view(DEMO / "resnet50/amp-bf16"))
    page = overview(view, REF, view.selection())
    assert "of the recording (" in page.headline
    assert "no steps marked" in page.headline
    assert "each" not in page.headline
    assert page.summary.step_source == "whole"
    assert page.summary.recorder_ns == 0
    assert page.range.found_by == "none"
    assert " recording" in launches_page(view, REF, view.selection()).headline
    unknown: dict[str, str] = {}
    assert step_or_reason(view, PlanRequest(), unknown) is None
    assert unknown["step_ms"] == missing(view, view.selection(), Need.ITERATIONS)
    with pytest.raises(ForecastError, match="no iterations were found"):
        forecast(without_steps(recorded_view(DEMO / "resnet50/fp32")), "bf16")


def test_no_rank_delays_the_others_where_no_steps_are_marked() -> None:
    ranks = [without_steps(view) for view in opened("ranks/recorded/ddp_slow_host").ranks]
    job = job_of([facts_of_profile(view) for view in ranks])
    assert "ms recording" in job.sentence
    assert job.sentence.startswith("Which rank delays the others cannot be said. No steps are marked")
    assert (job.delays, job.what_if) == ([], [])


def test_recordings_without_steps_are_not_said_to_be_faster() -> None:
    base, candidate = (recorded_view(DEMO / f"resnet50/{name}") for name in ("fp32", "amp-bf16"))
    for sides in ((without_steps(base), candidate), (base, without_steps(candidate))):
        a, b = (CompareInput(view, REF, view.selection()) for view in sides)
        page = compare_page(a, b)
        assert page.headline.startswith("Cannot tell which step is shorter: in the ")
        assert page.change == "unknown"
        assert {metric.gain for metric in page.metrics} == {None}


def test_one_slow_iteration_carries_no_claim(training) -> None:
    view = with_pause(training(steps=10), 4, 100_000).view()
    whole = view.selection()
    used = steady(view, whole)
    assert used == Selection(5, 9)
    page = overview(view, REF, whole)
    plain = overview(training(steps=5).view(), REF, Selection(0, 4))
    assert page.summary.recorded_iteration_ns == pytest.approx(plain.summary.recorded_iteration_ns, rel=0.02)
    share = {part.key: part.percent for part in page.parts}
    assert share["dataloader"] == pytest.approx({part.key: part.percent for part in plain.parts}["dataloader"], abs=2)
    findings = advice_page(view, REF, whole).findings
    loading = next((one for one in findings if one.rule == "dataloader_bound"), None)
    assert loading is None or loading.saving is None or loading.saving.percent < 20
    # The recording's quirk is said, by the one who looks for it.
    assert "bad_iteration_range" in {finding.rule for finding in findings}
    (reason,) = (one for one in trust(view, whole).reasons if one.code == "stray_iterations")
    assert reason.severity == "fair"
    assert "not part of what is said of a step" in reason.sentence


def test_iterations_that_are_slow_as_often_as_not_are_the_training(training) -> None:
    trace = training(steps=9)
    for step in (6, 3):
        with_pause(trace, step, 100_000)
    view = trace.view()
    assert steady(view, view.selection()) == view.selection()
    assert trust(view, view.selection()).verdict == "poor"


@pytest.mark.parametrize("steps", [1, 3])
def test_a_single_iteration_allows_nothing_high(training, steps: int) -> None:
    timed = [990_000, 1_000_000, 1_010_000, 1_000_000]
    view = training(steps=steps).view(facts=RunFacts(unprofiled_before_ns=timed, unprofiled_after_ns=timed))
    found = advise(view, view.selection()).findings
    high = [finding for finding in found if "high" in (finding.severity, finding.confidence)]
    assert bool(high) == (steps > 1)


def test_a_poor_recording_allows_nothing_high(training) -> None:
    # Timed steps of a fifth of the recorded ones: the machine did something else meanwhile.
    facts = RunFacts(unprofiled_before_ns=[200_000] * 4, unprofiled_after_ns=[200_000] * 4)
    view = training().view(facts=facts)
    assert trust(view, view.selection()).verdict == "poor"
    for finding in advise(view, view.selection()).findings:
        assert "high" not in (finding.severity, finding.confidence)


def test_a_step_is_what_was_recorded_where_none_is_marked() -> None:
    view = without_steps(recorded_view(DEMO / "lenet/fp32"))
    step = step_estimate(view, view.selection())
    assert step.ns == step.recorded_ns == float(view.profile.iterations.duration_ns[0])
    assert step.source == "whole"


def test_rules_that_speak_without_steps_are_few() -> None:
    assert {one.rule.id for one in all_rules() if one.rule.without_steps} == {
        "amp_defeated",
        "amp_not_used",
        "missing_annotations",
        "no_iterations",
        "out_of_memory_ahead",
        "tf32_off",
    }
