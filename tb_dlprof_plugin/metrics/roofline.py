"""Compares each op with the GPU's roofline: its FLOPs and bytes with peak rate and memory bandwidth.

The roofline model (Williams, Waterman and Patterson 2009, "Roofline: an insightful visual performance model"): a call
of F FLOPs that moves at least B bytes takes no less than ``max(F / peak rate, B / bandwidth)``.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.flops import UNKNOWN, MatrixCalls, matrix_calls
from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.model.dtypes import precision_of_dtypes
from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.profile import Ints, Verdict
from tb_dlprof_plugin.names.gpu_peaks import Ceilings, ceilings_of
from tb_dlprof_plugin.names.kernel_groups import kernel_group
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

_SECOND_NS = 1e9
_HALVED = ("fp32", "tf32", "3xtf32")
"""Mixed precision halves the bytes of these, and computes them in FP16 or BF16."""
MOST_OF_ROOF = 1000.0
"""Percent. What is further above its roof is no kernel's rate, so that its shapes or times are wrong. Kernels do exceed
their roof: Winograd multiplies up to 5 times less often than the FLOPs say (Lavin and Gray 2016, "Fast algorithms for
convolutional neural networks"), a causal mask halves them, and the L2 cache is about 3 times as fast as DRAM."""
SAVES_PRODUCTS = ("convolution.winograd", "convolution.fft", "attention")
"""Groups of kernels (`names.kernel_groups`) that may compute an op with fewer products than its FLOPs count."""


@dataclass(frozen=True, slots=True)
class RooflineRow:
    """One op group with matrix routines in it; None is unknown.

    ``op`` is the row in `Profile.ops` of the routine called most often, ``time_ns`` the summed time of the kernels that
    the group's matrix routines launched. ``ceiling`` is the rate (FLOP/s) that it could reach in the precision it ran
    in, ``percent`` how much of it was reached; ``possible_percent`` is the same against ``possible_precision``, the
    fastest that it could run in with the data types that mixed precision would give it. ``saves_products`` is the group
    of `SAVES_PRODUCTS` in which its kernels spent most time, "" where there are none. ``measured`` says that FLOPs and
    bytes are counters of Nsight Compute: DRAM's bytes, and what all pipes computed. ``impossible`` says that they are
    unknown because no kernel does them in that time (`MOST_OF_ROOF`).
    """

    group: int
    op: int
    calls: int
    time_ns: int
    flops: int | None
    bytes: int | None
    precision: str
    tensor_cores: bool | None
    ceiling: float | None
    percent: float | None
    memory_bound: bool | None
    possible_precision: str
    possible_percent: float | None
    saves_products: str
    measured: bool = False
    impossible: bool = False

    @property
    def rate(self) -> float | None:
        """Achieved FLOP/s."""
        return None if self.flops is None or not self.time_ns else self.flops * _SECOND_NS / self.time_ns

    @property
    def intensity(self) -> float | None:
        """FLOPs per byte."""
        return None if self.flops is None or not self.bytes else self.flops / self.bytes


@dataclass(frozen=True, slots=True)
class Roofline:
    """All op groups with matrix routines that launched kernels, by falling time.

    ``flops`` sums the known ones, of all matrix routines, those that launched no kernel included; ``unknown_calls`` of
    ``calls`` have none. ``unknown_ns`` is the part of ``time_ns`` in groups whose FLOPs are unknown.
    ``impossible`` holds the groups above `MOST_OF_ROOF`: their FLOPs and bytes count as unknown.
    """

    gpu: str
    ceilings: Ceilings | None
    calls: int
    unknown_calls: int
    flops: int
    time_ns: int
    unknown_ns: int
    rows: list[RooflineRow]
    impossible: frozenset[int]


@per_selection
def roofline(view: ProfileView, selection: Selection) -> Roofline:
    """The op groups of the selected iterations compared with the ceilings of their GPU."""
    work = matrix_calls(view, selection)
    gpu = gpu_name(view)
    ceilings = ceilings_of(gpu)
    group = view.call_group[work.call]
    kernels = _Kernels(view, work, group)
    rows = []
    calls_of, none = dict(rows_of_each(group)), np.zeros(0, dtype=np.int64)
    for which in np.flatnonzero(kernels.time_ns).tolist():
        rows.append(_row(view, work, calls_of.get(which, none), which, kernels, ceilings))
    rows.sort(key=lambda row: -row.time_ns)
    impossible = frozenset(row.group for row in rows if row.impossible)
    counted = (work.flops != UNKNOWN) & ~np.isin(group, list(impossible))
    return Roofline(
        gpu=gpu,
        ceilings=ceilings,
        calls=len(work),
        unknown_calls=int((~counted).sum()),
        flops=int(work.flops[counted].sum()),
        time_ns=sum(row.time_ns for row in rows),
        unknown_ns=sum(row.time_ns for row in rows if row.flops is None),
        rows=rows,
        impossible=impossible,
    )


def gpu_name(view: ProfileView) -> str:
    """The GPU that the run used, "" where there is none, it was not recorded or there are several kinds."""
    used = set(view.profile.iterations.gpu_ids)
    names = {gpu.name for gpu in view.profile.system.gpus if gpu.id in used}
    return names.pop() if len(names) == 1 else ""


class _Kernels:
    """The kernels that the matrix routines launched, per op group: their time, and that by precision."""

    def __init__(self, view: ProfileView, work: MatrixCalls, group: Ints) -> None:
        launches, kernels, strings = view.profile.launches, view.profile.kernels, view.profile.strings
        rows = np.flatnonzero(view.launch_is_kernel & (launches.call >= 0))
        rows = rows[work.of_call[launches.call[rows]] >= 0]
        place = group[work.of_call[launches.call[rows]]]
        rows, place = rows[place >= 0], place[place >= 0]
        time = launches.duration_ns[rows]
        self.time_ns = sums(place, time, len(view.groups))
        self.on_tensor_cores: list[dict[str, int]] = [defaultdict(int) for _ in range(len(view.groups))]
        self.unknown_ns = np.zeros(len(view.groups), dtype=np.int64)
        verdict, precision = kernels.tensor_core[launches.kernel[rows]], kernels.precision[launches.kernel[rows]]
        np.add.at(self.unknown_ns, place[verdict == Verdict.UNKNOWN], time[verdict == Verdict.UNKNOWN])
        using = np.flatnonzero(verdict == Verdict.YES).tolist()
        for at in using:
            self.on_tensor_cores[place[at]][strings[precision[at]]] += int(time[at])
        self.measured_flops, self.measured_bytes = (
            _measured(view, rows, place, column)
            for column in (view.profile.kernel_counters.flops, view.profile.kernel_counters.dram_bytes)
        )
        kind = _saves_products(view)[launches.kernel[rows]]
        self.saving_ns = np.zeros((len(view.groups), len(SAVES_PRODUCTS)), dtype=np.int64)
        np.add.at(self.saving_ns, (place[kind >= 0], kind[kind >= 0]), time[kind >= 0])

    def saves_products(self, group: int) -> str:
        """The group of `SAVES_PRODUCTS` with most time, "" for none."""
        times = self.saving_ns[group]
        return SAVES_PRODUCTS[int(times.argmax())] if times.any() else ""


def _measured(view: ProfileView, launches: Ints, place: Ints, column: Ints) -> Ints:
    """By op group the sum of a counter over its launches; `UNKNOWN` where any of them was not measured."""
    groups = len(view.groups)
    if not len(column):
        return np.full(groups, UNKNOWN)
    row = view.launch_counters[launches]
    value = np.where(row >= 0, column[row], UNKNOWN)
    total = sums(place, np.maximum(value, 0), groups)
    missing = np.bincount(place, weights=value == UNKNOWN, minlength=groups) > 0
    return np.where(missing | (np.bincount(place, minlength=groups) == 0), UNKNOWN, total)


def _saves_products(view: ProfileView) -> Ints:
    """Per row of `Profile.kernels` its index in `SAVES_PRODUCTS`, -1 for others."""
    kernels, strings = view.profile.kernels, view.profile.strings
    names = zip(kernels.name.tolist(), kernels.family.tolist(), strict=True)
    groups = [kernel_group(strings[name], strings[family]) for name, family in names]
    return np.array(
        [SAVES_PRODUCTS.index(group) if group in SAVES_PRODUCTS else -1 for group in groups], dtype=np.int64
    )


def _row(
    view: ProfileView, work: MatrixCalls, members: Ints, group: int, kernels: _Kernels, ceilings: Ceilings | None
) -> RooflineRow:
    time = int(kernels.time_ns[group])
    flops, moved = work.flops[members], work.bytes[members]
    counted = int(kernels.measured_flops[group]), int(kernels.measured_bytes[group])
    if UNKNOWN not in counted:
        # What was done and moved, in place of what the shapes say is needed at least.
        flops, moved = (np.array([value], dtype=np.int64) for value in counted)
    flops_known, bytes_known = bool((flops != UNKNOWN).all()), bool((moved != UNKNOWN).all())
    inputs = _input_precision(view, work, members)
    precision, tensor_cores = _ran_in(kernels, group, inputs)
    peak = ceilings.flops_per_second(precision, tensor_cores) if ceilings and tensor_cores is not None else None
    known = flops_known and bytes_known and ceilings is not None
    least, by_memory = _least_ns(flops, moved, peak, ceilings) if known and ceilings else (None, None)
    impossible = least is not None and 100 * least > MOST_OF_ROOF * time
    if impossible:
        known = flops_known = bytes_known = False
        least = by_memory = None
    possible = _could_run_in(view, work, members, inputs, precision, tensor_cores, ceilings)
    best = None
    if known and ceilings and possible is not None:
        halved = moved // 2 if inputs in _HALVED and possible[0] not in _HALVED else moved
        best, _ = _least_ns(flops, halved, ceilings.flops_per_second(*possible), ceilings)
    total = int(flops.sum()) if flops_known else None
    return RooflineRow(
        group=group,
        op=int(np.bincount(view.profile.calls.op[work.call[members]]).argmax()),
        calls=len(members),
        time_ns=time,
        flops=total,
        bytes=int(moved.sum()) if bytes_known else None,
        precision=precision,
        tensor_cores=tensor_cores,
        ceiling=None if not least or not total else total * _SECOND_NS / least,
        percent=None if least is None else 100 * least / time,
        memory_bound=by_memory,
        possible_precision=possible[0] if possible else "",
        possible_percent=None if best is None else 100 * best / time,
        saves_products=kernels.saves_products(group),
        measured=UNKNOWN not in counted and not impossible,
        impossible=impossible,
    )


def _least_ns(flops: Ints, moved: Ints, peak: float | None, ceilings: Ceilings) -> tuple[float | None, bool | None]:
    """The least time of all calls together, and whether memory sets most of it; unknown without a peak rate."""
    if peak is None:
        return None, None
    arithmetic = flops * (_SECOND_NS / peak)
    memory = moved * (_SECOND_NS / ceilings.bytes_per_second)
    return float(np.maximum(arithmetic, memory).sum()), bool(memory.sum() > arithmetic.sum())


def _ran_in(kernels: _Kernels, group: int, inputs: str) -> tuple[str, bool | None]:
    """The precision in which the Tensor Core kernels spent most time; that of the inputs where there are none."""
    time_in = kernels.on_tensor_cores[group]
    if time_in:
        return max(time_in, key=lambda name: time_in[name]), True
    if kernels.unknown_ns[group]:
        return "", None
    return inputs, False


def _could_run_in(
    view: ProfileView,
    work: MatrixCalls,
    members: Ints,
    inputs: str,
    precision: str,
    tensor_cores: bool | None,
    ceilings: Ceilings | None,
) -> tuple[str, bool] | None:
    """Precision and whether on Tensor Cores; None where unknown. What is not eligible stays as it ran."""
    ops = view.profile.ops
    eligible = ops.tensor_core_eligible[view.profile.calls.op[work.call[members]]]
    if ceilings is None or (eligible == Verdict.UNKNOWN).any():
        return None
    if (eligible == Verdict.NO).any():
        return None if tensor_cores is None else (precision, tensor_cores)
    wanted = "fp16" if inputs in _HALVED else inputs
    return (wanted, True) if ceilings.flops_per_second(wanted, True) is not None else None


def _input_precision(view: ProfileView, work: MatrixCalls, members: Ints) -> str:
    """Of the inputs of all members, "" where they differ or were not recorded."""
    rows = np.unique(view.profile.calls.op[work.call[members]]).tolist()
    names = {precision_of_dtypes(view.profile.dtypes_of(row)) for row in rows}
    return names.pop() if len(names) == 1 else ""


@per_selection
def largest_gains(view: ProfileView, selection: Selection) -> dict[int, int]:
    """By op group the kernel time (ns) that it could gain at most; a group whose bound is unknown is absent.

    Unknown are those whose FLOPs, bytes or peak rate are, those with eligible kernels outside routines whose FLOPs
    count, and those that are as fast as their least time already: what that counts does not hold for them (a Winograd
    convolution multiplies less often, a causal mask saves work, data may come from the L2 cache).
    """
    eligible = op_totals(view, selection).eligible_ns
    gains = {}
    for row in roofline(view, selection).rows:
        if row.possible_percent is None or row.time_ns != eligible[row.group]:
            continue
        gain = round(row.time_ns * (1 - row.possible_percent / 100))
        if gain > 0:
            gains[row.group] = gain
    return gains
