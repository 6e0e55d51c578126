"""A recorded step's time split into buckets that exclude each other, by iteration and by op.

On a GPU a moment belongs to the activity there, by falling precedence: a Tensor Core kernel, another kernel,
communication, a cast, GradScaler's work, a copy or set. Where nothing runs it belongs to what the CPU does meanwhile.
Without a GPU it belongs to the part of the step that the CPU works on. By the clock, so that buckets sum to the step to
the nanosecond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tb_dlprof_plugin.metrics.cpu_activity import ACTIVITIES, split_by_activity
from tb_dlprof_plugin.metrics.op_sites import Run
from tb_dlprof_plugin.metrics.time_sharing import TimeShares, disjoint, gaps, label, share_out
from tb_dlprof_plugin.model.frameworks import between_ops, loader_title
from tb_dlprof_plugin.model.profile import CallKind, Ints, Role, Verdict

Basis = Literal["gpu", "cpu"]

GPU_BUCKETS = {
    "tensor_core": "Tensor Core kernels",
    "other_compute": "Other kernels",
    "communication": "Communication",
    "casts": "Casts",
    "scaler": "GradScaler",
    "copies": "Copies and sets",
    "dataloader": "DataLoader",
    "cpu_launch": "CPU launching work",
    "python": "Python between ops",
    "idle": "Other idle time",
}
"""Keys and names in words of PyTorch (`bucket_labels` has each framework's); in the first six the GPU works, in the
others it waits."""

_WORKING = 6
WAITING = frozenset(list(GPU_BUCKETS)[_WORKING:])
"""Those in which the GPU waits."""

CPU_BUCKETS = {
    "dataloader": "DataLoader",
    "backward": "Backward",
    "forward": "Forward",
    "optimizer": "Optimizer",
    "other": "Other",
}
"""Of a run without a GPU, by falling precedence as in `metrics.step_phases`."""

BUCKET_OF_ACTIVITY = {
    "dataloader": "dataloader",
    "synchronising": "idle",
    "copying": "cpu_launch",
    "launching": "cpu_launch",
    "ops": "cpu_launch",
    "python": "python",
    "unknown": "idle",
}
"""The bucket of what the CPU does while the GPU waits, by `cpu_activity.ACTIVITIES`."""
IDLE_CAUSES = tuple(key for key in GPU_BUCKETS if key in WAITING)
"""The causes of the GPU's idle time: keys of the buckets in which it waits, in their order."""
_CAUSE_OF_ACTIVITY = [IDLE_CAUSES.index(BUCKET_OF_ACTIVITY[name]) for name in ACTIVITIES]
_PARTS = {
    "dataloader": Role.DATALOADER,
    "backward": Role.BACKWARD,
    "forward": Role.FORWARD,
    "optimizer": Role.OPTIMIZER,
}


@dataclass(frozen=True, slots=True)
class BucketTimes:
    """Times (ns), summed over the GPUs that the run used; divide by ``gpus`` for their mean.

    Attributes:
        labels: name by key, in the order of the columns.
        by_iteration: shape (iterations, buckets); rows sum to ``gpus`` times the iteration's duration.
        by_site: shape (sites, buckets), over all selected iterations: the part that belongs to an op.
        gpus: number of GPUs, 1 without any.
    """

    labels: dict[str, str]
    by_iteration: Ints
    by_site: Ints
    gpus: int


def bucket_labels(framework: str, basis: Basis) -> dict[str, str]:
    """Names of the buckets by key, in a framework's own words."""
    own = {"dataloader": loader_title(framework), "python": between_ops(framework)}
    return {key: own.get(key, label) for key, label in (GPU_BUCKETS if basis == "gpu" else CPU_BUCKETS).items()}


def by_cause(activity_ns: Ints) -> Ints:
    """Idle time by `IDLE_CAUSES` (ns), from that by `cpu_activity.ACTIVITIES`; both along the last axis."""
    result = np.zeros((*activity_ns.shape[:-1], len(IDLE_CAUSES)), dtype=activity_ns.dtype)
    for activity, cause in enumerate(_CAUSE_OF_ACTIVITY):
        result[..., cause] += activity_ns[..., activity]
    return result


def bucket_times(run: Run, basis: Basis) -> BucketTimes:
    """The buckets of the selected iterations."""
    return _on_gpu(run) if basis == "gpu" else _on_cpu(run)


def _on_gpu(run: Run) -> BucketTimes:
    profile = run.view.profile
    launches = profile.launches
    stop = launches.start_ns + launches.duration_ns
    layer_of = _layer_of_launch(run)
    site = run.launch_site
    sums = _Sums(run, bucket_labels(profile.source.framework, "gpu"))
    gpus = profile.iterations.gpu_ids or (-1,)
    owners = _cpu_owners(run)
    columns = [list(GPU_BUCKETS).index(BUCKET_OF_ACTIVITY[activity]) for activity in ACTIVITIES]
    for gpu in gpus:
        rows = [np.flatnonzero((launches.device == gpu) & (layer_of == layer)) for layer in range(_WORKING)]
        shares, busy = share_out([(launches.start_ns[chosen], stop[chosen]) for chosen in rows], run.windows)
        for column, (chosen, share) in enumerate(zip(rows, shares, strict=True)):
            sums.add(share, column, site[chosen[share.row]])
        pieces, owner = label(gaps(busy, run.windows), owners)
        by_activity = split_by_activity(run.view, pieces.start_ns, pieces.stop_ns)
        for activity, column in enumerate(columns):
            some = by_activity[:, activity] > 0
            share = TimeShares(pieces.row[some], pieces.window[some], by_activity[some, activity])
            # Time without a call belongs to no op, even if an op runs meanwhile on a thread that does not train.
            unowned = ACTIVITIES[activity] in ("dataloader", "python", "unknown")
            sums.add(share, column, np.full(len(share.row), -1) if unowned else owner[some])
    return sums.result(len(gpus))


def _on_cpu(run: Run) -> BucketTimes:
    profile = run.view.profile
    calls, ops = profile.calls, profile.ops
    role, kind = ops.role[calls.op], ops.kind[calls.op]
    works = (kind == CallKind.OP) | (kind == CallKind.RUNTIME) | (role != Role.OTHER)
    stop = calls.start_ns + calls.duration_ns
    owned = run.sites.of_call >= 0
    sums = _Sums(run, bucket_labels(profile.source.framework, "cpu"))
    layers = [
        (name, here) for name, part in _PARTS.items() for here in (owned & (role == part), works & (role == part))
    ]
    # An op outside every part belongs to the rest, but the op is known.
    layers.append(("other", owned & (role == Role.OTHER)))
    rows = [np.flatnonzero(here) for _, here in layers]
    shares, _ = share_out([(calls.start_ns[chosen], stop[chosen]) for chosen in rows], run.windows)
    for (name, _), chosen, share in zip(layers, rows, shares, strict=True):
        sums.add(share, list(CPU_BUCKETS).index(name), run.sites.of_call[chosen[share.row]])
    starts, stops = run.windows
    rest = stops - starts - sums.by_iteration.sum(axis=1)
    sums.by_iteration[:, list(CPU_BUCKETS).index("other")] += rest
    return sums.result(1)


class _Sums:
    """Shares added up by iteration and by site."""

    def __init__(self, run: Run, labels: dict[str, str]) -> None:
        self.labels = labels
        self.by_iteration = np.zeros((run.selection.count, len(labels)), dtype=np.int64)
        self.by_site = np.zeros((len(run.sites), len(labels)), dtype=np.int64)

    def add(self, share: TimeShares, column: int, site: Ints) -> None:
        np.add.at(self.by_iteration[:, column], share.window, share.ns)
        owned = site >= 0
        np.add.at(self.by_site[:, column], site[owned], share.ns[owned])

    def result(self, gpus: int) -> BucketTimes:
        return BucketTimes(self.labels, self.by_iteration, self.by_site, gpus)


def _layer_of_launch(run: Run) -> Ints:
    """Per row of `Profile.launches` its bucket among the first six."""
    launches, kernels, is_kernel = run.view.profile.launches, run.view.profile.kernels, run.view.launch_is_kernel
    keys = list(GPU_BUCKETS)
    return np.select(
        [
            run.launch_scaler,
            run.launch_cast & is_kernel,
            ~is_kernel,
            run.view.launch_is_collective,
            kernels.tensor_core[launches.kernel] == Verdict.YES,
        ],
        [keys.index(name) for name in ("scaler", "casts", "copies", "communication", "tensor_core")],
        keys.index("other_compute"),
    ).astype(np.int64)


def _cpu_owners(run: Run) -> tuple[Ints, Ints, Ints]:
    """Site, start and stop of the outermost ops on the CPU, disjoint: where two threads work, what began first."""
    calls, ops = run.view.profile.calls, run.view.profile.ops
    tops = np.flatnonzero(ops.top[calls.op] & (run.sites.of_call >= 0))
    row, start, stop = disjoint(calls.start_ns[tops], calls.start_ns[tops] + calls.duration_ns[tops])
    return run.sites.of_call[tops[row]], start, stop
