"""Stored profiles whose facts are read several at a time before they are asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from tb_dlprof_plugin.store.choice import StoredBlob

AT_ONCE = 8
"""Reads of small blobs. One at a time TensorBoard's fast loader answers each after 44 ms (its sockets wait for
acknowledgements), several at a time in 1 ms."""
_AHEAD = 64


@dataclass(frozen=True, slots=True)
class _Ahead(StoredBlob):
    blob: StoredBlob
    facts: Future[bytes | None]

    def read(self) -> bytes:
        return self.blob.read()

    def read_facts(self) -> bytes | None:
        """What was read, or the error with which that ended."""
        return self.facts.result()


def facts_ahead(blobs: Iterable[StoredBlob]) -> Iterator[StoredBlob]:
    """The profiles in their order. Those that are in memory anyway need no reading ahead."""
    waiting: deque[StoredBlob] = deque()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for blob in blobs:
            waiting.append(_Ahead(blob.ref, blob.key, blob, pool.submit(blob.read_facts)))
            if len(waiting) >= _AHEAD:
                yield waiting.popleft()
        yield from waiting
