"""``tb-dlprof ops`` and ``op-types``: the tables of these pages on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.pages.common import OpRow
from tb_dlprof_plugin.pages.op_types import OpTypeRow, OpTypesPage, op_types_page
from tb_dlprof_plugin.pages.ops import OpsPage, ops_page


@page_command(ops_page)
def ops(page: OpsPage, sums: Sums, limit: Limit = 30) -> None:
    """List the ops of the model by GPU time.

    With calls, times, Tensor Core eligibility and use, precision and shapes.
    """
    say(f"{page.headline} {sums.words}", "")
    print_rows(OpRow, page.rows, sums=sums, limit=limit, total=page.total_rows, has_gpu=page.has_gpu)


@page_command(op_types_page)
def op_types(page: OpTypesPage, sums: Sums, limit: Limit = 30) -> None:
    """List the types of ops by GPU time.

    With ops, calls, forward and backward time, Tensor Core share and CPU time.
    """
    say(f"{page.headline} {sums.words}", "")
    headings = {} if page.has_gpu else {"percent": "CPU %"}
    rows, gpu = page.rows, page.has_gpu
    print_rows(OpTypeRow, rows, sums=sums, limit=limit, total=page.total_rows, has_gpu=gpu, headings=headings)
