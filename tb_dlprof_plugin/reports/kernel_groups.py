"""GPU work by group: matrix products, convolutions by algorithm, pooling, copies by direction, collectives ..."""

from __future__ import annotations

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.kernel_groups import kernel_groups
from tb_dlprof_plugin.names.kernel_groups import GROUPS
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.kernel import NO_GPU
from tb_dlprof_plugin.reports.table import Report
from tb_dlprof_plugin.store.run_ref import RunRef

COLUMNS = (
    "Kernel Group", "Group ID", "Time (%)", "Total GPU Time (ns)", "Avg. GPU Time (ns)", "Min GPU Time (ns)",
    "Max GPU Time (ns)", "No. Calls", "No. Kernels", "TC GPU Time (ns)", "Unknown GPU Time (ns)",
)  # fmt: skip


def kernel_groups_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """One row per group that occurs, by falling GPU time; the percentage is of the time of all GPU work."""
    found = kernel_groups(view, selection)
    whole = int(found.gpu.total.sum())
    return Report(
        COLUMNS,
        [
            (
                GROUPS[name],
                name,
                percent(int(found.gpu.total[row]), whole),
                *found.gpu.of(row),
                int(found.gpu.count[row]),
                int(found.kernels[row]),
                int(found.tensor_core_ns[row]),
                int(found.unknown_ns[row]),
            )
            for row, name in enumerate(found.names)
        ],
        notes=() if view.profile.has_gpu else (NO_GPU,),
    )
