"""``tb-dlprof compiled``: what the kernels of torch.compile compute, on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.pages.compiled import (
    BreakRow,
    CompilationRow,
    CompiledModuleRow,
    CompiledPage,
    CompiledRow,
    SkipRow,
    compiled_page,
)


@page_command(compiled_page)
def compiled(page: CompiledPage, sums: Sums, limit: Limit = 30) -> None:
    """Show what the kernels of torch.compile compute.

    For each launch of a generated wrapper its ATen ops, lines of your files, modules, time and bandwidth, in CUDA
    graphs, too. Then the time by module, lines that break graphs, skipped CUDA graphs, and what compilation costs.
    """
    say(f"{page.headline} {sums.words}", "")
    if page.rows:
        print_rows(CompiledRow, page.rows, sums=sums, limit=limit, total=page.total_rows)
    if page.modules:
        say("", "By module. Kernels of several modules are split by the bytes that each moves.", "")
        print_rows(CompiledModuleRow, page.modules, sums=sums, limit=limit, total=page.total_modules)
    if page.graph_breaks:
        say("", "Graph breaks: nothing is fused across these lines.", "")
        print_rows(BreakRow, page.graph_breaks)
    if page.skips:
        say("", "Skipped CUDA graphs: these graphs are launched kernel by kernel.", "")
        print_rows(SkipRow, page.skips)
    if page.compilations:
        say("", f"Compilations: {page.compilations_ns / 1e9:.1f} s in this process.", "")
        print_rows(CompilationRow, page.compilations)
