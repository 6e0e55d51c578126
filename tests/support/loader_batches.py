"""Batches of a DataLoader, as the hook measures them, of a made-up loader."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tb_dlprof_plugin.model.profile import LoaderBatches
from tb_dlprof_plugin.model.run_facts import DataLoaderFacts, LoaderRecording, RunFacts, TransformTime
from tb_dlprof_plugin.profile_view import ProfileView

MS = 1_000_000


def batches(count: int = 60, **columns: Any) -> LoaderBatches:
    """Of one worker: items take 30 ms off the CPU, collating 1 ms on it; the training takes 10 ms and waits for 21.

    Args:
        count: of batches.
        columns: other values, a number for all or an array.
    """
    usual = {
        "worker": 0, "begin_ns": 32 * MS * np.arange(count), "items_ns": 30 * MS, "items_cpu_ns": MS, "collate_ns": MS,
        "collate_cpu_ns": MS, "process_cpu_ns": 2 * MS, "queued_ns": 0, "put_ns": MS // 10, "put_cpu_ns": MS // 10,
        "bytes": 4096, "tensors": 1, "samples": 4, "median_sample_ns": 7 * MS, "slow_samples": 0, "slow_samples_ns": 0,
        "slowest_sample": -1, "asked_ns": 32 * MS * np.arange(count), "wait_ns": 21 * MS, "wait_cpu_ns": MS // 2,
        "ready": 0, "handover_ns": MS // 10, "unpickle_ns": MS // 4, "pin_ns": -1, "gap_ns": 10 * MS, "gap_cpu_ns": MS,
        "recorded": False, "unpickle_cpu_ns": MS // 4,
    }  # fmt: skip
    arrays = {
        name: np.broadcast_to(np.asarray(value), count).astype(np.bool_ if name == "recorded" else np.int64)
        for name, value in (usual | columns).items()
    }
    return LoaderBatches(**arrays)


def facts(workers: int = 1, **fields: Any) -> RunFacts:
    """Of a run with this loader."""
    usual = {
        "loader": "torch._MultiProcessingDataLoaderIter", "workers": workers, "prefetch_factor": 2, "in_order": True,
        "start_method": "fork", "first_batch_ns": 200 * MS, "worker_memory_bytes": [100 << 20] * workers, "cores": 8.0,
        "transforms": [TransformTime("Resize", 40, 40 * 5 * MS, 40 * MS)], "transform_samples": 40,
        "iterable": False, "whole_batches": False, "collate": "default_collate", "pins": False,
    }  # fmt: skip
    return RunFacts(dataloader=DataLoaderFacts(num_workers=workers), loading=LoaderRecording(**(usual | fields)))


def with_loader(view: ProfileView, table: LoaderBatches, of: RunFacts) -> ProfileView:
    """A recording with such a loader."""
    return ProfileView(dataclasses.replace(view.profile, loader_batches=table, facts=of))
