"""``tb-dlprof launches``: the Launches page on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import UNKNOWN, percent, print_table, time
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.pages.launches import LaunchesPage, launches_page


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
    _heading("Figures")
    print_table(
        (("Figure", "left"), ("value", "right")),
        [
            ("GPU idle", percent(found.idle_percent)),
            ("CPU not needed", percent(found.slack_percent)),
            ("Median launch delay", time(found.median_delay_ns)),
            ("Longest launch delay", time(found.max_delay_ns)),
            ("Mean queue", _number(found.mean_queue)),
            ("Deepest queue", _number(found.max_queue)),
            ("Launches with a known delay", f"{found.timed} of {found.launches}"),
            ("Kernels shorter than their launch", percent(found.short_percent)),
            ("Synchronising calls per iteration", _number(found.sync_calls_per_iteration)),
            ("Time in them per iteration", time(found.sync_ns_per_iteration)),
            *(
                (f"Idle: {part.label}", f"{sums.time(part.value_ns)}, {percent(part.percent)}")
                for part in page.idle_by_cause
            ),
            *(
                (f"- {part.label}", f"{sums.time(part.value_ns)}, {percent(part.percent)}")
                for part in page.idle_by_activity
                if part.cause in ("cpu_launch", "idle")
            ),
            *(
                (f"Gaps: {part.label}", f"{sums.time(part.value_ns)}, {percent(part.percent)}")
                for part in page.idle_by_kind
            ),
        ],
    )


def _iterations(page: LaunchesPage, limit: int) -> None:
    _heading("Iterations, as recorded")
    labels = [part.label for part in page.idle_by_cause]
    print_table(
        (
            ("Iteration", "right"),
            ("GPU", "right"),
            ("pace", "left"),
            ("duration", "right"),
            ("idle", "right"),
            ("launched late", "right"),
            ("CPU not needed", "right"),
            ("gaps", "right"),
            ("longest", "right"),
            ("idle, mostly", "left"),
        ),
        [
            (
                str(row.number),
                str(row.gpu),
                row.pace,
                time(row.duration_ns),
                percent(row.idle_percent),
                percent(row.late_percent),
                percent(row.slack_percent),
                str(row.gaps),
                time(row.longest_gap_ns),
                labels[row.idle_by_cause_ns.index(max(row.idle_by_cause_ns))] if row.idle_ns else "",
            )
            for row in page.iterations[:limit]
        ],
    )
    _rest(page.total_iterations, limit)


def _syncs(page: LaunchesPage, sums: Sums, limit: int) -> None:
    _heading("Synchronising calls")
    if not page.syncs:
        say("None in the selected iterations.")
        return
    print_table(
        (
            ("Call", "left"),
            ("kind", "left"),
            ("op", "left"),
            ("inside", "left"),
            ("role", "left"),
            ("calls", "right"),
            ("time", "right"),
            ("longest", "right"),
        ),
        [
            (
                row.call,
                row.kind,
                row.op or (f"{row.module} (outside ops)" if row.module else "(outside ops)"),
                row.inner_op,
                row.role,
                sums.count(row.calls),
                sums.time(row.time_ns),
                time(row.max_ns),
            )
            for row in page.syncs[:limit]
        ],
    )
    _rest(page.total_syncs, limit)


def _gaps(page: LaunchesPage, limit: int) -> None:
    _heading("Largest idle gaps, as recorded")
    labels = {part.key: part.label for part in page.idle_by_cause}
    print_table(
        (
            ("Iteration", "right"),
            ("GPU", "right"),
            ("at", "right"),
            ("gap", "right"),
            ("kind", "left"),
            ("cause", "left"),
            ("ended by", "left"),
            ("op", "left"),
        ),
        [
            (
                str(row.number),
                str(row.gpu),
                time(row.start_ns),
                time(row.duration_ns),
                row.kind,
                labels[row.cause],
                row.kernel or "(end of the iteration)",
                row.op,
            )
            for row in page.gaps[:limit]
        ],
    )
    _rest(page.total_gaps, limit)


def _kernels(page: LaunchesPage, sums: Sums, limit: int) -> None:
    _heading("Launch delay by kernel")
    print_table(
        (
            ("Kernel", "left"),
            ("calls", "right"),
            ("mean delay", "right"),
            ("longest", "right"),
            ("mean queue", "right"),
            ("deepest", "right"),
            ("launch call", "right"),
            ("kernel", "right"),
        ),
        [
            (
                row.short_name,
                sums.count(row.calls),
                time(row.mean_delay_ns),
                time(row.max_delay_ns),
                _number(row.mean_queue),
                _number(row.max_queue),
                time(row.mean_call_ns),
                time(row.average_ns),
            )
            for row in page.kernels[:limit]
        ],
    )
    _rest(page.total_kernels, limit)


def _heading(text: str) -> None:
    say("", f"{text}", "")


def _rest(total: int, limit: int) -> None:
    if total > limit:
        say("", f"{total - limit} more; --limit prints more, --format json all rows of the page.")


def _number(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:.1f}" if isinstance(value, float) and not value.is_integer() else f"{value:.0f}"
