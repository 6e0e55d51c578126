"""The most that eligible ops could gain: their kernel time less the least time that their FLOPs and bytes need.

For reasons whose remedy has no known factor: after any change, an op is not faster than the GPU's peak rate and memory
bandwidth allow, in the fastest precision that it could run in.
"""

from __future__ import annotations

from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.metrics.roofline import roofline
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@per_selection
def largest_gains(view: ProfileView, selection: Selection) -> dict[int, int]:
    """By op group the kernel time (ns) that it could gain at most; a group whose bound is unknown is absent.

    Unknown are those whose FLOPs, bytes or peak rate are, those with eligible kernels outside routines whose FLOPs
    count, and those that are as fast as their least time already: what that counts does not hold for them (a Winograd
    convolution multiplies less often, a causal mask saves work, data may come from the L2 cache).
    """
    eligible = op_totals(view, selection).eligible_ns
    gains = {}
    for row in roofline(view, selection).rows:
        if row.possible_percent is None or row.time_ns != eligible[row.group]:
            continue
        gain = round(row.time_ns * (1 - row.possible_percent / 100))
        if gain > 0:
            gains[row.group] = gain
    return gains
