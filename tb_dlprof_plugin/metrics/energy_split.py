"""Divides the measured energy of a step among its GPU work: power at rest, and above it what each kernel takes.

What a kernel takes is estimated from its kind, its time, the FLOPs of its products and the memory that its op moves
(`names.gpu_power`), and then scaled so that all together are what the counter measured. The factor is shown: where it
is far from 1 the table does not describe this run, and only the whole is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.energy import StepEnergy, step_energy
from tb_dlprof_plugin.metrics.flops import UNKNOWN, matrix_calls
from tb_dlprof_plugin.metrics.roofline import gpu_name
from tb_dlprof_plugin.model.dtypes import element_bytes
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints, Verdict
from tb_dlprof_plugin.model.shapes import TensorList
from tb_dlprof_plugin.names.gpu_peaks import ceilings_of
from tb_dlprof_plugin.names.gpu_power import PICO, PRODUCTS, GpuPower, Work, power_of
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.estimate import step_estimate

KINDS = tuple(Work)
_PRODUCTS = np.array([kind in PRODUCTS.values() for kind in KINDS])
LARGEST_RESIDUAL = 0.25
"""From which on only the whole is given. The table's error on models that it was not fitted to is within it."""
_FP32_BYTES = 4


@dataclass(frozen=True, slots=True)
class WorkOfLaunches:
    """Per row of `Profile.launches`: the index of its kind in `KINDS`, and its part of the FLOPs of its routine and of
    the device memory that its op reads and writes."""

    kind: Ints
    flops: Floats
    bytes: Floats


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
    work = work_of_launches(view, selection, power.cache_bytes)
    joules = dynamic_joules(power, work, view.profile.launches.duration_ns / 1e9)
    joules[~view.selected_launches(selection)] = 0.0
    joules /= selection.count
    static = min(measured.idle_watts * step_estimate(view, selection).ns / 1e9, measured.joules)
    scale = (measured.joules - static) / max(float(joules.sum()), PICO)
    joules *= scale
    kinds = np.bincount(work.kind, weights=joules, minlength=len(KINDS))
    return EnergySplit(measured, power, static, scale, joules, dict(zip(KINDS, kinds.tolist(), strict=True)))


def dynamic_joules(power: GpuPower, work: WorkOfLaunches, seconds: Floats) -> Floats:
    """Joules above rest of each launch, as the table has it.

    Args:
        power: of the GPU.
        work: kinds, FLOPs and bytes.
        seconds: of each launch.
    """
    watts = np.where(_PRODUCTS, power.product_watts, power.other_watts)
    per_flop = np.array([power.picojoules_per_flop.get(kind, 0.0) for kind in KINDS])
    arithmetic = per_flop[work.kind] * work.flops + power.picojoules_per_byte * work.bytes
    joules: Floats = watts[work.kind] * seconds + PICO * arithmetic
    return joules


def work_of_launches(view: ProfileView, selection: Selection, cache_bytes: int) -> WorkOfLaunches:
    """Kinds, FLOPs and bytes of what runs on the GPU.

    FLOPs and bytes of a matrix routine belong to its product kernels, by their time; bytes of other work to what its op
    launched. Unknown ones are 0: their energy is part of the power of their kind, or of the scale.

    Args:
        view: the run.
        selection: of its iterations.
        cache_bytes: an op that moves less does so in the cache.
    """
    launches = view.profile.launches
    products = _product_kinds(view)
    kind = np.where(view.launch_is_kernel, KINDS.index(Work.OTHER), KINDS.index(Work.COPIES))
    chosen = view.launch_computes_product & (products[launches.kernel] >= 0)
    kind[chosen] = products[launches.kernel[chosen]]
    flops, moved = _of_routines(view, selection, chosen)
    moved += _of_others(view, ~chosen, cache_bytes)
    ceilings = ceilings_of(gpu_name(view))
    if ceilings is not None:
        moved = np.minimum(moved, ceilings.bytes_per_second * launches.duration_ns / 1e9)
    return WorkOfLaunches(kind, flops, moved)


def _product_kinds(view: ProfileView) -> Ints:
    """Per row of `Profile.kernels` the kind of the products it would compute, -1 where the precision is not known."""
    kernels, strings = view.profile.kernels, view.profile.strings
    kinds = []
    for verdict, precision in zip(kernels.tensor_core.tolist(), kernels.precision.tolist(), strict=True):
        name = strings[precision] if verdict == Verdict.YES else "fp32" if verdict == Verdict.NO else ""
        kinds.append(KINDS.index(PRODUCTS[name]) if name in PRODUCTS else -1)
    return np.array(kinds, dtype=np.int64)


def _of_routines(view: ProfileView, selection: Selection, chosen: Bools) -> tuple[Floats, Floats]:
    """FLOPs and bytes of matrix routines, per launch."""
    launches, work = view.profile.launches, matrix_calls(view, selection)
    flops, moved = np.zeros(len(launches)), np.zeros(len(launches))
    rows = np.flatnonzero(chosen & (launches.call >= 0))
    routine = work.of_call[launches.call[rows]]
    rows, routine = rows[routine >= 0], routine[routine >= 0]
    if len(rows):
        seconds = launches.duration_ns[rows].astype(np.float64)
        whole = np.bincount(routine, weights=seconds, minlength=len(work))
        part = seconds / np.maximum(whole[routine], 1.0)
        flops[rows] = np.where(work.flops == UNKNOWN, 0, work.flops)[routine] * part
        moved[rows] = np.where(work.bytes == UNKNOWN, 0, work.bytes)[routine] * part
    return flops, moved


def _of_others(view: ProfileView, chosen: Bools, cache_bytes: int) -> Floats:
    """Bytes of ops that compute no products, per launch: of all calls of an op together, by the time of its kernels."""
    launches, bytes_per_second = view.profile.launches, np.zeros(len(view.profile.launches))
    op = np.where(chosen, view.launch_op, -1)
    rows = np.flatnonzero(op >= 0)
    count = len(view.profile.ops)
    seconds = launches.duration_ns[rows].astype(np.float64)
    whole = np.bincount(op[rows], weights=seconds, minlength=count)
    calls = np.bincount(view.profile.calls.op, minlength=count)
    moved = np.zeros(count)
    for op_row in np.unique(op[rows]).tolist():
        size = _moved_by(view, op_row)
        moved[op_row] = size * calls[op_row] if size >= cache_bytes else 0
    bytes_per_second[rows] = moved[op[rows]] * seconds / np.maximum(whole[op[rows]], 1.0)
    return bytes_per_second


def _moved_by(view: ProfileView, op: int) -> int:
    """Bytes of an op's inputs, and of a result as large as the largest of them."""
    shapes = view.profile.shapes_of(op)
    widths = element_bytes(view.profile.dtypes_of(op))
    sizes = []
    for at, shape in enumerate(shapes):
        # Lists have no data type of their own.
        width = (widths[at] if at < len(widths) else None) or _FP32_BYTES
        tensors = shape if isinstance(shape, TensorList) else (shape,)
        sizes.append(sum(width * math.prod(one) for one in tensors if one and min(one) >= 0))
    return sum(sizes) + max(sizes, default=0)
