"""Sentences that several pages share: headlines with links, and texts on the step, the idle GPU, measured activity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.metrics.kernels import time_split
from tb_dlprof_plugin.metrics.share_range import ShareRange
from tb_dlprof_plugin.metrics.tensor_activity import NO_TENSOR_CORES_PERCENT, MeasuredActivity
from tb_dlprof_plugin.model.formatting import duration, share, share_between, short_kernel_name
from tb_dlprof_plugin.model.profile import Verdict
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.estimate import StepEstimate
from tb_dlprof_plugin.simulation.step_detection import unmarked

_MOSTLY = 0.5
_CONTRADICTED_PERCENT = 10.0
"""Of the GPU time, on kernels of Tensor Cores by their names, that a counter of 0 contradicts."""

Named = Literal["op", "op_type", "module", "kernel", ""]


class TextPart(msgspec.Struct, frozen=True):
    """A piece of a sentence. With a ``kind`` it is the name of the item of this ``id``; an op type's id is its name."""

    text: str
    kind: Named
    id: str


def plain(text: str) -> TextPart:
    """Text that leads nowhere."""
    return TextPart(text, "", "")


def text_of(parts: Iterable[TextPart]) -> str:
    """The whole sentence."""
    return "".join(part.text for part in parts)


def named_shares(
    items: Iterable[tuple[str, str, float | None]], kind: Named, unit: str, digits: int = 0
) -> list[TextPart]:
    """Such as "conv2d takes 40 % of the GPU time, linear 20 %", from name, id and percentage of each item."""
    parts: list[TextPart] = []
    for name, id, percent in items:
        took = share(percent, digits)
        first = [] if parts else [TextPart(name, kind, id), plain(f" takes {took} of the {unit} time")]
        parts += first or [plain(", "), TextPart(name, kind, id), plain(f" {took}")]
    return parts


def share_words(percent: float | None, possible: ShareRange | None) -> str:
    """Such as "41 %"; "67 to 91 %" where a part is unknown, "an unknown share" where all is."""
    return share(percent) if percent is not None or possible is None else share_between(possible.low, possible.high)


def step_words(estimate: StepEstimate) -> str:
    """Such as "timed without the profiler; 67.4 ms while recorded"."""
    if estimate.as_recorded:
        return estimate.words
    return f"{estimate.words}; {duration(estimate.recorded_ns)} while recorded"


def idle_words(view: ProfileView, selection: Selection, cpu: str = "the CPU") -> str | None:
    """Such as "waits for the CPU 43 %"; None without a GPU, and where it is idle for less than 1 % of the step.

    Args:
        view: the recording.
        selection: the iterations.
        cpu: what the GPU waits for where the CPU sets the pace.
    """
    steps = step_totals(view, selection)
    idle, percent = steps.gpu_idle_ns, steps.gpu_idle_percent
    if idle is None or percent is None or percent < 1:
        return None
    if (steps.category_ns["dataloader"] or 0) > _MOSTLY * idle:
        return f"waits for data {share(percent)}"
    # A whole program waits for more than the CPU's launching: it loads a model, reads files.
    from tb_dlprof_plugin.metrics.iteration_pace import Pace
    from tb_dlprof_plugin.metrics.step_idle import step_idle

    late = step_idle(view, selection).pace in (Pace.CPU, Pace.MIXED) and not unmarked(view)
    return f"waits for {cpu} {share(percent)}" if late else f"is idle {share(percent)}"


def measured_sentences(view: ProfileView, selection: Selection, measured: MeasuredActivity) -> list[str]:
    """What was measured, and where it contradicts what the names of kernels say."""
    split = time_split(view, selection)
    where = "the recording" if unmarked(view) else "the selected iterations"
    by_names = split.tensor_core_percent
    beside = "" if by_names is None else f"; kernels that use them by their names take {by_names:.1f} % of the GPU time"
    said = (
        f"Measured: the Tensor Cores were {measured.active_percent:.1f} % busy over {where}, idle time included "
        f"({measured.metric}){beside}."
    )
    against = _contradiction(view, measured) or _overall(measured, by_names)
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


def _overall(measured: MeasuredActivity, by_names: float | None) -> str:
    if by_names == 0 and measured.active_percent >= NO_TENSOR_CORES_PERCENT:
        return "The counter contradicts the verdicts: by their names no kernel uses Tensor Cores."
    if by_names is not None and by_names >= _CONTRADICTED_PERCENT and not measured.active_percent:
        return "The counter contradicts the verdicts: it saw no work on Tensor Cores."
    return ""
