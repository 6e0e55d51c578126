"""``tb-dlprof roofline``: the Roofline page on the terminal."""

from __future__ import annotations

from collections import Counter

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import UNKNOWN, print_table
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import byte_rate, flop_count
from tb_dlprof_plugin.pages.roofline import RooflineOp, RooflinePage, precision_label, roofline_page


@page_command(roofline_page)
def roofline(page: RooflinePage, sums: Sums, limit: Limit = 30) -> None:
    """Compare matrix ops with the ceilings of the GPU.

    FLOPs, bytes and rate of each, compared with the peak rate and the memory bandwidth of the GPU.
    """
    say(f"{page.headline} {sums.words}", "")
    if page.bytes_per_second is not None:
        print_table(
            ((page.gpu, "left"), ("reaches", "right")),
            [
                *((roof.label, _rate(roof.flops_per_second)) for roof in page.roofs),
                ("memory", byte_rate(page.bytes_per_second)),
            ],
        )
        say(f"Source: {page.source}", "")
    if not page.ops:
        return
    cells = {"precision": lambda op: precision_label(op.precision, op.tensor_cores == "yes") or UNKNOWN}
    print_rows(RooflineOp, page.ops, sums=sums, limit=limit, total=page.total_rows, cells=cells)
    above = Counter(op.why_above_roof for op in page.ops if op.why_above_roof)
    for why, count in above.most_common():
        say("", f"Above the roof ({'1 op' if count == 1 else f'{count} ops'}): {why}.")


def _rate(value: float | None) -> str:
    return UNKNOWN if value is None else f"{flop_count(value)}/s"
