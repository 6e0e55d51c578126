"""``tb-dlprof roofline``: the Roofline page on the terminal."""

from __future__ import annotations

from collections import Counter

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import UNKNOWN, percent, print_table
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import byte_rate, byte_size, flop_count
from tb_dlprof_plugin.pages.roofline import RooflineOp, RooflinePage, roofline_page
from tb_dlprof_plugin.pages.roofs import precision_label


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
    print_table(
        (
            ("Op", "left"),
            ("direction", "left"),
            ("time", "right"),
            ("FLOPs", "right"),
            ("bytes", "right"),
            ("FLOP/byte", "right"),
            ("rate", "right"),
            ("ran in", "left"),
            ("roof", "right"),
            ("bound by", "left"),
            ("% of roof", "right"),
            ("could run in", "left"),
            ("% of that roof", "right"),
        ),
        [_cells(op, sums) for op in page.ops[:limit]],
    )
    if page.total_rows > limit:
        say("", f"{page.total_rows - limit} more; --limit {page.total_rows} prints all.")
    above = Counter(op.why_above_roof for op in page.ops if op.why_above_roof)
    for why, count in above.most_common():
        say("", f"Above the roof ({'1 op' if count == 1 else f'{count} ops'}): {why}.")


def _cells(op: RooflineOp, sums: Sums) -> tuple[str, ...]:
    return (
        op.name,
        op.direction,
        sums.time(op.gpu_ns),
        UNKNOWN if op.flops is None else flop_count(sums.value(op.flops)),
        UNKNOWN if op.bytes is None else byte_size(sums.value(op.bytes)),
        UNKNOWN if op.flops_per_byte is None else f"{op.flops_per_byte:,.1f}",
        _rate(op.flops_per_second),
        precision_label(op.precision, op.tensor_cores == "yes") or UNKNOWN,
        _rate(op.ceiling_flops_per_second),
        op.bound,
        percent(op.percent_of_ceiling),
        op.possible_precision.upper() or UNKNOWN,
        percent(op.percent_of_possible),
    )


def _rate(value: float | None) -> str:
    return UNKNOWN if value is None else f"{flop_count(value)}/s"
