"""Page faults and CPU time of making large batches without workers and in one.

    python -m lab.loader.page_faults

Batches of 19 MB in one tensor: in a worker they lie in new shared memory, 4,688 pages each.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch

from .process import train
from .subjects import Subject, loader_of

_BATCHES = 30


def main() -> None:
    """Of the command line."""
    torch.set_num_threads(1)
    for workers in (0, 1):
        batches = iter(loader_of(Subject("large", 0, 0, 8, options={"sleep_ms": 3, "size": 600_000}), workers))
        model = torch.nn.Linear(4, 4)
        for _ in range(8):
            next(batches)
        pid = batches._workers[0].pid if workers else os.getpid()
        before = _used(pid)
        for _ in range(_BATCHES):
            next(batches)
            train(model, 1)
        faults, ms = ((end - begin) / _BATCHES for begin, end in zip(before, _used(pid), strict=True))
        print(f"{workers} workers: {faults:6,.0f} page faults, {ms:5.1f} ms on a CPU a batch")


def _used(pid: int) -> tuple[int, float]:
    """Page faults without reading from a disk, and CPU time of its threads in ms."""
    faults = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[7])
    files = (Path(f"/proc/{pid}/task/{thread}/schedstat") for thread in os.listdir(f"/proc/{pid}/task"))
    return faults, sum(int(file.read_text().split()[0]) for file in files) / 1e6


if __name__ == "__main__":
    main()
