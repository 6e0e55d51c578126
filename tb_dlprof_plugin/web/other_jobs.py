"""Compares the job of a run with those of other runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.several_jobs.compare_jobs import compare_jobs
from tb_dlprof_plugin.fleet.several_jobs.scaling import scaling
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.pages.other_jobs import OtherJobsPage, other_jobs_page
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.open_runs import OpenRuns
from tb_dlprof_plugin.web.queries import ProfileQuery

_MOST_JOBS = 16
"""That one is shown against."""


def other_jobs(
    runs: OpenRuns,
    job: Job,
    ref: RunRef,
    against: Annotated[
        Sequence[str], Option("Other runs, a line each; the first is the base.", read=lambda text: text.split("\n"))
    ],
) -> OtherJobsPage:
    """The job against others."""
    others = list(dict.fromkeys(name for name in against if name and name != ref.run))
    if not 0 < len(others) <= _MOST_JOBS:
        raise RequestError(400, f"The parameter 'against' must name 1 to {_MOST_JOBS} other runs.")
    jobs = [runs.job(ProfileQuery(run=name))[0] for name in others]
    named = [(ref.run, job), *zip(others, jobs, strict=True)]
    try:
        series = scaling(named) if len({one.world_size for _, one in named}) > 1 else None
        return other_jobs_page(ref, compare_jobs(jobs[0], job, (others[0], ref.run)), series)
    except ValueError as error:
        raise RequestError(422, f"The jobs cannot be compared: {error}.") from None
