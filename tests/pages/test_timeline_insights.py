"""What stands out on the timeline is the largest of its kind in the iteration, and an event of the drawing."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.recorded_runs import DEMO, ROOT, recorded_view

from tb_dlprof_plugin.pages.timeline.page import TimelinePage, timeline_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_ref import RunRef

RANKS = ROOT / "tests" / "data" / "ranks" / "recorded"


def _page(view: ProfileView, ref: RunRef) -> TimelinePage:
    return timeline_page(view, ref, view.selection())


@pytest.mark.parametrize("run", ["lenet/fp32", "resnet50/amp-fp16"])
def test_each_is_the_longest_of_its_kind(run: str, ref: RunRef) -> None:
    page = _page(recorded_view(DEMO / run), ref)
    found = {one.title: one for one in page.insights}
    assert 2 <= len(found) <= 6
    assert found["GPU idle"].spot == page.longest_gaps[0].spot
    kernels = [one.spot for one in page.longest_gpu if one.spot.kind != "memory"]
    assert found["Longest kernel"].spot == kernels[0]
    shares = [one.percent for one in page.insights]
    assert shares == sorted(shares, reverse=True)
    for one in page.insights:
        assert one.spot.label in one.text
        assert one.spot.duration_ns == round(one.percent / 100 * page.iteration.duration_ns)


def test_a_job_has_its_longest_collective_apart_from_kernels(ref: RunRef) -> None:
    stored = read_profiles(Path(RANKS / "ddp_slow_host"))[0]
    found = {one.title: one.spot.label for one in _page(ProfileView(stored.profile), ref).insights}
    assert found["Longest collective"].startswith("nccl")
    assert not found["Longest kernel"].startswith("nccl")
