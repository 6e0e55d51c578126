"""``tb-dlprof tried``: the Tried page on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.api.rows import rows_table
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import UNKNOWN, print_table
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import byte_size
from tb_dlprof_plugin.pages.tried import TriedPage, TriedRow, tried_page
from tb_dlprof_plugin.reports.table import Report


def _rows(page: TriedPage) -> Report:
    """A remedy each."""
    return rows_table(TriedRow, page.rows)


@page_command(tried_page, _rows)
def tried(page: TriedPage) -> None:
    """Show what `tb-dlprof try` measured on a run."""
    say(page.headline, "")
    if page.baseline_ns is not None:
        say(f"{page.command} on {page.device or 'the CPU'}: {_ms(page.baseline_ns)} a step without a remedy.", "")
    for rows in (page.rows, page.sets):
        if rows:
            _print_rows(rows)
            say()
    for row in page.not_tried:
        say(f"{row.remedy}: {row.why}")
    for note in (page.seeds_differ, *page.notes):
        if note:
            say(note)
    if page.patch:
        # A line each: a line break within one would be shown as an escape.
        say("", *page.patch.splitlines())


def _print_rows(rows: Sequence[TriedRow]) -> None:
    print_table(
        (
            ("remedy", "left"),
            ("before", "right"),
            ("after", "right"),
            ("gain", "right"),
            ("between", "right"),
            ("forecast", "right"),
            ("memory", "right"),
            ("start", "right"),
            ("training", "left"),
        ),
        [
            (
                row.remedy,
                _ms(row.before_ns),
                _ms(row.after_ns),
                _percent(row.gain_percent),
                UNKNOWN if row.low_percent is None else f"{_percent(row.low_percent)} to {_percent(row.high_percent)}",
                _percent(row.forecast_percent),
                UNKNOWN if row.memory_bytes is None else byte_size(row.memory_bytes),
                UNKNOWN if row.start_s is None else f"{row.start_s:.0f} s",
                row.verdict,
            )
            for row in rows
        ],
    )


def _ms(nanoseconds: float | None) -> str:
    return UNKNOWN if nanoseconds is None else f"{nanoseconds / 1e6:.2f} ms"


def _percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1f} %"
