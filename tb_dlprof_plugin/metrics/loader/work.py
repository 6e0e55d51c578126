"""What the simulation of a DataLoader takes, from the measured batches."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.metrics.loader.batches import FEWEST, measured_rows, steady_rows, why_unknown
from tb_dlprof_plugin.model.profile import IN_PROCESS, Floats, Ints, LoaderBatches
from tb_dlprof_plugin.profile_view import ProfileView, per_view
from tb_dlprof_plugin.simulation.change import Change
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.simulation.loader import LoaderWork
from tb_dlprof_plugin.simulation.pauses import loading_times
from tb_dlprof_plugin.simulation.simulator import Simulation

_PUT_NS, _PUT_TENSOR_NS = 60_000, 60_000
_UNPICKLE_NS, _UNPICKLE_TENSOR_NS = 200_000, 110_000
HANDOVER_NS = 100_000
"""Handing a batch over, for a loader that was recorded without workers: for each batch and for each of its tensors,
which take a file descriptor each. Medians of `lab/loader` on two cores."""
_IN_SHARED_MEMORY = "default_collate"
_BUSY = 0.4
"""Share of the cores that loader and training use together, from which on they keep each other waiting."""
_CROWDED = 1.1
"""Time of a thread that is ready, over its time on a core, from which cores are scarce."""


@per_view
def loader_work(view: ProfileView) -> LoaderWork | None:
    """What the simulation takes; None where the workers' side is not known."""
    if why_unknown(view) is not None:
        return None
    batches, recording = view.profile.loader_batches, view.profile.facts.loading
    assert recording is not None
    rows = measured_rows(batches)
    in_process = not recording.workers
    queued = np.maximum(batches.queued_ns[rows], 0).astype(float)
    made = (batches.items_ns + batches.collate_ns)[rows].astype(float)
    # A data set may decode in threads of its own; the one that serialises the batch before is none of them.
    threads = (batches.process_cpu_ns - np.maximum(batches.put_cpu_ns, 0))[rows]
    own = np.maximum((batches.items_cpu_ns + batches.collate_cpu_ns)[rows], 0 if in_process else threads)
    cpu = np.minimum(own.astype(float), made)
    train, train_cpu = _training(view)
    cores = float(recording.cores or view.profile.system.cpu_count or 1)
    others = _others(batches, rows, train_cpu, cores)
    off = np.maximum(made - cpu - (queued if others is not None else 0.0), 0.0)
    # What is not known is taken to cost nothing. The training's thread gives the memory back.
    write_ns, free_ns = recording.shared_write_ns or 0.0, recording.shared_free_ns or 0.0
    if in_process:
        tensors = np.maximum(batches.tensors[rows], 1).astype(float)
        alone_cpu = cpu
        put_cpu = _PUT_NS + _PUT_TENSOR_NS * tensors + write_ns
        unpickle = _UNPICKLE_NS + _UNPICKLE_TENSOR_NS * tensors
        waits = np.zeros(len(rows))
        handover, next_cpu = float(HANDOVER_NS), HANDOVER_NS + free_ns
    else:
        put = np.maximum(batches.put_ns[rows], 0).astype(float)
        # Waiting for a core while it serialises is not counted apart.
        put_cpu = np.minimum(np.maximum(batches.put_cpu_ns[rows], 0).astype(float), put)
        # In a worker torch's own function collates into new shared memory; what others give is copied as it is put.
        shared = np.minimum(write_ns, np.maximum(batches.collate_cpu_ns[rows], 0))
        alone_cpu = cpu - (shared if recording.collate == _IN_SHARED_MEMORY else 0.0)
        unpickle_cpu = np.where(batches.unpickle_cpu_ns < 0, batches.unpickle_ns, batches.unpickle_cpu_ns)
        whole = _known(batches.unpickle_ns, rows, _UNPICKLE_NS)
        unpickle = np.minimum(_known(unpickle_cpu, rows, _UNPICKLE_NS), whole)
        waits = whole - unpickle
        handover = float(np.median(_known(batches.handover_ns, rows, HANDOVER_NS)))
        given = batches.wait_cpu_ns.astype(float) - (0 if recording.pins else np.maximum(unpickle_cpu, 0))
        next_cpu = max(float(np.median(given)), 0.0) + free_ns
        train = np.maximum(train - free_ns, 0.5 * train)
        train_cpu = np.maximum(train_cpu - free_ns, 0.0)
    return LoaderWork(
        make_cpu=cpu,
        make_off=off,
        alone_cpu=np.maximum(alone_cpu, 0.0),
        put_cpu=put_cpu,
        unpickle=unpickle,
        unpickle_wait=waits,
        pin=_known(batches.pin_ns, rows, 0),
        handover=handover,
        next_cpu=next_cpu,
        train=train,
        train_cpu=train_cpu,
        prefetch=recording.prefetch_factor or 2,
        in_order=recording.in_order is not False,
        pins=bool(recording.pins) and bool((batches.pin_ns >= 0).any()),
        cores=cores,
        others=others or 0.0,
    )


def _known(column: Ints, rows: Ints, otherwise: float) -> Floats:
    """Of these rows, with the median for those that are not known."""
    values = column[rows].astype(float)
    known = values >= 0
    values[~known] = float(np.median(values[known])) if known.any() else otherwise
    return values


def _training(view: ProfileView) -> tuple[Floats, Floats]:
    """The steps without loading, as without the profiler, and their CPU time."""
    batches = view.profile.loader_batches
    steady = steady_rows(batches)
    plain = steady & ~batches.recorded
    rows = np.flatnonzero(plain if plain.sum() >= FEWEST // 2 else steady)
    if not len(rows):
        rows = np.flatnonzero(batches.gap_ns >= 0)
    train = np.maximum(batches.gap_ns[rows], 1).astype(float) if len(rows) else np.ones(1)
    cpu = np.maximum(batches.gap_cpu_ns[rows], 0).astype(float) if len(rows) else np.zeros(1)
    if view.profile.has_gpu:
        # The CPU runs ahead of the GPU: a step takes what the replay says without any loading.
        whole = view.selection()
        simulation = Simulation(view, whole)
        least = simulation.usual([Change(cpu=loading_times(view, whole), keep_cpu=0.0)], "expected").ns
        train = np.maximum(train, min(least, step_estimate(view, whole).ns))
    return train, cpu


def _others(batches: LoaderBatches, rows: Ints, train_cpu: Floats, cores: float) -> float | None:
    """Threads of other programs that compete for the cores: as many as make the workers wait for one as they did.

    A thread that is ready runs at the rate cores / (own threads + others). None where the loader and the training are
    too idle to keep each other waiting: what they waited for a core then is others' doing, and stays as it was.
    """
    timed = rows[batches.queued_ns[rows] >= 0]
    steady = np.flatnonzero(steady_rows(batches))
    span = float((batches.gap_ns + batches.wait_ns)[steady].mean()) if len(steady) else 0.0
    if len(timed) < 2 or span <= 0:
        return None
    cpu = float((batches.items_cpu_ns + batches.collate_cpu_ns)[timed].mean())
    queued = float(batches.queued_ns[timed].mean())
    training = float(train_cpu.mean())
    if (cpu + training) / span < _BUSY * cores:
        return None
    stretch = (cpu + queued) / max(cpu, 1.0)
    # A worker runs itself while it is timed, so it counts whole; the training by its share of the time.
    in_process = int(batches.worker[timed[0]]) == IN_PROCESS
    own = 1.0 if in_process else max(1.0, (cpu + queued) / span) + training / span
    return max(0.0, cores * stretch - own) if stretch > _CROWDED else 0.0
