"""A forecast in one sentence, the same on every page: what would change, from what to what, and the bottleneck."""

from __future__ import annotations

from tb_dlprof_plugin.model.formatting import interval
from tb_dlprof_plugin.model.speedup_change import CANNOT_TELL
from tb_dlprof_plugin.planning import Forecast

SAME = 0.03
"""A predicted difference below this share is called none: CPU-paced steps vary more from run to run."""
LITTLE = 0.1
"""Where the interval holds no change, the step changes little if neither end differs by more: ours."""
LIMITS = {
    "gpu": "the GPU's kernels set the pace",
    "cpu": "the CPU sets the pace: it launches kernels more slowly than the GPU runs them",
    "dataloader": "the loading of data sets the pace",
    "both": "CPU and GPU wait for each other in turns",
}
_MS = 1e6


def gains(found: Forecast) -> bool:
    """Whether the step gets notably shorter, as far as the interval tells."""
    return found.speedup >= 1 + SAME and found.direction == "faster"


def headline(found: Forecast) -> str:
    """One sentence: "BF16 would make the step 2.62 times as fast: ..."."""
    name = found.target.precision.upper()
    times = (
        f"{found.predicted_ns / _MS:.2f} ms a step "
        f"({interval(found.low_ns / _MS, found.high_ns / _MS, '{:.2f}'.format)}), "
        f"{found.base_ns / _MS:.2f} ms now"
    )
    least, most = found.speedup_interval
    if found.direction in CANNOT_TELL and (most > 1 + LITTLE or least < 1 / (1 + LITTLE)):
        return f"Cannot tell whether {name} makes the step shorter: {times}. Record both and compare them."
    if abs(found.speedup - 1) < SAME:
        change = "would change little"
    elif found.speedup > 1:
        change = f"would make the step {found.speedup:.2f} times as fast"
    else:
        change = f"would make the step {100 * (1 / found.speedup - 1):.0f} % longer"
    return f"{name} {change}: {times}; {LIMITS[found.limited_by]}."
