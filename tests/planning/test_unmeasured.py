"""Kernels of classes that were never measured refuse a forecast, or widen it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tb_dlprof_plugin.planning import ForecastError, forecast
from tb_dlprof_plugin.planning.dtype_flow import flow
from tb_dlprof_plugin.planning.kernel_times import KernelTimesOf, launched
from tb_dlprof_plugin.planning.op_times import measured
from tb_dlprof_plugin.planning.target import target_of
from tb_dlprof_plugin.planning.unmeasured import SPREAD
from tb_dlprof_plugin.profile_view import ProfileView

PRODUCT = [[512, 512], [512, 512]]


def step(new_trace: Callable[..., Any], op: str, us: float) -> ProfileView:
    """Three steps of a matrix product of 900 us and one kernel of another op."""
    trace = new_trace()
    trace.gpu()
    for number in range(3):
        start = 2000 * number
        trace.step(number, start, 2000)
        for name, at, length in (("aten::mm", 10, 900.0), (op, 60, us)):
            trace.op(name, start + at, 40, dims=PRODUCT, types=["float", "float"])
            trace.launch(
                "ampere_sgemm_128x64_nn" if length == 900 else "some_kernel", start + at + 5, start + 200, length
            )
    return trace.view()


@pytest.mark.parametrize("op", ["my_extension::fuse", "aten::grid_sampler_2d"])
def test_much_time_in_kernels_that_were_never_measured_refuses(new_trace: Callable[..., Any], op: str) -> None:
    with pytest.raises(ForecastError, match=r"cannot be said: .* % of its GPU time is in kernels") as raised:
        forecast(step(new_trace, op, 600), "bf16")
    assert op.split("::")[1] in str(raised.value)


@pytest.mark.parametrize(("precision", "spread"), [("bf16", SPREAD), ("tf32", 0.0)])
def test_little_time_in_them_widens_the_interval_and_tf32_concerns_products_alone(
    new_trace: Callable[..., Any], precision: Any, spread: float
) -> None:
    view = step(new_trace, "my_extension::fuse", 60)
    assert forecast(view, precision).predicted_ns > 0
    target = target_of(view, precision)
    found = KernelTimesOf(view, flow(view, 1), precision, measured(), target).of(launched(view))
    of_extension = view.launch_op[launched(view).launch] == view.launch_op[1]
    assert of_extension.sum() == 3
    assert (found.spread[of_extension] == spread).all()
    assert (found.gpu_ns[of_extension] == 60_000).all()
    assert (found.gpu_ns[~of_extension] < 900_000).all()
