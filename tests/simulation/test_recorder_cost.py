"""The share of the CPU's time that remains without the recorder."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.recorder_cost import EVENTS_SHARE, TRITON_CALLS, unprofiled_share


def _view(new_trace, op: str, launches: int) -> ProfileView:
    trace = new_trace()
    for step in range(3):
        begin = 1000 * step
        trace.step(step, begin, 990)
        for number in range(launches):
            at = begin + 10 + 20 * number
            trace.op(op, at, 15)
            trace.launch("kernel", at + 5, at + 8, 2)
    return trace.view()


@pytest.mark.parametrize("launches", [10, 20])
def test_each_launch_of_a_triton_kernel_costs_some_launch_calls_more(new_trace, launches: int) -> None:
    plain, compiled = (_view(new_trace, op, launches) for op in ("aten::relu", "triton_poi_fused_relu_0"))
    steps_ns = int(compiled.profile.iterations.duration_ns.mean())
    own = TRITON_CALLS * launches * 2000 / steps_ns
    assert unprofiled_share(plain, plain.selection()).expected == pytest.approx(1 - EVENTS_SHARE)
    assert unprofiled_share(compiled, compiled.selection()).expected == pytest.approx(1 - EVENTS_SHARE - own)
