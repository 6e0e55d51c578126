"""DLProf's Kernel Report (User Guide 1.8, section 10.5): each kernel of each op with its GPU and API times.

Copies and sets are rows, too. DLProf's columns are followed by those that PyTorch adds.
"""

from __future__ import annotations

from tb_dlprof_plugin.metrics.op_kernels import op_kernels
from tb_dlprof_plugin.pages.common import KernelText
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.detail import ANSWERS
from tb_dlprof_plugin.reports.op_names import op_names
from tb_dlprof_plugin.reports.table import Report
from tb_dlprof_plugin.store.run_ref import RunRef

COLUMNS = (
    "Kernel Name", "Op ID", "Op Name", "Direction", "Uses TC", "Total GPU Time (ns)", "Avg. GPU Time (ns)",
    "Min GPU Time (ns)", "Max GPU Time (ns)", "Total API Time (ns)", "Avg. API Time (ns)", "Min API Time (ns)",
    "Max API Time (ns)",
    "No. Calls", "Kind", "Family", "Precision", "Occupancy (%)", "Copied or Set (bytes)", "Module", "Long Kernel Name",
)  # fmt: skip
NO_GPU = "The report has no rows: nothing ran on a GPU."


def kernel_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """One row per kernel and op of the selected iterations, by falling GPU time."""
    names, found = op_names(view), op_kernels(view, selection)
    rows = []
    for row in range(len(found)):
        kernel, op = KernelText(view, int(found.kernel[row])), names[int(found.op[row])]
        rows.append(
            (
                kernel.short_name, op.id, op.name, op.direction, ANSWERS[kernel.tensor_core], *found.gpu.of(row),
                *found.api.of(row), int(found.launches[row]), kernel.kind, kernel.family, kernel.precision or None,
                found.occupancy_percent[row], int(found.bytes[row]) or None, op.module, kernel.name,
            )
        )  # fmt: skip
    return Report(COLUMNS, list(rows), notes=() if view.profile.has_gpu else (NO_GPU,))
