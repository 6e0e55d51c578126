"""A file that worker processes write their batches' times to, and that the training process reads.

Each worker has a slot of its own, so nothing is locked: a ring of records, whose count is written after the record, and
a text. The first number of the file says whether workers go on measuring.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import struct
from typing import Any, NamedTuple


class BatchTimes(NamedTuple):
    """Of one batch where it was made; times in ns, -1 for unknown.

    Attributes:
        task: number of the batch in its iterator.
        begin_ns: when the first item was asked for, of the monotonic clock.
        items_ns, items_cpu_ns: reading the items, on the wall clock and on this thread's CPU.
        collate_ns, collate_cpu_ns: the same of ``collate_fn``.
        process_cpu_ns: CPU time of all threads of the process, in both.
        queued_ns: in both, ready to run while no core was free.
        put_ns, put_cpu_ns: serialising the batch, with copies into shared memory.
        put_end_ns: when it was serialised, of the monotonic clock.
        bytes, tensors: of the batch.
        samples: items of the batch.
        median_sample_ns: of its items.
        slow_samples, slow_samples_ns: items that take four times the median and more, and their time.
        slowest_sample: index of the slowest item in the dataset.
    """

    task: int
    begin_ns: int
    items_ns: int
    items_cpu_ns: int
    collate_ns: int
    collate_cpu_ns: int
    process_cpu_ns: int
    queued_ns: int
    put_ns: int
    put_cpu_ns: int
    put_end_ns: int
    bytes: int
    tensors: int
    samples: int
    median_sample_ns: int
    slow_samples: int
    slow_samples_ns: int
    slowest_sample: int


ROWS = 512
"""Of a worker that are kept."""
_HEADER = struct.Struct("<q")
_SLOT = struct.Struct("<qqqq")
_RECORD = struct.Struct(f"<{len(BatchTimes._fields)}q")
_TEXT_BYTES = 8192
_SLOT_BYTES = _SLOT.size + _TEXT_BYTES + ROWS * _RECORD.size


class Ring:
    """An open file. The training process makes it, workers open it by its path.

    Args:
        path: of the file.
        slots: the number of workers, where the file is to be made; 0 opens it.
    """

    def __init__(self, path: str, slots: int = 0) -> None:
        flags = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | (os.O_CREAT | os.O_EXCL if slots else 0)
        file = os.open(path, flags, 0o600)
        try:
            if slots:
                size = _HEADER.size + slots * _SLOT_BYTES
                os.ftruncate(file, size)
                # Of a full disk an error here, and no fatal signal where a worker writes.
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file, 0, size)
            self._map = mmap.mmap(file, 0)
        finally:
            os.close(file)
        self._slots = slots
        if slots:
            _HEADER.pack_into(self._map, 0, 1)

    @property
    def is_on(self) -> bool:
        """Whether workers go on measuring."""
        return bool(_HEADER.unpack_from(self._map, 0)[0])

    def stop(self) -> None:
        """Workers measure no more."""
        _HEADER.pack_into(self._map, 0, 0)

    def close(self) -> None:
        """Close the file. Never raises."""
        with contextlib.suppress(BufferError, ValueError):
            self._map.close()

    def start_slot(self, slot: int, ready_ns: int) -> None:
        """In a worker: it is ready, at this time of the monotonic clock."""
        _SLOT.pack_into(self._map, self._at(slot), 0, ready_ns, os.getpid(), 0)

    def add(self, slot: int, row: BatchTimes) -> None:
        """In a worker: a batch."""
        at = self._at(slot)
        (count,) = _HEADER.unpack_from(self._map, at)
        _RECORD.pack_into(self._map, at + _SLOT.size + _TEXT_BYTES + count % ROWS * _RECORD.size, *row)
        _HEADER.pack_into(self._map, at, count + 1)

    def write_text(self, slot: int, content: Any) -> None:
        """In a worker: what is not a number; replaces what it wrote before. Too long a text is left out."""
        data = json.dumps(content).encode()
        at = self._at(slot)
        if len(data) <= _TEXT_BYTES:
            _HEADER.pack_into(self._map, at + 3 * _HEADER.size, 0)
            self._map[at + _SLOT.size : at + _SLOT.size + len(data)] = data
            _HEADER.pack_into(self._map, at + 3 * _HEADER.size, len(data))

    def ready_ns(self) -> list[int]:
        """In the training process: of each worker that has started, when it was ready."""
        return [ready for _, ready, pid, _ in self._heads() if pid]

    def rows(self) -> list[tuple[int, BatchTimes]]:
        """In the training process: the last batches of each worker, with the worker's number."""
        found = []
        for slot, (count, _, _, _) in enumerate(self._heads()):
            first = self._at(slot) + _SLOT.size + _TEXT_BYTES
            # A worker may be writing over the oldest one.
            for number in range(max(0, count - ROWS + 1), count):
                row = BatchTimes(*_RECORD.unpack_from(self._map, first + number % ROWS * _RECORD.size))
                found.append((slot, row))
        return found

    def texts(self) -> list[Any]:
        """In the training process: of each worker that has written one."""
        found = []
        for slot, (_, _, _, size) in enumerate(self._heads()):
            first = self._at(slot) + _SLOT.size
            # One that is being written is none.
            with contextlib.suppress(ValueError):
                if 0 < size <= _TEXT_BYTES:
                    found.append(json.loads(self._map[first : first + size]))
        return found

    def _heads(self) -> list[tuple[int, int, int, int]]:
        return [_SLOT.unpack_from(self._map, self._at(slot)) for slot in range(self._slots)]

    def _at(self, slot: int) -> int:
        return _HEADER.size + slot * _SLOT_BYTES
