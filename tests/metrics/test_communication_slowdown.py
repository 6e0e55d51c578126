"""What a collective costs kernels that run in parallel with it."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.metrics.communication import communication_slowdown
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles
from tests.support.recorded_runs import ROOT

DATA = ROOT / "tests" / "data"
WIDE = "ranks/settings_recorded/wide"


def first_rank(job: str) -> ProfileView:
    return ProfileView(read_profiles(DATA / job)[0].profile)


@pytest.mark.parametrize("job", [WIDE, "ranks/trial/vision_even", "planted/communication_bound/fixed"])
def test_on_two_h200s_an_all_reduce_costs_a_quarter_of_its_time(job: str) -> None:
    view = first_rank(job)
    assert communication_slowdown(view, view.selection()).share == pytest.approx(0.28, abs=0.08)


def test_it_is_unknown_where_nothing_runs_in_parallel(gpu_view: ProfileView) -> None:
    assert communication_slowdown(gpu_view, gpu_view.selection()).share is None
    one_bucket = first_rank(f"{WIDE}_one")
    assert communication_slowdown(one_bucket, one_bucket.selection()).share is None


def test_kernels_are_compared_with_those_of_the_same_launch(new_trace) -> None:
    trace = new_trace()
    for number, at in enumerate((0, 1000)):
        trace.step(number, at, 900)
        for start, duration in ((100, 100), (300, 160)):
            trace.launch("gemm", at + start - 50, at + start, duration)
        trace.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", at + 260, at + 280, 200, stream=20)
    view = trace.view()
    found = communication_slowdown(view, view.selection())
    assert (found.during_ns, found.extra_ns) == (160_000, 60_000)
