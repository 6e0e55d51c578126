"""``tb-dlprof launches``: the Launches page on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import UNKNOWN, percent, print_table, time
from tb_dlprof_plugin.cli.rows import count, print_rows
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.pages.launch_rows import GapRow, LaunchedKernel, SyncRow
from tb_dlprof_plugin.pages.launches import LaunchesPage, PaceRow, launches_page
from tb_dlprof_plugin.pages.quantities import GPU_IDLE


@page_command(launches_page)
def launches(page: LaunchesPage, sums: Sums, limit: Limit = 10) -> None:
    """Show whether the CPU or the GPU sets the pace.

    With idle gaps and what the CPU did meanwhile, launch delays and synchronising calls.
    """
    say(f"{page.headline} The step is {page.step_words}. {sums.words}")
    if not page.has_gpu:
        return
    _figures(page, sums)
    _iterations(page, limit)
    _syncs(page, sums, limit)
    _gaps(page, limit)
    _kernels(page, sums, limit)


def _figures(page: LaunchesPage, sums: Sums) -> None:
    found = page.figures
    detail = [part for part in page.idle_by_activity if part.cause in ("cpu_launch", "idle")]
    _heading("Figures")
    print_table(
        (("Figure", "left"), ("value", "right")),
        [
            (GPU_IDLE.label, percent(found.idle_percent)),
            ("CPU not needed", percent(found.slack_percent)),
            ("Median launch delay", time(found.median_delay_ns)),
            ("Longest launch delay", time(found.max_delay_ns)),
            ("Mean queue", _count(found.mean_queue)),
            ("Deepest queue", _count(found.max_queue)),
            ("Launches with a known delay", f"{found.timed} of {found.launches}"),
            ("Kernels shorter than their launch", percent(found.short_percent)),
            ("Synchronising calls per iteration", _count(found.sync_calls_per_iteration)),
            ("Time in them per iteration", time(found.sync_ns_per_iteration)),
            *(
                (f"{lead} {part.label}", f"{sums.time(part.value_ns)}, {percent(part.percent)}")
                for lead, parts in (("Idle:", page.idle_by_cause), ("-", detail), ("Gaps:", page.idle_by_kind))
                for part in parts
            ),
        ],
    )


def _iterations(page: LaunchesPage, limit: int) -> None:
    _heading("Iterations, as recorded")
    labels = [part.label for part in page.idle_by_cause]

    def most(row: PaceRow) -> str:
        return labels[row.idle_by_cause_ns.index(max(row.idle_by_cause_ns))] if row.idle_ns else "–"

    print_rows(PaceRow, page.iterations[:limit], cells={"idle_by_cause_ns": most})
    _rest(page.total_iterations, limit)


def _syncs(page: LaunchesPage, sums: Sums, limit: int) -> None:
    _heading("Synchronising calls")
    if not page.syncs:
        say("None in the selected iterations.")
        return

    def caller(row: SyncRow) -> str:
        return row.op or (f"{row.module} (outside ops)" if row.module else "(outside ops)")

    print_rows(SyncRow, page.syncs[:limit], sums=sums, cells={"op": caller})
    _rest(page.total_syncs, limit)


def _gaps(page: LaunchesPage, limit: int) -> None:
    _heading("Largest idle gaps, as recorded")
    labels = {part.key: part.label for part in page.idle_by_cause}
    print_rows(GapRow, page.gaps[:limit], cells={"cause": lambda row: labels[row.cause]})
    _rest(page.total_gaps, limit)


def _kernels(page: LaunchesPage, sums: Sums, limit: int) -> None:
    _heading("Launch delay by kernel")
    print_rows(LaunchedKernel, page.kernels[:limit], sums=sums, cells={"name": lambda row: row.short_name})
    _rest(page.total_kernels, limit)


def _heading(text: str) -> None:
    say("", f"{text}", "")


def _rest(total: int, limit: int) -> None:
    if total > limit:
        say("", f"{total - limit} more; --limit prints more, --format json all rows of the page.")


def _count(value: float | None) -> str:
    return UNKNOWN if value is None else count(value)
