"""The time of torch.compile's code by launch of its wrappers: known of a module, shared by several, or unknown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.amp_calls import compiled_calls, in_calls
from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.tree import inherit
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection, per_view


@dataclass(frozen=True, slots=True)
class CompiledTime:
    """Times are sums over kernels, copies and sets (ns); without a GPU over the launches' calls on the CPU.

    ``region_ns == module_ns + shared_ns + without_module_ns + unknown_ns``.

    Attributes:
        launches: per row of `CompiledKernels` how often it ran.
        time_ns: per row of `CompiledKernels` its time.
        region_ns: all that ran in compiled code.
        module_ns: what a single module computes.
        shared_ns: kernels that compute ops of several modules.
        without_module_ns: kernels whose launch is known, but not its modules.
        unknown_ns: what is no known launch of a wrapper.
    """

    launches: Ints
    time_ns: Ints
    region_ns: int
    module_ns: int
    shared_ns: int
    without_module_ns: int
    unknown_ns: int


@per_view
def compiled_kernel_of_call(view: ProfileView) -> Ints:
    """Per row of `Profile.calls` the row of `CompiledKernels` that it is of, -1 for none."""
    own = view.profile.ops.compiled[view.profile.calls.op]
    return inherit(own, own >= 0, view.call_parent)


@per_selection
def compiled_time(view: ProfileView, selection: Selection) -> CompiledTime | None:
    """The time of compiled code in the selected iterations; None where none ran."""
    profile = view.profile
    calls, count = profile.calls, len(profile.compiled_kernels)
    compiled = compiled_calls(view)
    own = profile.ops.compiled[calls.op]
    called = np.flatnonzero((own >= 0) & view.selected_calls(selection))
    if not (compiled & view.selected_calls(selection)).any():
        return None
    if profile.has_gpu:
        launches = profile.launches
        rows = np.flatnonzero(view.selected_launches(selection) & in_calls(compiled, launches.call))
        kernel, time_ns = compiled_kernel_of_call(view)[launches.call[rows]], launches.duration_ns[rows]
    else:
        rows = np.flatnonzero(compiled & view.selected_calls(selection))
        kernel, time_ns = compiled_kernel_of_call(view)[rows], view.call_self_ns[rows]
    modules = take_or(profile.compiled_kernels.module_count, kernel, -1)

    def total(wanted: int) -> int:
        return int(time_ns[modules == wanted].sum())

    return CompiledTime(
        launches=np.bincount(own[called], minlength=count).astype(np.int64),
        time_ns=sums(kernel[kernel >= 0], time_ns[kernel >= 0], count),
        region_ns=int(time_ns.sum()),
        module_ns=total(1),
        shared_ns=int(time_ns[modules > 1].sum()),
        without_module_ns=total(0),
        unknown_ns=total(-1),
    )
