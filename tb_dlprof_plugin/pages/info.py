"""Contents of a trace: events, kernels, how much of their time is attributed to ops, repairs, notes."""

from __future__ import annotations

import msgspec
import numpy as np

from tb_dlprof_plugin.model.grouping import distinct
from tb_dlprof_plugin.model.profile import ATTRIBUTED, Attribution, KernelKind
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.common import NoteItem, note_items
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.step_detection import unmarked
from tb_dlprof_plugin.store.run_ref import RunRef


class Info(msgspec.Struct, frozen=True):
    """The totals of one recording. Times in ns, over the whole recording.

    ``events`` counts all events of the trace file and ``repaired`` the repaired ones, both None for a profile that
    an older version stored. Kernels are kernels alone; copies and sets are counted apart.
    ``attributed + orphan + unattributed_kernel_time_ns = kernel_time_ns``; ``by_time_kernel_time_ns`` is the part of
    the first that was attributed by the clock, because its launch lies in no range of its own thread.
    """

    run: str
    session: str
    rank: int
    cycle: int
    trace_file: str
    events: int | None
    repaired: int | None
    steps: int
    steps_found_by: str
    calls: int
    threads: int
    gpus: list[int]
    streams: int
    kernels: int
    kernel_time_ns: int
    attributed_kernel_time_ns: int
    by_time_kernel_time_ns: int
    orphan_kernel_time_ns: int
    unattributed_kernel_time_ns: int
    copies: int
    copy_time_ns: int
    sets: int
    set_time_ns: int
    memory_events: int
    notes: list[NoteItem]


def info_page(view: ProfileView, ref: RunRef) -> Info:
    """The totals of a profile."""
    profile, launches = view.profile, view.profile.launches
    kind = profile.kernels.kind[launches.kernel]
    amounts = {k: (kind == k, int(launches.duration_ns[kind == k].sum())) for k in KernelKind}
    kernels, kernel_time = amounts[KernelKind.KERNEL]

    def kernel_ns(*attribution: Attribution) -> int:
        return int(launches.duration_ns[kernels & np.isin(launches.attribution, attribution)].sum())

    return struct_from(
        Info,
        ref,
        trace_file=profile.source.trace_file,
        events=profile.source.trace_events,
        repaired=profile.source.repaired_events,
        steps=0 if unmarked(view) else len(profile.iterations),
        steps_found_by=profile.iterations.found_by,
        calls=len(profile.calls),
        threads=len(distinct(profile.calls.thread)),
        gpus=list(profile.iterations.gpu_ids),
        streams=len(np.unique(np.stack((launches.device, launches.stream)), axis=1).T),
        kernels=int(kernels.sum()),
        kernel_time_ns=kernel_time,
        attributed_kernel_time_ns=kernel_ns(*ATTRIBUTED),
        by_time_kernel_time_ns=kernel_ns(Attribution.BY_TIME),
        orphan_kernel_time_ns=kernel_ns(Attribution.ORPHAN),
        unattributed_kernel_time_ns=kernel_ns(Attribution.UNATTRIBUTED),
        copies=int(amounts[KernelKind.MEMCPY][0].sum()),
        copy_time_ns=amounts[KernelKind.MEMCPY][1],
        sets=int(amounts[KernelKind.MEMSET][0].sum()),
        set_time_ns=amounts[KernelKind.MEMSET][1],
        memory_events=len(profile.memory),
        notes=note_items(view),
    )
