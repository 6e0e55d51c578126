"""What a step consists of, as slices and as a sentence: the answer to "where did the time go?"."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.metrics.iterations import StepTotals, percent, shows_data_loading, step_totals
from tb_dlprof_plugin.metrics.kernels import time_split
from tb_dlprof_plugin.metrics.step_account import step_account, whole_numbers
from tb_dlprof_plugin.metrics.step_phases import step_parts
from tb_dlprof_plugin.metrics.tensor_cores import tensor_core_totals
from tb_dlprof_plugin.metrics.trust import trust
from tb_dlprof_plugin.model.direction import with_direction
from tb_dlprof_plugin.model.formatting import duration, share, uncapitalized
from tb_dlprof_plugin.model.frameworks import loader_title
from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.pages.common import Slice
from tb_dlprof_plugin.pages.ops import op_rows
from tb_dlprof_plugin.pages.quantities import TENSOR_CORE_SHARE, TENSOR_CORE_UTILIZATION
from tb_dlprof_plugin.pages.sentences import idle_words, share_words
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.step_detection import unmarked

ROLE_LABELS = {
    Role.FORWARD: "Forward",
    Role.BACKWARD: "Backward",
    Role.OPTIMIZER: "Optimizer",
    Role.DATALOADER: "DataLoader",
    Role.OTHER: "Other",
}
_LEAST_PERCENT = 0.5
"""Of the step: smaller parts are left out of the sentence."""


def account_slices(view: ProfileView, selection: Selection) -> list[Slice]:
    """A step without the profiler by bucket, per step; without a GPU by the parts that the CPU works on.

    Whole nanoseconds that sum to the step: those of the waterfall on the Compare page.
    """
    step_ns = round(step_totals(view, selection).estimate.ns)
    if not view.profile.has_gpu:
        parts = step_parts(view, selection)
        labels = part_labels(view, parts)
        times = np.array([value or 0 for value in parts.values()]) / selection.count
        whole = dict(zip(parts, whole_numbers(times, step_ns).tolist(), strict=True))
        return [
            _slice(part.name.lower(), labels[part], None if parts[part] is None else whole[part], step_ns)
            for part in parts
        ]
    account = step_account(view, selection)
    times_ns: dict[str, int | None] = dict(account.whole_ns(step_ns))
    names = dict(account.labels)
    if not time_split(view, selection).tensor_cores_known:
        times_ns["other_compute"] = (times_ns["other_compute"] or 0) + (times_ns["tensor_core"] or 0)
        times_ns["tensor_core"] = None
        names["other_compute"] = kernels_label(view)
    if not shows_data_loading(view):
        times_ns["dataloader"] = None
    return [_slice(key, names[key], value, step_ns) for key, value in times_ns.items()]


def kernels_label(view: ProfileView) -> str:
    """Of all kernels where it is unknown which of them use Tensor Cores, or none can."""
    return "Kernels" if view.profile.of_amd else "Kernels, on Tensor Cores or not"


def part_labels(view: ProfileView, parts: dict[Role, int | None]) -> dict[Role, str]:
    """The names of the parts of a step; the rest holds the forward pass where its ops are unknown."""
    return role_labels(view) | ({Role.OTHER: "Forward and other"} if parts[Role.FORWARD] is None else {})


def role_labels(view: ProfileView) -> dict[Role, str]:
    """The same where the forward pass is known, in words of the framework that was recorded."""
    return ROLE_LABELS | {Role.DATALOADER: loader_title(view.profile.source.framework)}


def headline(view: ProfileView, selection: Selection) -> str:
    """Where the time of a step goes, in one sentence; if the recording is not reliable, the sentence says so."""
    steps = step_totals(view, selection)
    # Without steps the sentence is about the recording, of which all is known.
    reliable = trust(view, selection).verdict != "poor" or unmarked(view)
    # The length of a step that is not known well is given with its interval, which a sentence has no room for.
    length = duration(steps.average_ns) if reliable else ""
    tell = _on_gpu if view.profile.has_gpu else _on_cpu
    text = tell(view, selection, length)
    return text if reliable else f"Not reliable: {uncapitalized(text)}"


def _slice(key: str, label: str, value_ns: int | None, step_ns: int) -> Slice:
    return Slice(key, label, value_ns, percent(value_ns, step_ns))


def _on_gpu(view: ProfileView, selection: Selection, length: str) -> str:
    steps = step_totals(view, selection)
    step = f"each {length} step" if length else "each step"
    if unmarked(view):
        step = f"the recording ({length}, no steps marked)"
    parts, idle = _works(view, selection, steps), idle_words(view, selection)
    if idle is not None and (steps.gpu_idle_percent or 0.0) > (steps.gpu_utilization or 0.0):
        parts = [idle, *parts]
    elif idle is not None:
        parts = [*parts, idle]
    first, *rest = parts
    others = "".join(f", {part}" for part in rest[:-1]) + (f" and {rest[-1]}" if rest else "")
    return f"The GPU {first} of {step}{others}.{_on_tensor_cores(view, selection)}"


def _works(view: ProfileView, selection: Selection, steps: StepTotals) -> list[str]:
    """Such as "works 94 %"; a GPU that only communicates computes nothing, and may wait for other ranks."""
    alone = step_account(view, selection).whole_ns(steps.average_ns)["communication"]
    exchanged = percent(alone, steps.average_ns) or 0.0
    if exchanged < _LEAST_PERCENT:
        return [f"works {share(steps.gpu_utilization)}"]
    computes = max((steps.gpu_utilization or 0.0) - exchanged, 0.0)
    return [f"computes or copies {share(computes)}", f"is in collectives alone {share(exchanged)}"]


def _on_tensor_cores(view: ProfileView, selection: Selection) -> str:
    """What is known of Tensor Cores, with its base; "" of a GPU of AMD's, which has none to use."""
    if view.profile.of_amd:
        return ""
    used, possible = TENSOR_CORE_UTILIZATION.value(view, selection), tensor_core_totals(view, selection).possible
    if used is not None or possible is not None:
        return f" Tensor Cores run for {share_words(used, possible)} of the kernel time that could use them."
    taken = share_words(TENSOR_CORE_SHARE.value(view, selection), time_split(view, selection).possible)
    return f" Tensor Core kernels take {taken} of the GPU time."


def _on_cpu(view: ProfileView, selection: Selection, length: str) -> str:
    steps = step_totals(view, selection)
    parts = step_parts(view, selection)
    labels = part_labels(view, parts)
    shares = {part: percent(value, steps.wall_ns) or 0.0 for part, value in parts.items()}
    named = [
        f"{share(shares[part])} {labels[part] if part == Role.DATALOADER else labels[part].lower()}"
        for part in sorted(shares, key=lambda part: -shares[part])
        if shares[part] >= _LEAST_PERCENT
    ]
    text = f"Each step takes {length} on the CPU" if length else "Each step runs on the CPU"
    if unmarked(view):
        text = f"The recording takes {length} on the CPU (no steps marked)"
    text += f": {', '.join(named)}" if named else ""
    top = next(iter(op_rows(view, selection)), None)
    if top is None or not top.cpu_total_ns:
        return f"{text}."
    of_step = share(percent(top.cpu_total_ns, steps.recorded_wall_ns))
    return f"{text}; the op with the most time is {with_direction(top.name, top.direction)}, {of_step} of it."
