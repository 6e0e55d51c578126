"""``tb-dlprof scaling``: how a training scales over jobs on different numbers of GPUs."""

from __future__ import annotations

from typing import Annotated

import typer

from tb_dlprof_plugin.api.distributed import scaling as scaling_of_sources
from tb_dlprof_plugin.cli.compared_jobs_text import ms, share
from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.options import Printing
from tb_dlprof_plugin.cli.printing import UNKNOWN, check_printing, print_page, print_table
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.fleet.several_jobs.scaling import FACTORS, Scaling
from tb_dlprof_plugin.pages.other_jobs import ScaledRow, scaled_row
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.store.codec import ProfileError


@takes_requests
def scaling(
    jobs: Annotated[
        list[str],
        typer.Argument(
            help="Two jobs or more, each the directory of a run with its ranks, or a folder or glob of their traces."
        ),
    ],
    printing: Printing,
) -> None:
    """Show how a training scales with its GPUs.

    Weak or strong scaling, efficiency against the smallest job, and the factors that it is the product of.
    """
    check_printing(printing)
    try:
        found = scaling_of_sources(*jobs)
    except (ProfileError, TraceError, ValueError) as error:
        refuse(error)
    print_page(found, printing, lambda: print_sentence_and_tables(found))


def print_sentence_and_tables(found: Scaling) -> None:
    """Print the sentence, factors, parts and notes."""
    say(found.sentence, "")
    print_rows(ScaledRow, [scaled_row(row) for row in found.jobs])
    say()
    print_table(
        (("job", "left"), *((name, "right") for name in FACTORS), ("parallel efficiency", "right"),
         ("wasted GPU-hours a day", "right")),
        [
            (
                row.name,
                *(UNKNOWN if _unknown(row.parts.waiting_ms, name) else ms(row.parts.of(name)) for name in FACTORS),
                share(row.parallel),
                UNKNOWN if row.wasted_gpu_hours_per_day is None else f"{row.wasted_gpu_hours_per_day:,.1f}",
            )
            for row in found.jobs
        ],
    )  # fmt: skip
    for note in found.notes:
        say(f"Note: {note}")


def _unknown(waiting_ms: float | None, part: str) -> bool:
    return part == "waiting" and waiting_ms is None
