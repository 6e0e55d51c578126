"""What the Tensor Cores page says first: how far they are used, and of what."""

from __future__ import annotations

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.kernels import time_split
from tb_dlprof_plugin.metrics.tensor_cores import TensorCoreTotals
from tb_dlprof_plugin.model.formatting import duration, share
from tb_dlprof_plugin.names.tensor_core_eligibility import tensor_core_precisions
from tb_dlprof_plugin.pages.common import NO_GPU, Verdict
from tb_dlprof_plugin.pages.sentences import share_words
from tb_dlprof_plugin.pages.tensor_core_reasons import ReasonTotal
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.step_detection import unmarked


def headline(
    view: ProfileView,
    selection: Selection,
    use: TensorCoreTotals,
    using: dict[str, Verdict],
    by_reason: list[ReasonTotal],
) -> str:
    """The answer of the page in a few sentences.

    Args:
        view: the recording.
        selection: the iterations.
        use: their totals.
        using: by id of each eligible op, whether it uses Tensor Cores.
        by_reason: why kernel time is off them.
    """
    if not view.profile.has_gpu:
        return f"{NO_GPU}, so there are no Tensor Cores to use."
    if view.profile.of_amd:
        return "The GPU is AMD's: its Matrix Cores are not recognised, so what is said of Tensor Cores does not apply."
    if view.tensor_core_capability is None and not use.using_ns:
        return "The GPU's compute capability was not recorded, so whether it has Tensor Cores is unknown."
    if view.tensor_core_capability is not None and not tensor_core_precisions(view.tensor_core_capability):
        return "This GPU has no Tensor Cores."
    if not use.eligible_ns:
        return _nothing_eligible(view, selection)
    rest = _without_op(use)
    if not using:
        main = _main_reason("Off them mostly", by_reason, view, selection)
        return f"No op was recorded around the kernels. By their names {_by_kernels(view, selection, use)}{main}"
    if use.utilization is None and use.possible is None:
        return f"{_ops(len(using))} could use Tensor Cores; what their kernels do is unknown.{rest}"
    if not use.using_ns and not use.unknown_ns:
        return f"{_ops(len(using))} could use Tensor Cores; none does.{rest}" + _main_reason(
            "Main reason", by_reason, view, selection
        )
    in_part = any(not reason.remark for reason in by_reason)
    main = _main_reason("Off them mostly", by_reason, view, selection)
    return f"{_runs(use)}; {_of_ops(using, in_part)}{rest}{main}"


def _nothing_eligible(view: ProfileView, selection: Selection) -> str:
    split = time_split(view, selection)
    if not split.tensor_cores_known:
        unknown = f"{share(split.unknown_percent)} of the kernel time is in kernels of unknown kind"
        return f"Whether any kernel could use Tensor Cores is unknown: {unknown}."
    if (view.selected_launches(selection) & (view.launch_group >= 0)).any():
        return "No op of the selected iterations could use Tensor Cores."
    return (
        "No op was recorded around the kernels. By their names none computes a matrix product, convolution or "
        "attention."
    )


def _ops(count: int) -> str:
    return "1 op" if count == 1 else f"{count} ops"


def _by_kernels(view: ProfileView, selection: Selection, use: TensorCoreTotals) -> str:
    if use.utilization is None and use.possible is None:
        return "whether they use Tensor Cores is unknown."
    if not use.using_ns and not use.unknown_ns:
        time = _per_step(view, selection, use.eligible_ns)
        return f"those that could use Tensor Cores take {time}; none does."
    return f"{_runs(use)}."


def _runs(use: TensorCoreTotals) -> str:
    how_long = share_words(None, use.possible) if use.utilization is None else f"{use.utilization:.1f} %"
    return f"Tensor Cores run for {how_long} of the kernel time that could use them"


def _of_ops(using: dict[str, Verdict], in_part: bool) -> str:
    verdicts = list(using.values())
    idle, unknown = verdicts.count("no"), verdicts.count("unknown")
    if idle:
        return f"{idle} of {len(using)} ops do not use them at all."
    if unknown:
        return f"for {unknown} of {len(using)} ops it is unknown."
    return f"every eligible op uses them{', some only in part' if in_part else ''}."


def _without_op(use: TensorCoreTotals) -> str:
    """The part of the eligible time that no row of the ops has."""
    if not use.without_op_ns:
        return ""
    part = share(percent(use.without_op_ns, use.eligible_ns))
    return f" Around kernels with {part} of that time no op was recorded."


def _main_reason(lead: str, by_reason: list[ReasonTotal], view: ProfileView, selection: Selection) -> str:
    """The main reason for time off the Tensor Cores, with its time per step."""
    if not by_reason:
        return ""
    first = max(by_reason, key=lambda total: total.time_ns)
    return f" {lead}: {first.label} ({_per_step(view, selection, first.time_ns, ' of kernel time')})."


def _per_step(view: ProfileView, selection: Selection, time_ns: int, what: str = "") -> str:
    per = "" if unmarked(view) else " a step"
    return f"{duration(time_ns / selection.count)}{what}{per}"
