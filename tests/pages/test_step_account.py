"""What a step consists of: one account on the Summary, in Compare and on the Launches page, and as a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

import tb_dlprof_plugin
from tb_dlprof_plugin.metrics.step_buckets import CPU_BUCKETS, WAITING
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.pages.launches import launches_page
from tb_dlprof_plugin.pages.overview import Overview, overview
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"


@pytest.fixture(
    scope="module",
    # Paced by the GPU; by the CPU; with GradScaler; recorded in less time than without the profiler.
    params=["resnet50/fp32", "lenet/fp32", "mlp/amp-fp16", "alexnet/amp-bf16"],
)
def recorded(request: pytest.FixtureRequest) -> ProfileView:
    (stored,) = tb_dlprof_plugin.read_profiles(RECORDED / request.param)
    return ProfileView(stored.profile)


def times(page: Overview) -> dict[str, int]:
    return {part.key: part.value_ns or 0 for part in page.account}


def test_compare_shows_the_same_numbers_of_the_run_as_base(recorded: ProfileView, ref: RunRef) -> None:
    page = overview(recorded, ref, recorded.selection())
    side = CompareInput(recorded, ref, recorded.selection())
    assert times(page) == {bucket.key: bucket.base_ns for bucket in compare_page(side, side).buckets}
    assert sum(times(page).values()) == round(page.step.ms * 1e6)
    assert sum(part.percent or 0 for part in page.account) == pytest.approx(100)


def test_the_gpu_waits_as_long_as_the_launches_page_says_and_for_the_same(recorded: ProfileView, ref: RunRef) -> None:
    page = overview(recorded, ref, recorded.selection())
    launches = launches_page(recorded, ref, recorded.selection())
    account, step_ns = times(page), page.step.ms * 1e6
    waits = sum(account[key] for key in WAITING)
    assert 100 * waits / step_ns == pytest.approx(launches.figures.idle_percent, abs=0.001)
    assert 100 - 100 * waits / step_ns == pytest.approx(page.summary.gpu_utilization_percent, abs=0.001)
    causes = {part.key: (part.value_ns or 0) / page.summary.aggregated_iterations for part in launches.idle_by_cause}
    labels = {part.key: part.label for part in page.account}
    assert [part.label for part in launches.idle_by_cause] == [labels[part.key] for part in launches.idle_by_cause]
    # Whole nanoseconds of the step on one side, of all steps on the other.
    assert {key: account[key] for key in WAITING} == pytest.approx(causes, abs=3)


def test_iterations_are_bars_of_the_same_buckets_and_the_recorder(recorded: ProfileView, ref: RunRef) -> None:
    page = overview(recorded, ref, recorded.selection())
    keys = [bucket.key for bucket in page.buckets]
    assert keys[: len(page.account)] == [part.key for part in page.account]
    assert keys[len(page.account) :] == (["recorder"] if page.summary.recorder_ns else [])
    for bar in page.iterations:
        assert sum(value or 0 for value in bar.category_ns) == bar.duration_ns


def test_without_a_gpu_the_account_has_the_parts_of_a_step(cpu_view: ProfileView, ref: RunRef) -> None:
    page = overview(cpu_view, ref, cpu_view.selection())
    assert [(part.key, part.label) for part in page.account] == [(part.key, part.label) for part in page.parts]
    assert times(page) == {part.key: (part.value_ns or 0) // 2 for part in page.parts}
    side = CompareInput(cpu_view, ref, cpu_view.selection())
    compared = {bucket.key: bucket.base_ns for bucket in compare_page(side, side).buckets}
    assert times(page) == compared
    assert set(compared) == set(CPU_BUCKETS)
    for bar in page.iterations:
        assert bar.category_ns == [times(page)[bucket.key] for bucket in page.buckets]


def test_the_sentence_of_a_run_without_a_gpu_names_parts_and_an_op(cpu_view: ProfileView, ref: RunRef) -> None:
    assert overview(cpu_view, ref, cpu_view.selection()).headline == (
        "Each step takes 100 µs on the CPU: 30 % forward, 25 % other, 20 % backward, 15 % optimizer, 10 % DataLoader; "
        "the op with the most time is fc/linear (forward), 30 % of it."
    )


def test_a_recording_that_is_not_reliable_is_not_taken_at_face_value(cpu_trace, ref: RunRef) -> None:
    for step_ns, verdict in ((60_000, "fair"), (40_000, "poor")):
        view = cpu_trace.view(facts=RunFacts(unprofiled_before_ns=[step_ns] * 4))
        page = overview(view, ref, view.selection())
        assert page.trust.verdict == verdict
        assert page.headline.startswith(
            "Each step takes 60" if verdict == "fair" else "Not reliable: each step runs on"
        )
    # Everything on a page without a GPU is a CPU time: 2.5 times as long is too much, and no figure is said.
    assert "2.5 times as long" in page.trust.reasons[0].text
    assert "kernels" not in page.trust.reasons[0].text


def test_a_gpu_that_is_in_a_collective_alone_is_not_said_to_work(ref: RunRef) -> None:
    stored = tb_dlprof_plugin.read_profiles(
        RECORDED.parents[1] / "tests" / "data" / "ranks" / "recorded" / "ddp_slow_host"
    )
    view = ProfileView(stored[0].profile)
    page = overview(view, ref, view.selection())
    # The GPU is busy all the time, and for a fifth of it with nothing but a collective, where it waits for rank 1.
    assert page.summary.gpu_utilization_percent == pytest.approx(100)
    assert page.headline.startswith(
        "The GPU computes or copies 79 % of each 44.3 ms step and is in collectives alone 21 %. Tensor Cores run for "
    )
