"""Forecasts the energy of a step in another configuration: power at rest for as long as the step lasts then, and what
its kernels take above it, by their new times, precisions and FLOPs.

The times are those of the step's forecast (`planning.memory.step_time`). The factor by which the table's estimate of
the recorded step missed the counter applies to the forecast, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.energy_split import (
    KINDS,
    EnergySplit,
    NoSplit,
    WorkOfLaunches,
    dynamic_joules,
    energy_split,
    work_of_launches,
)
from tb_dlprof_plugin.metrics.roofline import gpu_name
from tb_dlprof_plugin.model.plan_request import PlanRequest
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.names.gpu_peaks import ceilings_of
from tb_dlprof_plugin.names.gpu_power import PICO, PRODUCTS, Work
from tb_dlprof_plugin.planning.memory.step_time import NoStepTime, PlannedStep, StepTime, planned_step, work_ratio
from tb_dlprof_plugin.planning.predict import Forecast
from tb_dlprof_plugin.profile_view import ProfileView, Selection


@dataclass(frozen=True, slots=True)
class EnergyForecast:
    """Joules of a step with their interval, and its milliseconds."""

    joules: float
    low_joules: float
    high_joules: float
    step_ms: float


class NoEnergy(ValueError):
    """The energy is not known; the message says why."""


def planned_energy(view: ProfileView, request: PlanRequest) -> EnergyForecast:
    """The energy of a step in a configuration.

    Raises:
        NoEnergy: it was not measured, or neither it nor the step can be forecast.
    """
    if request.gpu is not None or request.memory_bytes is not None:
        raise NoEnergy("the energy on another GPU is not forecast.")
    try:
        step = planned_step(view, request)
        split = energy_split(view, view.selection())
        _check(split)
    except (NoStepTime, NoSplit) as error:
        raise NoEnergy(str(error)) from None
    if step.found is None and work_ratio(view, request) != 1:
        raise NoEnergy("the kernels with another batch size are not forecast for this run, its step alone is.")
    return _energy(view, split, step, work_ratio(view, request))


def forecast_energy(view: ProfileView, found: Forecast) -> EnergyForecast:
    """The energy of a step that was forecast.

    Raises:
        NoEnergy: it was not measured, or cannot be divided, or the forecast is for another GPU.
    """
    if found.target.new_gpu != found.target.gpu:
        raise NoEnergy("the energy on another GPU is not forecast.")
    try:
        split = energy_split(view, view.selection())
        _check(split)
    except NoSplit as error:
        raise NoEnergy(str(error)) from None
    time = StepTime(found.predicted_ns, found.low_ns, found.high_ns)
    return _energy(view, split, PlannedStep(time, found), found.target.batch_ratio)


def _check(split: EnergySplit) -> None:
    if not split.trusted:
        raise NoSplit(f"the estimate from kernels is off the counter by {split.residual_percent:+.0f} %.")


def _energy(view: ProfileView, split: EnergySplit, step: PlannedStep, ratio: float) -> EnergyForecast:
    selection, seconds = view.selection(), step.time.ns / 1e9
    kernels = float(split.launches.sum())
    if step.found is not None:
        kernels = _of_kernels(view, split, selection, step.found, ratio)
    if step.more_gpu_ns:
        busy = float(view.profile.launches.duration_ns[view.selected_launches(selection)].sum()) / selection.count
        kernels = max(kernels + float(split.launches.sum()) / max(busy, 1.0) * step.more_gpu_ns, 0.0)
    idle = split.static_joules / max(split.measured.joules / split.measured.watts, 1e-12)
    joules = idle * seconds + kernels
    if split.measured.power_limit_watts is not None:
        # Above its limit the GPU gets slower, not hotter.
        joules = min(joules, split.measured.power_limit_watts * seconds)
    measured = (split.measured.high_joules - split.measured.low_joules) / 2 / split.measured.joules
    forecast = 0.0 if step.found is None and not step.more_gpu_ns else split.power.spread
    time = (step.time.high_ns - step.time.low_ns) / 2 / max(step.time.ns, 1.0)
    off = 2 * math.hypot(forecast, measured / 2, time / 2)
    return EnergyForecast(joules, joules * max(1 - off, 0.0), joules * (1 + off), step.time.ns / 1e6)


def _of_kernels(view: ProfileView, split: EnergySplit, selection: Selection, found: Forecast, ratio: float) -> float:
    """Joules above rest of the forecast's kernels."""
    work, launches = work_of_launches(view, selection, split.power.cache_bytes), view.profile.launches
    share = np.ones(len(launches)) if found.change.gpu is None else found.change.gpu
    kind = _new_kinds(view, work.kind, found)
    # Products in half precision move half the bytes; other kernels take as long as their bytes do.
    halved = np.where((kind != work.kind) & (kind == KINDS.index(Work.HALF)), 0.5, 1.0)
    moved = work.bytes * np.where(work.flops > 0, halved * ratio, share)
    new = WorkOfLaunches(kind, work.flops * ratio, moved)
    joules = dynamic_joules(split.power, new, share * launches.duration_ns / 1e9)
    inside = view.selected_launches(selection)
    ceilings = ceilings_of(gpu_name(view))
    memory = split.power.picojoules_per_byte * PICO * (ceilings.bytes_per_second if ceilings else 0.0)
    casts = (split.power.other_watts + memory) * (found.cast_ns + found.scaler_ns) / 1e9
    return split.scale * (float(joules[inside].sum()) / selection.count + casts)


def _new_kinds(view: ProfileView, kind: Ints, found: Forecast) -> Ints:
    """Kinds of work after the change of precision: products in ops that change compute in the new one."""
    if found.target.precision not in PRODUCTS:
        return kind
    changed = np.zeros(len(view.groups) + 1, dtype=np.bool_)
    changed[[op.group for op in found.ops if op.precision]] = True
    products = [i for i, one in enumerate(KINDS) if one in PRODUCTS.values()]
    moved = changed[view.launch_group] & np.isin(kind, products)
    return np.where(moved, KINDS.index(PRODUCTS[found.target.precision]), kind)
