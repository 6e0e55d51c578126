"""Measures what new shared memory costs, into which workers write their batches: a file for each tensor, whose pages
are made as they are touched."""

from __future__ import annotations

import itertools
import mmap
import os
import time

_MOST_BYTES, _MOST_TENSORS = 1 << 24, 64
_CHUNK = 1 << 16


def shared_memory(batch_bytes: int, tensors: int) -> tuple[float, float] | None:
    """CPU time in ns that such a batch takes more to write there than into memory that it has already, and to give it
    back; None of no bytes, or where the system has no files in memory. Takes about 20 ms of a large batch."""
    if batch_bytes <= 0 or tensors <= 0 or not hasattr(os, "memfd_create"):
        return None
    size = max(batch_bytes // tensors, 1)
    count = min(tensors, _MOST_TENSORS, max(_MOST_BYTES // size, 1))
    part = min(size, _MOST_BYTES)
    _times(count, min(part, 4096))  # sets up what the first ones need
    write, again, free = _times(count, part)
    all_of_it = batch_bytes / (count * part)
    return max(write - again, 0) * all_of_it, free * all_of_it


def _times(count: int, size: int) -> tuple[int, ...]:
    """To make and write so many files of so many bytes, to write them again, and to give them back."""
    data = bytes(min(size, _CHUNK))
    times = [time.thread_time_ns()]
    files = [_file(size) for _ in range(count)]
    for _ in range(2):
        for file in files:
            for at in range(0, size - len(data) + 1, len(data)):
                file[at : at + len(data)] = data
        times.append(time.thread_time_ns())
    for file in files:
        file.close()
    times.append(time.thread_time_ns())
    return tuple(end - begin for begin, end in itertools.pairwise(times))


def _file(size: int) -> mmap.mmap:
    # Of the same kind as torch's, but not in /dev/shm: where that one is full, writing ends the process.
    file = os.memfd_create("tb_dlprof_loader")
    try:
        os.ftruncate(file, size)
        return mmap.mmap(file, size)
    finally:
        os.close(file)
