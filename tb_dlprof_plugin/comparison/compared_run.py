"""One run's numbers by row of a comparison."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.comparison.step_intervals import TimedStep
from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.metrics.op_sites import Run
from tb_dlprof_plugin.metrics.ops import input_precisions
from tb_dlprof_plugin.metrics.roofline import roofline
from tb_dlprof_plugin.metrics.step_account import account_of, whole_numbers, without_recorder
from tb_dlprof_plugin.metrics.step_buckets import WAITING, Basis, BucketTimes, bucket_times
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Floats, Ints, Verdict
from tb_dlprof_plugin.simulation.estimate import step_estimate


class OpSide(msgspec.Struct, frozen=True):
    """One op in one run; means per iteration (ns). ``kernels`` is None without a GPU.

    ``cast_ns`` is part of ``time_ns``. ``roof_percent`` is how much of its roofline ceiling the op reached, None where
    unknown or where the row is part of an op only.
    """

    id: str
    time_ns: int
    cast_ns: int
    tensor_core_ns: int
    kernels: float | None
    precision: str
    eligible_unknown_ns: int
    roof_percent: float | None


class KernelUse(NamedTuple):
    """A kernel, copy or set of an op: row of `Profile.kernels`, launches and time (ns) per iteration."""

    kernel: int
    calls: float
    time_ns: float
    cast: bool


class ComparedRun:
    """One run's numbers by row of the comparison; times are sums over the selected iterations until divided."""

    def __init__(self, run: Run, row_of_site: Ints, groups: list[int], basis: Basis) -> None:
        self.run, self.groups, self.basis = run, groups, basis
        self.count = run.selection.count
        self.step = TimedStep(step_estimate(run.view, run.selection), _durations(run).tolist())
        self.step_ns = round(self.step.estimate.ns)
        self.row_of_site = row_of_site
        profile, rows = run.view.profile, len(groups)
        launches, kernels = profile.launches, profile.kernels
        site = run.launch_site
        self.launch_row = take_or(row_of_site, site, -1)
        in_row = self.launch_row >= 0
        self.cast = run.launch_cast
        in_matrix = in_row & run.view.launch_is_kernel & run.view.launch_in_matrix_op
        verdict = kernels.tensor_core[launches.kernel]
        self.cast_ns = self._sums_of_launches(in_row & self.cast)
        self.tensor_core_ns = self._sums_of_launches(in_matrix & (verdict == Verdict.YES))
        self.eligible_unknown_ns = self._sums_of_launches(in_matrix & (verdict == Verdict.UNKNOWN))
        self.kernel_calls = np.bincount(self.launch_row[in_row], minlength=rows)
        self.by_iteration = self._gpu_by_iteration(in_row) if basis == "gpu" else self._cpu_by_iteration()
        self.time_ns = self.by_iteration.sum(axis=1)
        self.precisions = self._precisions(in_row & (verdict == Verdict.YES))
        self.inputs = input_precisions(run.view, run.selection)
        self.times: BucketTimes = bucket_times(run, basis)
        account = account_of(run, self.times, basis)
        self.recorded_ns, self.true_ns = account.recorded_ns, account.ns
        # Share of an op's or an iteration's time in a bucket that remains without the profiler.
        self.kept = np.minimum(
            np.divide(self.true_ns, self.recorded_ns, out=np.ones(len(self.true_ns)), where=self.recorded_ns > 0), 1.0
        )
        self.bucket_ns = np.zeros((rows, len(self.times.labels)), dtype=np.int64)
        placed = row_of_site >= 0
        np.add.at(self.bucket_ns, row_of_site[placed], self.times.by_site[placed])
        self._roofs = {row.group: row.percent for row in roofline(run.view, run.selection).rows}
        self._rows_of_group = np.bincount(np.array([g for g in groups if g >= 0], dtype=np.int64), minlength=1)

    def side(self, row: int) -> OpSide | None:
        """The op of a row; None where the run lacks it or it took no time."""
        group = self.groups[row]
        if group < 0 or not self.time_ns[row]:
            return None
        gpu = self.run.view.profile.has_gpu
        return OpSide(
            id=self.run.view.groups.ids[group],
            time_ns=_mean(self.time_ns[row], self.count),
            cast_ns=_mean(self.cast_ns[row], self.count),
            tensor_core_ns=_mean(self.tensor_core_ns[row], self.count),
            kernels=float(self.kernel_calls[row]) / self.count if gpu else None,
            precision=self.precisions[row] or self.inputs[group],
            eligible_unknown_ns=_mean(self.eligible_unknown_ns[row], self.count),
            roof_percent=self._roofs.get(group) if self._rows_of_group[group] == 1 else None,
        )

    def bucket_means(self) -> Ints:
        """Buckets per iteration without the profiler, integers that sum to the step."""
        return whole_numbers(self.true_ns, self.step_ns)

    def bucket_errors(self) -> tuple[Floats, Floats]:
        """Lower and upper error of each bucket (ns), from the uncertainty of the step.

        Time in which the GPU works is measured whatever the step is.
        """
        low, middle, high = (
            without_recorder(self.recorded_ns, step, self.basis)
            for step in (self.step.ends_ns[0], self.step.estimate.ns, self.step.ends_ns[1])
        )
        waits = np.array([self.basis == "cpu" or key in WAITING for key in self.times.labels], dtype=np.bool_)
        return np.where(waits, middle - low, 0.0), np.where(waits, high - middle, 0.0)

    def bucket_ns_of(self, row: int, index: int) -> int:
        """An op's time in a bucket, per iteration without the profiler."""
        return round(float(self.bucket_ns[row, index]) * float(self.kept[index]) / (self.count * self.times.gpus))

    def kernels_of(self, row: int) -> list[KernelUse]:
        launches = self.run.view.profile.launches
        mine = np.flatnonzero(self.launch_row == row)
        keys = np.stack((launches.kernel[mine], self.cast[mine].astype(np.int64)))
        unique, inverse = np.unique(keys, axis=1, return_inverse=True)
        inverse = inverse.reshape(-1)
        calls = np.bincount(inverse, minlength=unique.shape[1]) / self.count
        time = np.bincount(inverse, launches.duration_ns[mine], minlength=unique.shape[1]) / self.count
        uses = [
            KernelUse(kernel, n, t, bool(cast))
            for (kernel, cast), n, t in zip(unique.T.tolist(), calls.tolist(), time.tolist(), strict=True)
        ]
        return sorted(uses, key=lambda use: -use.time_ns)

    def _sums_of_launches(self, chosen: Bools) -> Ints:
        duration = self.run.view.profile.launches.duration_ns
        return sums(self.launch_row[chosen], duration[chosen], len(self.groups))

    def _gpu_by_iteration(self, in_row: Bools) -> Ints:
        launches = self.run.view.profile.launches
        iteration = self.run.view.launch_iteration[in_row] - self.run.selection.first
        result = np.zeros((len(self.groups), self.count), dtype=np.int64)
        np.add.at(result, (self.launch_row[in_row], iteration), launches.duration_ns[in_row])
        return result

    def _cpu_by_iteration(self) -> Ints:
        calls, ops = self.run.view.profile.calls, self.run.view.profile.ops
        tops = np.flatnonzero(ops.top[calls.op] & (self.run.sites.of_call >= 0))
        row = self.row_of_site[self.run.sites.of_call[tops]]
        iteration = self.run.view.call_iteration[tops] - self.run.selection.first
        result = np.zeros((len(self.groups), self.count), dtype=np.int64)
        np.add.at(result, (row, iteration), calls.duration_ns[tops])
        return result

    def _precisions(self, on_tensor_cores: Bools) -> list[str]:
        """Of the Tensor Core kernels of each row, "fp16+tf32" where several, "" for none."""
        profile = self.run.view.profile
        names_of: list[set[str]] = [set() for _ in self.groups]
        keys = np.stack((self.launch_row, profile.kernels.precision[profile.launches.kernel]))[:, on_tensor_cores]
        for row, precision in np.unique(keys, axis=1).T.tolist():
            if profile.strings[precision]:
                names_of[row].add(profile.strings[precision])
        return ["+".join(sorted(names)) for names in names_of]


def _durations(run: Run) -> Ints:
    starts, stops = run.windows
    return stops - starts


def _mean(value: int | np.int64 | npt.NDArray[np.int64], count: int) -> int:
    return round(int(value) / count)
