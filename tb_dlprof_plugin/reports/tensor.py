"""DLProf's Tensor Core Report (User Guide 1.8, section 10.6): every eligible op and how it uses Tensor Cores.

The columns are DLProf's, with five added: ``Unknown GPU Time``, of kernels whose Tensor Core use is unknown,
``Reason``, ``Could Save``, the estimate for remedies with a known factor, ``Could Save At Most``, the bound for the
others, and ``Op GPU Time``, that of the Detailed Report. The other GPU times (ns) are of the kernels inside the parts
of an op that can use Tensor Cores: casts around them are not counted, as DLProf counted them as ops of their own.
"""

from __future__ import annotations

from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.model.direction import DLPROF_DIRECTIONS
from tb_dlprof_plugin.pages.common import Verdict
from tb_dlprof_plugin.pages.tensor_cores import TensorCoreOp, eligible_kernel_names, tensor_cores_page
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.detail import ANSWERS
from tb_dlprof_plugin.reports.table import Cell, Report, json_key
from tb_dlprof_plugin.store.run_ref import RunRef

COLUMNS = (
    "Op ID", "Op Name", "Direction", "Op Type", "Uses TC", "Total GPU Time", "TC GPU Time", "Non-TC GPU Time",
    "TC Utilization (%)", "Total Kernel Count", "TC Kernel Count", "TC Kernel Names", "Non-TC Kernel Count",
    "Non-TC Kernel Names", "Unknown GPU Time", "Reason", "Could Save", "Could Save At Most",
    "Op GPU Time",
)  # fmt: skip
KEYS = {
    name: f"{json_key(name)}_ns"
    for name in (
        "Total GPU Time", "TC GPU Time", "Non-TC GPU Time", "Unknown GPU Time", "Could Save", "Could Save At Most",
        "Op GPU Time",
    )
}  # fmt: skip
_NO_GPU = "The report has no rows: nothing ran on a GPU, so no op launched a kernel."


def tensor_report(view: ProfileView, ref: RunRef, selection: Selection) -> Report:
    """One row per eligible op that launched a kernel in the selected iterations, in the order of the page."""
    names = eligible_kernel_names(view, selection)
    gpu_ns = dict(zip(view.groups.ids, op_totals(view, selection).gpu_ns.tolist(), strict=True))
    ops = tensor_cores_page(view, ref, selection).ops
    notes = () if view.profile.has_gpu else (_NO_GPU,)
    return Report(COLUMNS, [_row(op, names[op.id], gpu_ns[op.id]) for op in ops], KEYS, notes)


def _row(op: TensorCoreOp, kernels: dict[Verdict, list[str]], op_gpu_ns: int) -> tuple[Cell, ...]:
    return (
        op.id, op.name, DLPROF_DIRECTIONS[op.direction], op.op_type, ANSWERS[op.using_tc], op.gpu_ns, op.tc_ns,
        op.non_tc_ns, op.utilization_percent, sum(map(len, kernels.values())), len(kernels["yes"]), kernels["yes"],
        len(kernels["no"]), kernels["no"], op.unknown_ns, op.reason, op.saved_ns, op.at_most_ns, op_gpu_ns,
    )  # fmt: skip
