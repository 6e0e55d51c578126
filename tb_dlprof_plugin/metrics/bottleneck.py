"""The CPU's own time per step: the lower bound that a faster GPU cannot improve."""

from __future__ import annotations

from tb_dlprof_plugin.model.intervals import covered, union
from tb_dlprof_plugin.model.profile import CallKind, Ints
from tb_dlprof_plugin.profile_view import ProfileView

WAIT_AFTER_NS = 50_000
"""A runtime call that lasts longer waits for the GPU from here on: a launch takes 5 to 10 us, and HTA holds calls over
50 us for notable (its runtime cutoff)."""


def host_waits_ns(view: ProfileView) -> Ints:
    """Time of each iteration, as the CPU ran it, in which the CPU waited for a GPU inside CUDA calls (ns).

    Synchronising calls wait by definition; a launch waits when the queue is full. A long call during which nothing runs
    on any GPU waits for none: it loads code or allocates.
    """
    profile = view.profile
    calls, launches = profile.calls, profile.launches
    waits = (profile.ops.kind[calls.op] == CallKind.RUNTIME) & (calls.duration_ns > WAIT_AFTER_NS)
    start, stop = calls.start_ns[waits] + WAIT_AFTER_NS, calls.start_ns[waits] + calls.duration_ns[waits]
    running = union(launches.start_ns, launches.start_ns + launches.duration_ns)
    for_gpu = covered(running, start, stop) > 0
    waiting = union(start[for_gpu], stop[for_gpu])
    return covered(waiting, profile.iterations.host_start_ns, profile.iterations.host_stop_ns)


def host_needs_ns(view: ProfileView) -> Ints:
    """CPU time of each iteration if the GPU took no time (ns, as profiled)."""
    iterations = view.profile.iterations
    return iterations.host_stop_ns - iterations.host_start_ns - host_waits_ns(view)
