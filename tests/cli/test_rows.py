"""The rows of a page on the terminal: what stands in the cells follows from the declared columns."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.pages.columns import Column


class Row(msgspec.Struct):
    name: Annotated[str, Column("Op", "Name of the op.", missing="none")]
    calls: Annotated[int, Column("Calls", "How often.", sums=True)]
    change_ms: Annotated[float | None, Column("Change", "Longer or shorter.", "cpu", signed=True, terminal=False)]
    gpu_ns: Annotated[int | None, Column("GPU time", "Time of kernels.", sums=True, gpu=True)]
    share_percent: Annotated[float | None, Column("Share", "Of all.", absent=("calls", "4"))]


def test_a_cell_follows_from_the_column(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Row("", 4, -1.5, 3_000_000, None), Row("relu", 3, 0.5, None, 12.34), Row("left", 1, None, None, None)]
    print_rows(Row, rows, sums=Sums(2, ""), limit=2, headings={"name": "Top ops"})
    print_rows(Row, rows[:2], has_gpu=False, without=("calls",), cells={"name": lambda row: f"<{row.name}>"})
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        "Top ops Calls GPU time Share",
        "none 2 1.50 ms –",
        "relu 1.5 unknown 12.3 %",
        "",
        "1 more; --limit 3 prints all.",
        "Op Change Share",
        "<> −1.50 ms –",
        "<relu> +500 µs 12.3 %",
    ]
