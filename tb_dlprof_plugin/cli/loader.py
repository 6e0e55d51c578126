"""``tb-dlprof loader``: the DataLoader page on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.api.rows import rows_table
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import UNKNOWN, percent, print_table, time
from tb_dlprof_plugin.cli.rows import count, print_rows
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import byte_size
from tb_dlprof_plugin.pages.loader import LoaderPage, LoaderStage, TransformRow, WorkersRow, loader_page

_MOST = 8
"""Workers up to which each number is printed."""


@page_command(loader_page, lambda page: rows_table(WorkersRow, page.workers))
def loader(page: LoaderPage) -> None:
    """Show what limits the DataLoader and how many workers it needs.

    What a batch takes in each stage, which transform is slow, and the step with other numbers of workers, simulated.
    """
    say(page.headline, "")
    if page.batches:
        _figures(page)
    if page.stages:
        print_rows(LoaderStage, page.stages)
        say()
    if page.transforms:
        print_rows(TransformRow, page.transforms)
        say()
    if page.workers:
        most = max(_MOST, page.workers_now or 0, page.workers_advised or 0)
        print_rows(WorkersRow, [row for row in page.workers if row.workers <= most])
        say()
    for hint in page.hints:
        say(hint)


def _figures(page: LoaderPage) -> None:
    started = f" ({page.start_method})" if page.start_method else ""
    rows = [
        ("Waiting for batches", percent(page.waiting_percent)),
        ("Median wait", time(page.wait_ns)),
        ("Batches ready", UNKNOWN if page.ready is None else count(page.ready)),
        ("Size of a batch", UNKNOWN if page.batch_bytes is None else byte_size(page.batch_bytes)),
        ("Tensors of a batch", UNKNOWN if page.tensors is None else count(page.tensors)),
        ("First batch", f"{time(page.first_batch_ns)}{started}"),
        ("Batches measured", count(page.batches)),
    ]
    print_table((("DataLoader", "left"), ("", "right")), rows)
    say()
