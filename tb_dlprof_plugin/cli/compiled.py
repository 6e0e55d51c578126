"""``tb-dlprof compiled``: what the kernels of torch.compile compute, on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.pages.compiled import BreakRow, CompiledPage, CompiledRow, RecompileRow, compiled_page


@page_command(compiled_page)
def compiled(page: CompiledPage, sums: Sums, limit: Limit = 30) -> None:
    """Show what the kernels of torch.compile compute.

    For each launch of a generated wrapper its ATen ops, lines of your files, modules and time, in CUDA graphs, too.
    Then the lines that break graphs, and functions that were compiled again, with the guard that failed.
    """
    say(f"{page.headline} {sums.words}", "")
    if page.rows:
        print_rows(CompiledRow, page.rows, sums=sums, limit=limit, total=page.total_rows)
    if page.graph_breaks:
        say("", "Graph breaks: nothing is fused across these lines.", "")
        print_rows(BreakRow, page.graph_breaks)
    if page.recompiles:
        say("", "Recompiles: functions that were compiled again.", "")
        print_rows(RecompileRow, page.recompiles)
