"""The account of a step without the profiler: what its time consists of, in buckets that exclude each other.

The one account of a step: the Summary's bar and Compare's waterfall show it, and its waiting buckets are the causes of
the GPU's idle time on the Launches page. GPU time is kept as measured; the recorder's time is subtracted where it is
spent: the CPU's time between and inside calls first, then what idle time is left, waiting for the DataLoader last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.gpu_busy import gpu_busy_ns
from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.metrics.op_sites import Run, run_of
from tb_dlprof_plugin.metrics.step_buckets import (
    CPU_BUCKETS,
    GPU_BUCKETS,
    IDLE_CAUSES,
    WAITING,
    Basis,
    BucketTimes,
    bucket_times,
    by_cause,
)
from tb_dlprof_plugin.metrics.step_idle import step_idle
from tb_dlprof_plugin.metrics.step_phases import PARTS, parts_by_iteration
from tb_dlprof_plugin.metrics.without_recorder import shortened
from tb_dlprof_plugin.model.profile import Floats, Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.estimate import step_estimate

_SLOWED: dict[Basis, tuple[tuple[str, ...], ...]] = {
    "gpu": (("cpu_launch", "python"), ("idle",), ("dataloader",)),
    "cpu": (("backward", "forward", "optimizer", "other"), ("dataloader",)),
}
"""The buckets that the recorder lengthens, in the order of subtraction; within a group in proportion."""
_REST: dict[Basis, str] = {"gpu": "idle", "cpu": "other"}
"""Where the step is longer without the profiler than with it, the difference belongs to no known bucket."""
_WORKING = [index for index, key in enumerate(GPU_BUCKETS) if key not in WAITING]


@dataclass(frozen=True, slots=True)
class StepAccount:
    """Means per step, and over the GPUs that the process used (ns).

    Attributes:
        labels: name of each bucket by key.
        ns: time by bucket in a step without the profiler; sums to the step.
        recorded_ns: the same of the recorded step.
    """

    labels: dict[str, str]
    ns: Floats
    recorded_ns: Floats

    def whole_ns(self, step_ns: int) -> dict[str, int]:
        """Whole nanoseconds by key; they sum to ``step_ns``, the step in whole nanoseconds."""
        return dict(zip(self.labels, whole_numbers(self.ns, step_ns).tolist(), strict=True))


@per_selection
def step_account(view: ProfileView, selection: Selection) -> StepAccount:
    """The account of the selected iterations, by what the GPU does where there is one."""
    run = run_of(view, selection)
    basis: Basis = "gpu" if view.profile.has_gpu else "cpu"
    return account_of(run, bucket_times(run, basis), basis)


def iterations_with_recorder(view: ProfileView, selection: Selection) -> Ints:
    """Recorded time of every iteration by bucket and, last, the recorder (ns); rows sum to the iterations.

    The buckets are those of `step_account`, without a GPU the parts of a step in the order of `step_phases.PARTS`.
    Means over the GPUs. Each iteration has the mean part of the recorder of the selected ones, as far as it has time
    that the recorder can have lengthened.
    """
    durations = view.profile.iterations.duration_ns
    if view.profile.has_gpu:
        keys = list(GPU_BUCKETS)
        recorded = bucket_times(run_of(view, view.selection()), "gpu")
        times, slowed, rest = recorded.by_iteration // recorded.gpus, _SLOWED["gpu"], _REST["gpu"]
    else:
        keys = [part.name.lower() for part in PARTS]
        times, slowed, rest = parts_by_iteration(view).sum(axis=1), _SLOWED["cpu"], _REST["cpu"]
    times[:, keys.index(rest)] += durations - times.sum(axis=1)
    groups = [[keys.index(key) for key in group] for group in slowed]
    mean = round(step_totals(view, selection).recorder_ns / selection.count)
    part = np.minimum(mean, times[:, [column for group in groups for column in group]].sum(axis=1))
    return np.concatenate((shortened(times, groups, part), part[:, None]), axis=1)


def account_of(run: Run, times: BucketTimes, basis: Basis) -> StepAccount:
    """The same from recorded buckets that are known already.

    Args:
        run: the recording with its selected iterations.
        times: its recorded buckets.
        basis: whether these are by what the GPU does or by what the CPU does.
    """
    recorded: Floats = times.by_iteration.sum(axis=0) / (run.selection.count * times.gpus)
    step_ns = step_estimate(run.view, run.selection).ns
    if basis == "cpu" or not run.view.profile.has_gpu:
        return StepAccount(times.labels, without_recorder(recorded, step_ns, basis), recorded)
    true = _working(run, recorded, times.gpus) + _waiting(run, times.gpus)
    whole = float(true.sum())
    return StepAccount(times.labels, true * (step_ns / whole) if whole > 0 else true, recorded)


def _working(run: Run, recorded_ns: Floats, gpus: int) -> Floats:
    """What the GPU works on, with the sums of `gpu_busy_ns`: of Tensor Core kernels, and of all else."""
    busy = gpu_busy_ns(run.view, run.selection).sum(axis=0) / (run.selection.count * gpus)
    result = np.zeros(len(recorded_ns))
    tensor_core, *others = _WORKING
    result[tensor_core] = busy[0] if recorded_ns[tensor_core] > 0 else 0.0
    rest = float(busy.sum()) - result[tensor_core]
    have = float(recorded_ns[others].sum())
    if have > 0:
        result[others] = recorded_ns[others] * (rest / have)
    else:
        result[list(GPU_BUCKETS).index("other_compute")] = rest
    return result


def _waiting(run: Run, gpus: int) -> Floats:
    """What the CPU does while the GPU waits, as on the Launches page."""
    activity = step_idle(run.view, run.selection).activity_ns.sum(axis=0) / (run.selection.count * gpus)
    result = np.zeros(len(GPU_BUCKETS))
    result[[list(GPU_BUCKETS).index(cause) for cause in IDLE_CAUSES]] = by_cause(activity)
    return result


def without_recorder(recorded_ns: Floats, step_ns: float, basis: Basis) -> Floats:
    """The buckets (ns) of a step of ``step_ns``, to which they sum.

    Args:
        recorded_ns: buckets of the recorded step, in the order of `GPU_BUCKETS` or ``CPU_BUCKETS``.
        step_ns: the step without the profiler.
        basis: which of the two.
    """
    keys = list(GPU_BUCKETS if basis == "gpu" else CPU_BUCKETS)
    result: Floats = recorded_ns.astype(np.float64)
    added = float(result.sum()) - step_ns
    if added <= 0:
        result[keys.index(_REST[basis])] -= added
        return result
    result = shortened(result, [[keys.index(key) for key in group] for group in _SLOWED[basis]], added)
    whole = float(result.sum())
    # The GPU's work alone takes longer than the step: kernels were a little slower while recorded.
    return result * (step_ns / whole) if whole > step_ns else result


def whole_numbers(values: Floats, total: int) -> Ints:
    """``values`` as whole numbers that sum to ``total``: the largest remainders are rounded up.

    Args:
        values: none below 0, with a sum of about ``total``.
        total: what the result sums to.
    """
    result = np.floor(values).astype(np.int64)
    order = np.argsort(-(values - result), kind="stable")
    missing = total - int(result.sum())
    for index in range(abs(missing)):
        result[order[index % len(order)]] += 1 if missing > 0 else -1
    return result
