"""Why an op's matrix work is off the Tensor Cores, in a sentence."""

from __future__ import annotations

from tb_dlprof_plugin.metrics.tensor_core_reasons import off_tensor_cores
from tb_dlprof_plugin.model.formatting import short_kernel_name
from tb_dlprof_plugin.names.tensor_core_reasons import Reason
from tb_dlprof_plugin.pages.common import Verdict
from tb_dlprof_plugin.profile_view import ProfileView, Selection

NEVER = ("gpu_has_none", "no_tensor_core_kernel", "dtype")
"""Reasons that also apply to matrix work that is not eligible."""


def main_reason(view: ProfileView, selection: Selection, group: int, eligible: Verdict) -> str:
    """Why most of the op group's matrix work is off the Tensor Cores, or cannot be on them; "" if unknown."""
    for item in off_tensor_cores(view, selection).off:
        told = item.eligible if eligible == "yes" else item.reason.id in NEVER
        if item.group == group and told:
            return with_short_kernel(item.reason)
    return ""


def with_short_kernel(reason: Reason) -> str:
    """The sentence, with the function's name alone of a kernel."""
    return reason.text.replace(reason.kernel, short_kernel_name(reason.kernel)) if reason.kernel else reason.text
