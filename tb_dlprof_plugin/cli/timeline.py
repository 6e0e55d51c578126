"""``tb-dlprof timeline``: one iteration on the terminal: its parts, longest gaps, GPU work and ops; or all events."""

from __future__ import annotations

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.open_profile import choose
from tb_dlprof_plugin.cli.options import Limit, Printing, Source
from tb_dlprof_plugin.cli.printing import percent, print_page, print_table, time
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.run_choice import RangeChoice
from tb_dlprof_plugin.pages.common import Slice
from tb_dlprof_plugin.pages.timeline.events import HEADINGS, event_rows
from tb_dlprof_plugin.pages.timeline.iteration import IterationOption
from tb_dlprof_plugin.pages.timeline.page import LONGEST, LongEvent, TimelinePage, timeline_page
from tb_dlprof_plugin.reports.table import Report


@takes_requests
def timeline(
    source: Source,
    iteration: IterationOption = None,
    limit: Limit = 10,
    *,
    choice: RangeChoice,
    printing: Printing,
) -> None:
    """Show one iteration: its parts and what takes longest.

    The longest idle gaps, GPU activities and ops, with when they begin. CSV contains every event of the iteration.
    """
    chosen = choose(source, choice)
    try:
        page = timeline_page(chosen.view, chosen.ref, chosen.selection, iteration, max(limit, LONGEST))
    except ValueError as error:
        refuse(error)
    print_page(
        page,
        printing,
        text=lambda: _text(page, limit),
        main=lambda: Report(HEADINGS, list(event_rows(chosen.view, chosen.selection, iteration))),
    )


def _text(page: TimelinePage, limit: int) -> None:
    say(page.headline)
    say(f"Drawn: {page.events:,} events in {time(page.window_ns)}, in {len(page.tracks)} rows", "")
    print_rows(Slice, page.parts)
    _longest("Longest idle gaps", ("Why idle", "ended by"), page.longest_gaps, page, limit)
    _longest("Longest on the GPU", ("On the GPU", "op"), page.longest_gpu, page, limit)
    _longest("Longest ops on the CPU", ("Call", "op"), page.longest_ops, page, limit)


def _longest(title: str, headings: tuple[str, str], rows: list[LongEvent], page: TimelinePage, limit: int) -> None:
    if not rows:
        return
    say("", f"{title}", "")
    name, op = headings
    begin = page.iteration.start_ns
    print_table(
        ((name, "left"), ("at", "right"), ("duration", "right"), ("share", "right"), (op, "left")),
        [
            (row.spot.label, time(row.spot.start_ns - begin), time(row.spot.duration_ns), percent(row.percent), row.op)
            for row in rows[:limit]
        ],
    )
