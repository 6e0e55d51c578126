"""``tb-dlprof distributed``: where the step of a job goes, who delays whom and why, what a repair wins."""

from __future__ import annotations

from typing import Annotated

import typer

from tb_dlprof_plugin.api.distributed import distributed as job_of_sources
from tb_dlprof_plugin.api.distributed import names_of_two
from tb_dlprof_plugin.cli.compared_jobs_text import ms, print_compared_jobs, share
from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.fail_on import CANNOT_BE_SAID, FAILED, FailOn, exit_status
from tb_dlprof_plugin.cli.options import Limit, Printing
from tb_dlprof_plugin.cli.printing import check_printing, percent, print_page, print_table
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.several_jobs.compare_jobs import compare_jobs
from tb_dlprof_plugin.fleet.several_jobs.comparison import JobComparison
from tb_dlprof_plugin.pages.distributed import JobCollective, JobDelay, JobWhatIf, distributed_page
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.run_ref import RunRef


@takes_requests
def distributed(
    job: Annotated[
        list[str],
        typer.Argument(
            help="A run's directory with its ranks, or traces of all ranks: files, folders or globs, also remote ones "
            "(s3://bucket/runs/job)."
        ),
    ],
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OTHER",
            help="Compare with another job, the base: as JOB, and again for each further file of its traces.",
        ),
    ] = None,
    gpus: Annotated[
        list[int] | None,
        typer.Option(
            min=2,
            help="Forecast the step on so many GPUs with the same batch each, a multiple of the job's. Repeatable.",
        ),
    ] = None,
    network_gb_s: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="For --gpus on more hosts than were recorded: bus bandwidth across hosts, as nccl-tests print it.",
        ),
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            help=f"Exit with {FAILED} if a rank delays the others, with {CANNOT_BE_SAID} if that cannot be said."
        ),
    ] = None,
    limit: Limit = 20,
    *,
    printing: Printing,
) -> None:
    """Show which ranks of a job delay the others.

    Compute, transfer, waiting, bubble and host of each rank; delays with their causes; what repairs would win. With
    --against, what changed from another job.
    """
    check_printing(printing)
    try:
        found = job_of_sources(*job, gpus=gpus or (), network_gb_s=network_gb_s, engine="processes")
        said: Job | JobComparison = found
        if against is not None:
            said = compare_jobs(job_of_sources(*against, engine="processes"), found, names_of_two(against, job))
    except (ProfileError, TraceError, ValueError) as error:
        refuse(error)
    print_page(said, printing, lambda: _print(said, limit))
    if fail_on is FailOn.straggler and (status := exit_status(found)):
        raise typer.Exit(status)


def _print(job: Job | JobComparison, limit: int) -> None:
    if isinstance(job, JobComparison):
        print_compared_jobs(job, limit)
        return
    say(job.sentence, "")
    if job.account:
        shown = sorted(job.account, key=lambda row: (row.waiting_ms or 0.0, row.rank))[:limit]
        parts = ("step", "compute", "transfer", "waiting", "bubble", "host")
        print_table(
            [("rank", "right"), *((part, "right") for part in parts)],
            [(str(row.rank), *(ms(getattr(row, f"{part}_ms")) for part in parts)) for row in shown],
        )
        if len(job.account) > len(shown):
            say(f"The {len(shown)} of {len(job.account)} ranks that wait least.")
    page = distributed_page(job, RunRef("", "", 0, 0))
    if page.delays:
        say()
        hosts = len({row.host for row in page.delays}) > 1
        print_rows(JobDelay, page.delays[:limit], without=() if hosts else ("host",))
        for row in page.delays[:limit]:
            say(f"Rank {row.rank}: {row.why}")
    if page.what_if:
        say()
        print_rows(JobWhatIf, page.what_if)
    if page.collectives:
        say()
        print_rows(JobCollective, page.collectives[:limit])
    say()
    for label, text in _figures(job):
        say(f"{label:<26}{text}")
    for note in job.notes:
        say(f"Note: {note}")


def _figures(job: Job) -> list[tuple[str, str]]:
    missing = len(job.missing_ranks)
    matching, efficiency = job.collectives, job.efficiency
    figures = [
        ("ranks", f"{len(job.ranks)} of {job.world_size}" + (f", {missing} missing" if missing else "")),
        (
            "collectives matched",
            f"{matching.matched:,} of {matching.total:,} ({percent(matching.matched_percent)}), by {matching.by}",
        ),
    ]
    if job.simulated_error_percent is not None:
        figures.append(("replayed as recorded", f"{job.simulated_error_percent:+.2f} % off"))
    if efficiency.parallel is not None:
        parts = f"load balance {share(efficiency.load_balance)} x communication {share(efficiency.communication)}"
        figures.append(("parallel efficiency", f"{share(efficiency.parallel)} = {parts}"))
    if efficiency.wasted_gpu_share is not None:
        figures.append(("wasted by uneven ranks", f"{share(efficiency.wasted_gpu_share)} of the ranks' time"))
    if efficiency.wasted_gpu_hours_per_day is not None:
        figures.append(("", f"{efficiency.wasted_gpu_hours_per_day:,.1f} GPU-hours a day, on {job.world_size} GPUs"))
    if efficiency.flops_utilization is not None:
        figures.append(("FLOPs utilization", f"{share(efficiency.flops_utilization)} of the GPUs' BF16 peak"))
    return figures
