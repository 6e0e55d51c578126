"""Calls of the CUDA runtime and driver (or HIP) by name: what nvprof lists as "API calls"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import Figure, figure, sums
from tb_dlprof_plugin.model.profile import CallKind, Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class ApiCalls:
    """One row per name of call, by falling time; times in ns.

    ``self_ns`` leaves out calls inside, such as a driver call in a runtime call: it sums to the time spent in calls.
    ``launched`` counts the GPU activities that the calls launched, in whatever iteration they ran.
    """

    names: list[str]
    time: Figure
    self_ns: Ints
    launched: Ints

    def __len__(self) -> int:
        return len(self.names)


@per_selection
def api_calls(view: ProfileView, selection: Selection) -> ApiCalls:
    """The calls that began in the selected iterations."""
    profile = view.profile
    ops, calls = profile.ops, profile.calls
    rows = np.flatnonzero((ops.kind == CallKind.RUNTIME)[calls.op] & view.selected_calls(selection))
    distinct, name = np.unique(ops.name[calls.op[rows]], return_inverse=True)
    name = name.reshape(-1)
    time = figure(name, calls.duration_ns[rows], len(distinct))
    order = np.argsort(-time.total, kind="stable")
    launches = np.bincount(profile.launches.call[profile.launches.call >= 0], minlength=len(calls))[rows]
    return ApiCalls(
        names=[profile.strings[i] for i in distinct[order].tolist()],
        time=time.ordered(order),
        self_ns=sums(name, view.call_self_ns[rows], len(distinct))[order],
        launched=sums(name, launches, len(distinct))[order],
    )
