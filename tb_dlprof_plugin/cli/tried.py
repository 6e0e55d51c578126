"""``tb-dlprof tried``: the Tried page on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.api.rows import rows_table
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import UNKNOWN
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.pages.tried import TriedPage, TriedRow, tried_page


@page_command(tried_page, lambda page: rows_table(TriedRow, page.rows))
def tried(page: TriedPage) -> None:
    """Show what `tb-dlprof try` measured on a run."""
    say(page.headline, "")
    if page.baseline_ns is not None:
        say(f"{page.command} on {page.device or 'the CPU'}: {_ms(page.baseline_ns)} a step without a remedy.", "")
    for rows in (page.rows, page.sets):
        if rows:
            print_rows(TriedRow, rows)
            say()
    for line in page.without_figures:
        say(line)
    for note in (page.seeds_differ, *page.notes):
        if note:
            say(note)
    if page.patch:
        # A line each: a line break within one would be shown as an escape.
        say("", *page.patch.splitlines())


def _ms(nanoseconds: float | None) -> str:
    return UNKNOWN if nanoseconds is None else f"{nanoseconds / 1e6:.2f} ms"
