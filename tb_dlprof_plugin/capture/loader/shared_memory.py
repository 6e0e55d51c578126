"""Measures what new shared memory costs, into which workers write their batches: a file for each tensor, whose pages
are made as they are touched."""

from __future__ import annotations

import itertools
import time

import torch

_MOST_BYTES, _MOST_TENSORS = 1 << 24, 64
_SERIAL = 1 << 15
"""Elements up to which torch fills a tensor in the calling thread."""


def shared_memory(batch_bytes: int, tensors: int) -> tuple[float, float] | None:
    """CPU time in ns that such a batch takes more to write there than into memory that it has already, and to give it
    back; None of no bytes. Takes about 25 ms of a large batch."""
    if batch_bytes <= 0 or tensors <= 0:
        return None
    size = max(batch_bytes // tensors, 1)
    count = min(tensors, _MOST_TENSORS, max(_MOST_BYTES // size, 1))
    part = min(size, _MOST_BYTES)
    _times(count, min(part, 4096))  # sets up what the first ones need
    write, again, free = _times(count, part)
    all_of_it = batch_bytes / (count * part)
    return max(write - again, 0) * all_of_it, free * all_of_it


def _times(count: int, size: int) -> tuple[int, ...]:
    """To make and write so many tensors of so many bytes, to write them again, and to give them back."""
    times = [time.thread_time_ns()]
    storages = [torch.UntypedStorage._new_shared(size) for _ in range(count)]
    views = [torch.empty(0, dtype=torch.uint8).set_(storage) for storage in storages]  # type: ignore[call-overload]
    for _ in range(2):
        for view in views:
            for piece in view.split(_SERIAL):
                piece.fill_(1)
        times.append(time.thread_time_ns())
    del view, piece
    storages.clear()
    views.clear()
    times.append(time.thread_time_ns())
    return tuple(end - begin for begin, end in itertools.pairwise(times))
