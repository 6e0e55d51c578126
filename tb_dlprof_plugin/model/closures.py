"""When the closure ends that an optimizer's step was given: the part of the step before is not the optimizer's work."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.profile import Ints


def closure_ends(start_ns: Ints, stop_ns: Ints, mark_start_ns: Ints, mark_stop_ns: Ints) -> Ints:
    """When the closure of each optimizer's step ends.

    Args:
        start_ns: of the optimizers' steps, ascending.
        stop_ns: the same.
        mark_start_ns: of calls of modules and of backward nodes, on any thread, in any order.
        mark_stop_ns: the same.

    Returns:
        When the last of those that begin in the step ends; the step's own start where none does.
    """
    result = start_ns.copy()
    if len(start_ns):
        at = np.searchsorted(start_ns, mark_start_ns, side="right") - 1
        inside = (at >= 0) & (mark_start_ns < stop_ns[np.maximum(at, 0)])
        np.maximum.at(result, at[inside], mark_stop_ns[inside])
    return np.minimum(result, stop_ns)
