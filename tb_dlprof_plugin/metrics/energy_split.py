"""Divides the measured energy of a step among its GPU work: power at rest, and above it what each kernel takes.

What a kernel takes is estimated from its kind, its time and, where it computes products, their FLOPs
(`names.gpu_power`), and then scaled so that all together are what the counter measured. The factor is shown: where it
is far from 1 the table does not describe this run, and only the whole is given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.energy import StepEnergy, step_energy
from tb_dlprof_plugin.metrics.flops import UNKNOWN, matrix_calls
from tb_dlprof_plugin.metrics.roofline import gpu_name
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints, KernelKind, Verdict
from tb_dlprof_plugin.names.gpu_power import PICO, PRODUCTS, GpuPower, Work, power_of
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.estimate import step_estimate

KINDS = tuple(Work)
LARGEST_RESIDUAL = 0.25
"""From which on only the whole is given. The table's error on models that it was not fitted to is within it."""


@dataclass(frozen=True, slots=True)
class WorkOfLaunches:
    """Per row of `Profile.launches`: the index of its kind in `KINDS`, and its part of the FLOPs of its routine."""

    kind: Ints
    flops: Floats


@dataclass(frozen=True)
class EnergySplit:
    """Joules of one step of the selected iterations.

    Attributes:
        measured: the whole, as measured.
        power: of the GPU.
        static_joules: at rest.
        scale: from the table's estimate to what was measured, of what is above rest.
        launches: per row of `Profile.launches` its part of one step, scaled; 0 outside the selection.
        kinds: sums of these by kind.
    """

    measured: StepEnergy
    power: GpuPower
    static_joules: float
    scale: float
    launches: Floats
    kinds: dict[Work, float]

    @property
    def residual_percent(self) -> float:
        """What the table's estimate of a step is off the counter, percent of the latter."""
        whole = self.static_joules + float(self.launches.sum()) / self.scale
        return 100.0 * (whole / self.measured.joules - 1.0)

    @property
    def trusted(self) -> bool:
        """Whether the parts may be shown."""
        return abs(self.residual_percent) <= 100.0 * LARGEST_RESIDUAL

    def by(self, place: Ints, rows: int) -> Floats:
        """Sums over launches; ``place`` has for each its row, or -1."""
        inside = place >= 0
        return np.bincount(place[inside], weights=self.launches[inside], minlength=rows).astype(np.float64)


class NoSplit(ValueError):
    """The energy cannot be divided; the message says why."""


@per_selection
def energy_split(view: ProfileView, selection: Selection) -> EnergySplit:
    """The parts of a step's energy.

    Raises:
        NoSplit: it was not measured, or the GPU is not in the table.
    """
    measured, power = step_energy(view, selection), power_of(gpu_name(view))
    if measured is None:
        raise NoSplit("the energy of a step was not measured.")
    if power is None or measured.idle_watts is None:
        raise NoSplit(f"what kernels draw on the {gpu_name(view) or 'GPU'} has not been measured; the H200 is known.")
    work = work_of_launches(view, selection)
    found = dynamic_joules(power, work, view.profile.launches.duration_ns / 1e9)
    found[~view.selected_launches(selection)] = 0.0
    found /= selection.count
    static = min(measured.idle_watts * step_estimate(view, selection).ns / 1e9, measured.joules)
    scale = (measured.joules - static) / max(float(found.sum()), PICO)
    found *= scale
    kinds = np.bincount(work.kind, weights=found, minlength=len(KINDS))
    return EnergySplit(measured, power, static, scale, found, dict(zip(KINDS, kinds.tolist(), strict=True)))


def dynamic_joules(power: GpuPower, work: WorkOfLaunches, seconds: Floats) -> Floats:
    """Joules above rest of each launch, as the table has it.

    Args:
        power: of the GPU.
        work: kinds and FLOPs.
        seconds: of each launch.
    """
    watts = np.array([power.watts[kind] for kind in KINDS])
    per_flop = np.array([power.picojoules_per_flop.get(kind, 0.0) * PICO for kind in KINDS])
    found: Floats = watts[work.kind] * seconds + per_flop[work.kind] * work.flops
    return found


@per_selection
def work_of_launches(view: ProfileView, selection: Selection) -> WorkOfLaunches:
    """Kinds and FLOPs of what runs on the GPU. FLOPs of a routine belong to its product kernels, by their time."""
    launches = view.profile.launches
    products = _product_kinds(view)
    kind = np.where(
        view.profile.kernels.kind[launches.kernel] == KernelKind.KERNEL,
        KINDS.index(Work.OTHER),
        KINDS.index(Work.COPIES),
    )
    chosen = view.launch_computes_product & (products[launches.kernel] >= 0)
    kind[chosen] = products[launches.kernel[chosen]]
    return WorkOfLaunches(kind, _flops(view, selection, chosen))


def _product_kinds(view: ProfileView) -> Ints:
    """Per row of `Profile.kernels` the kind of the products it would compute, -1 where the precision is not known."""
    kernels, strings = view.profile.kernels, view.profile.strings
    found = []
    for verdict, precision in zip(kernels.tensor_core.tolist(), kernels.precision.tolist(), strict=True):
        name = strings[precision] if verdict == Verdict.YES else "fp32" if verdict == Verdict.NO else ""
        found.append(KINDS.index(PRODUCTS[name]) if name in PRODUCTS else -1)
    return np.array(found, dtype=np.int64)


def _flops(view: ProfileView, selection: Selection, chosen: Bools) -> Floats:
    """Unknown ones are 0: what their kernels take is in the power of their kind then."""
    launches, work = view.profile.launches, matrix_calls(view, selection)
    found = np.zeros(len(launches))
    rows = np.flatnonzero(chosen & (launches.call >= 0))
    routine = work.of_call[launches.call[rows]]
    rows, routine = rows[routine >= 0], routine[routine >= 0]
    if not len(rows):
        return found
    seconds = launches.duration_ns[rows].astype(np.float64)
    whole = np.bincount(routine, weights=seconds, minlength=len(work))
    flops = np.where(work.flops == UNKNOWN, 0, work.flops).astype(np.float64)
    found[rows] = flops[routine] * seconds / np.maximum(whole[routine], 1.0)
    return found
