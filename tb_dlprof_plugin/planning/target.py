"""The target of a forecast, and whether a run allows it: each refusal is one sentence that says what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tb_dlprof_plugin.metrics.needs import Need, missing
from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.metrics.roofline import gpu_name
from tb_dlprof_plugin.model.formatting import uncapitalized
from tb_dlprof_plugin.model.frameworks import PYTORCH, recording_of
from tb_dlprof_plugin.model.remedies import remedies_for, sentence
from tb_dlprof_plugin.model.visible import VisibleMessage
from tb_dlprof_plugin.names.gpu_peaks import Ceilings, ceilings_of
from tb_dlprof_plugin.names.tensor_core_eligibility import tensor_core_precisions
from tb_dlprof_plugin.planning.compiled import why_not
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.estimate import SHORTEST_STEP_NS, step_estimate

Precision = Literal["fp32", "tf32", "fp16", "bf16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

_HALF = ("fp16", "bf16")
_OWN = "In {} itself another batch size or GPU can be forecast."
_BASES = ("fp32", "tf32", "3xtf32")
_MOSTLY_BASE_PERCENT = 97.0
"""Of the matrix time, in `_BASES`: a run that is neither mostly FP32 nor mostly TF32 has some of each."""


class ForecastError(VisibleMessage, ValueError):
    """There is no forecast for this run; the message says why and what to do."""


@dataclass(frozen=True)
class Target:
    """The forecast step: its precision, batch size and GPU, and those of the run.

    ``batch_ratio`` is the new batch size over the run's, times that of tokens or pixels; ``ceilings`` are those of the
    run's GPU and ``new_ceilings`` those of the target. ``as_it_is``: the run computed in the half precision of the
    target, and only its batch size or GPU change.
    """

    precision: Precision
    batch_ratio: float
    gpu: str
    ceilings: Ceilings
    new_gpu: str
    new_ceilings: Ceilings
    as_it_is: bool = False


def target_of(view: ProfileView, precision: str, batch_size: int | None = None, gpu: str | None = None) -> Target:
    """Check the request against the recording.

    Raises:
        ForecastError: the run, the precision, the batch size or the GPU allows no forecast.
    """
    if precision not in PRECISIONS:
        raise ForecastError(f"there is no precision {precision!r}; there is {', '.join(PRECISIONS)}.")
    profile = view.profile
    if profile.source.framework != PYTORCH:
        raise ForecastError(
            "forecasts know what PyTorch's ops become in another precision, and "
            f"{recording_of(profile.source.framework)}; record it in both precisions and compare the runs."
        )
    if not profile.has_gpu:
        raise ForecastError("the run recorded no GPU work; forecasts are about kernels. Record it on a GPU.")
    if why := missing(view, view.selection(), Need.ITERATIONS):
        raise ForecastError(uncapitalized(why))
    name = gpu_name(view)
    ceilings = ceilings_of(name)
    if ceilings is None or ceilings.fp32 is None:
        known = f"the peak rates of {name!r} are not known" if name else "the run does not say which one GPU it used"
        raise ForecastError(f"{known}, and a forecast needs them (docs/metrics.md lists the GPUs).")
    mode = precision_mode(view)
    as_it_is = precision in _HALF and mode.precision == precision and bool(batch_size or gpu)
    if not as_it_is:
        _check_precision(view)
    _check_as_it_is(view, precision)
    if not profile.ops.shapes.any():
        raise ForecastError(
            sentence("the shapes of the ops' inputs were not recorded", remedies_for(profile.source).shapes)
        )
    _check_launches(view)
    if step_estimate(view, view.selection()).ns < SHORTEST_STEP_NS:
        raise ForecastError("its step took no time: record more iterations.")
    capability = view.tensor_core_capability
    new_ceilings = ceilings if gpu is None else _ceilings_of(gpu)
    if precision in ("fp16", "bf16", "tf32"):
        rate = new_ceilings.flops_per_second(precision, tensor_cores=True)
        supported = gpu is not None or precision in tensor_core_precisions(capability) or capability is None
        if rate is None or not supported:
            raise ForecastError(f"the {gpu or name} has no Tensor Cores for {precision.upper()}.")
    return Target(precision, _batch_ratio(view, batch_size), name, ceilings, gpu or name, new_ceilings, as_it_is)


def _check_launches(view: ProfileView) -> None:
    """Check that what launched the kernels is known, and is one process on one GPU."""
    profile, launches = view.profile, view.profile.launches
    gpus = len(profile.iterations.gpu_ids)
    if gpus > 1:
        raise ForecastError(f"one process used {gpus} GPUs, and a forecast is about one: record a process per GPU.")
    inside = view.launch_iteration >= 0
    total = int(launches.duration_ns[inside].sum())
    if 2 * total < int(launches.duration_ns.sum()) or not total:
        raise ForecastError("most of its GPU work was launched before the recording began: record more iterations.")
    if why := why_not(view):
        raise ForecastError(why)


def _check_precision(view: ProfileView) -> None:
    """Check that the run computed in FP32, TF32, or some of each: both have FP32 tensors, and autocast changes both."""
    mode = precision_mode(view)
    if not mode.precision:
        raise ForecastError("the precision of the run is unknown, and a forecast starts from FP32 or TF32.")
    base = sum(share.percent for share in mode.shares if share.precision in _BASES)
    if mode.precision not in ("fp32", "tf32") and base < _MOSTLY_BASE_PERCENT:
        raise ForecastError(
            f"the run computed in {mode.label or mode.precision.upper()}, and a forecast starts from FP32 or TF32: "
            "record one without autocast."
            + (f" {_OWN.format(mode.precision.upper())}" if mode.precision in _HALF else "")
        )


def _check_as_it_is(view: ProfileView, precision: str) -> None:
    mode = precision_mode(view)
    if precision == "fp32" and mode.precision != "fp32":
        raise ForecastError(
            f"the run computed in {mode.label or mode.precision.upper()}, and what it would take in FP32 is not "
            "forecast: tf32 stands for the run as it is."
        )


def _ceilings_of(gpu: str) -> Ceilings:
    ceilings = ceilings_of(gpu)
    if ceilings is None or ceilings.fp32 is None:
        raise ForecastError(
            f"the peak rates of {gpu!r} are not known; name a GPU as CUDA does, such as 'NVIDIA A100-SXM4-80GB' "
            "(docs/metrics.md lists them)."
        )
    return ceilings


def _batch_ratio(view: ProfileView, batch_size: int | None) -> float:
    if batch_size is None:
        return 1.0
    if batch_size < 1:
        raise ForecastError("a batch has at least one sample.")
    recorded = view.profile.facts.batch_size
    if not recorded:
        raise ForecastError("the run's own batch size was not recorded; pass batch_size= to tb_dlprof_plugin.profile.")
    return batch_size / recorded
