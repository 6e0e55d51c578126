"""A job against others, as the page Distributed shows it, and what the route refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from support.simulated_job import ddp, simulate

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.several_jobs.compare_jobs import compare_jobs
from tb_dlprof_plugin.pages.other_jobs import OtherJobsPage, other_jobs_page
from tb_dlprof_plugin.store.codec import encode
from tb_dlprof_plugin.store.header import header_of
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.answers import Answers
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.export.runs import ExportedRun, ExportedRuns
from tb_dlprof_plugin.web.queries import read_query, runs_of
from tb_dlprof_plugin.web.routes import ROUTES

REF = RunRef("job", "s", 0, 0)
JOBS = Path(__file__).parents[2] / "tests" / "data" / "ranks" / "held_out"


def test_whole_nanoseconds_still_add_up() -> None:
    found = compare_jobs(job_of(simulate(3, ddp(3))), job_of(simulate(7, ddp(7, slower={5: 1.3}))))
    page = other_jobs_page(REF, found, None)
    *parts, step = page.parts
    assert step.part == "Step"
    assert sum(part.difference_ns or 0 for part in parts) == step.difference_ns
    for row in page.ranks:
        changes = (row.compute_ns, row.transfer_ns, row.waiting_ns or 0, row.bubble_ns, row.host_ns)
        assert sum(changes) == row.step_ns
    assert (page.scaling, page.scaling_headline) == ([], "")
    assert page.ranks[0].rank == 5


def test_waiting_that_is_not_known_is_not_0() -> None:
    found = compare_jobs(job_of(simulate(4, ddp(4))[:1]), job_of(simulate(4, ddp(4))))
    page = other_jobs_page(REF, found, None)
    waiting = next(part for part in page.parts if part.part == "Waiting for ranks")
    assert (waiting.base_ns, waiting.candidate_ns, waiting.difference_ns) == (None, None, None)
    assert [row.waiting_ns for row in page.ranks] == [None]


def _run(name: str) -> ExportedRun:
    profiles = [one.profile for one in read_profiles(JOBS / name)]
    first = profiles[0]
    header = header_of(first).encode()
    blobs = {profile.source.rank: encode(profile) for profile in profiles}
    return ExportedRun(name, first.source.session, first.source.rank, first.source.cycle, header, blobs)


def test_the_route_answers_about_other_runs_and_refuses_what_is_none() -> None:
    runs = ExportedRuns([_run("images_even"), _run("images_slow_host")])
    route = ROUTES["other_jobs"]

    def query(against: str) -> Any:
        return read_query(route.load_query(), {"run": "images_slow_host", "against": against})

    assert runs_of(query("images_even")) == ("images_slow_host", "images_even")
    page = cast(OtherJobsPage, Answers("").answer(route, query("images_even"), runs))
    assert page.base == "images_even"
    assert [(one.what, one.cause) for one in page.delays] == [("new", "slow host")]
    # Of the same size they are no series.
    assert page.scaling == []
    assert msgspec.json.decode(msgspec.json.encode(page))["headline"] == page.headline
    for against in ("", "images_slow_host", "\n"):
        with pytest.raises(RequestError, match="must name 1 to 16 other runs"):
            Answers("").answer(route, query(against), runs)
    with pytest.raises(RequestError, match="Run 'other' holds no profile"):
        Answers("").answer(route, query("other"), runs)
