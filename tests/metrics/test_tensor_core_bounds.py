"""The bound of what an op could gain: its time less the least time of its FLOPs and bytes, or unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.metrics.roofline import largest_gains, roofline

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
RUNS = [str(path.parent.relative_to(RECORDED)) for path in sorted(RECORDED.glob("*/*/events.*"))]
SGEMM = "ampere_sgemm_128x64_nn"
SIZE = 4096
LEAST_NS = 2 * SIZE**3 / 989.5e3
"""Of a product of SIZE in half precision on an H200, at 989.5 TFLOP/s."""


def gains(new_trace: Any, us: float, shape: list[int] | None, **gpu: Any) -> list[int]:
    trace = new_trace()
    trace.gpu(**gpu)
    dims = None if shape is None else [shape, shape]
    trace.op("aten::mm", 10, 20, dims=dims, types=["c10::Half"] * 2)
    trace.launch(SGEMM, 12, 40, us)
    view = trace.view()
    return list(largest_gains(view, view.selection()).values())


def test_a_large_product_could_gain_what_it_takes_above_its_arithmetic(new_trace) -> None:
    (gain,) = gains(new_trace, 500, [SIZE, SIZE])
    assert gain == pytest.approx(500_000 - LEAST_NS, abs=1)


def test_a_small_product_could_gain_what_it_takes_above_its_traffic(new_trace) -> None:
    (gain,) = gains(new_trace, 5, [64, 64])
    assert gain == pytest.approx(5_000 - 3 * 2 * 64 * 64 / 4800, abs=1)


def test_what_cannot_be_bounded_is_absent(new_trace) -> None:
    assert gains(new_trace, 500, None) == []
    assert gains(new_trace, 500, [SIZE, SIZE], name="NVIDIA Unheard") == []
    # Faster than the least time: what that counts does not hold here.
    assert gains(new_trace, LEAST_NS // 2000, [SIZE, SIZE]) == []


@pytest.mark.parametrize("run", RUNS)
def test_every_recorded_op_has_a_bound_below_its_time(run: str) -> None:
    view = recorded_view(RECORDED / run)
    selection = view.selection()
    found = largest_gains(view, selection)
    eligible = op_totals(view, selection).eligible_ns
    assert set(found) == {row.group for row in roofline(view, selection).rows}
    assert all(0 < gain < eligible[group] for group, gain in found.items())
