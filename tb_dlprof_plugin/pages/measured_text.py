"""Sentences on how busy the GPU's own counter says that the Tensor Cores were."""

from __future__ import annotations

from tb_dlprof_plugin.metrics.kernels import time_split
from tb_dlprof_plugin.metrics.tensor_activity import (
    NO_TENSOR_CORES_PERCENT,
    MeasuredActivity,
)
from tb_dlprof_plugin.model.formatting import short_kernel_name
from tb_dlprof_plugin.model.profile import Verdict
from tb_dlprof_plugin.profile_view import ProfileView, Selection


def measured_sentences(view: ProfileView, selection: Selection, measured: MeasuredActivity) -> list[str]:
    """What was measured, and where it contradicts what the names of kernels say."""
    split = time_split(view, selection)
    where = "the recording" if view.profile.iterations.found_by == "none" else "the selected iterations"
    share = split.tensor_core_percent
    beside = f"; kernels that use them by their names take {share:.1f} % of the GPU time" if share is not None else ""
    said = (
        f"Measured: the Tensor Cores were {measured.active_percent:.1f} % busy over {where}, idle time included "
        f"({measured.metric}){beside}."
    )
    against = _contradiction(view, measured) or _overall(measured, share)
    return [said, against] if against else [said]


def _contradiction(view: ProfileView, measured: MeasuredActivity) -> str:
    if not measured.contradicting:
        return ""
    first, others = measured.contradicting[0], len(measured.contradicting) - 1
    kernels = view.profile.kernels
    name = short_kernel_name(view.profile.strings[kernels.name[first.kernel]])
    uses = "uses" if int(kernels.tensor_core[first.kernel]) == Verdict.YES else "does not use"
    more = "" if not others else " One more kernel differs." if others == 1 else f" {others} more kernels differ."
    return (
        f"The counter contradicts the verdict of {name}: by its name it {uses} Tensor Cores, but it kept them "
        f"{first.active_percent:.1f} % busy.{more}"
    )


def _overall(measured: MeasuredActivity, share: float | None) -> str:
    if share == 0 and measured.active_percent >= NO_TENSOR_CORES_PERCENT:
        return "The counter contradicts the verdicts: by their names no kernel uses Tensor Cores."
    if share is not None and share >= _MUCH and not measured.active_percent:
        return "The counter contradicts the verdicts: it saw no work on Tensor Cores."
    return ""


_MUCH = 10.0
"""Percent of the GPU time on kernels of Tensor Cores that a counter of 0 contradicts."""
