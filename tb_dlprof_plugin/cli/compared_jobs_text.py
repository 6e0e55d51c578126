"""A comparison of two jobs, printed for reading."""

from __future__ import annotations

from tb_dlprof_plugin.cli.printing import UNKNOWN, percent, time
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.fleet.several_jobs.comparison import JobComparison
from tb_dlprof_plugin.pages.other_jobs import (
    JobCollectiveChange,
    JobDelayChange,
    JobPart,
    JobRankChange,
    other_jobs_page,
)
from tb_dlprof_plugin.store.run_ref import RunRef


def print_compared_jobs(found: JobComparison, limit: int) -> None:
    """Sentence, parts, delays, ranks, collectives, figures and notes."""
    say(found.sentence, "")
    page = other_jobs_page(RunRef("", "", 0, 0), found, None)
    print_rows(JobPart, [row for row in page.parts if row.base_ns or row.candidate_ns or row.base_ns is None])
    if page.delays:
        say()
        print_rows(JobDelayChange, page.delays[:limit])
    say()
    print_rows(JobRankChange, page.ranks[:limit])
    if len(found.rank_changes) > limit:
        say(f"The {min(limit, len(page.ranks))} of {len(found.rank_changes)} ranks whose own time changes most.")
    if page.collectives:
        say()
        print_rows(JobCollectiveChange, page.collectives[:limit])
    say()
    for label, values in (
        ("parallel efficiency", (found.base.parallel, found.candidate.parallel)),
        ("wasted by uneven ranks", (found.base.wasted_gpu_share, found.candidate.wasted_gpu_share)),
        ("FLOPs utilization", (found.base.flops_utilization, found.candidate.flops_utilization)),
    ):
        say(f"{label:<26}{' -> '.join(share(value) for value in values)}")
    for note in found.notes:
        say(f"Note: {note}")


def ms(value: float | None, missing: str = UNKNOWN) -> str:
    """A time in milliseconds as a duration."""
    return missing if value is None else time(value * 1e6)


def share(value: float | None) -> str:
    """A share from 0 to 1 as a percentage."""
    return percent(None if value is None else 100 * value)
