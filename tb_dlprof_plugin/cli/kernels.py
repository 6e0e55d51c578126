"""``tb-dlprof kernels``: the table of the page on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.pages.kernels import KernelRow, KernelsPage, kernels_page


@page_command(kernels_page)
def kernels(page: KernelsPage, sums: Sums, limit: Limit = 30) -> None:
    """List kernels, copies and sets by time.

    With the Tensor Core verdict of each and the rule that decided it.
    """
    say(f"{page.headline} {sums.words}", "")
    cells = {"name": lambda row: row.short_name + (f" [{row.told_by}]" if row.told_by else "")}
    print_rows(KernelRow, page.rows, sums=sums, limit=limit, total=page.total_rows, cells=cells)
