"""When Python's garbage collector ran in the recorded steps: the training waits for it, and with it all other ranks."""

from __future__ import annotations

import gc
import time
from collections import deque

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import GarbageCollection, RunFacts

SHORTEST_NS = 50_000
"""Collections of the young generation are shorter, and there are hundreds of them in a second."""
MOST = 1000


class GarbageWatch:
    """Notes the collections of a cycle, through the collector's own callbacks, while it is installed."""

    def __init__(self) -> None:
        self._seen: deque[GarbageCollection] = deque(maxlen=MOST)
        self._began_ns = 0
        self._watched = False

    def install(self) -> None:
        """Begin to watch; does nothing if it watches."""
        if self._callback not in gc.callbacks:
            gc.callbacks.append(self._callback)
            self._watched = True

    def remove(self) -> None:
        """Stop watching. What was seen stays until `new_cycle`."""
        if self._callback in gc.callbacks:
            gc.callbacks.remove(self._callback)

    def new_cycle(self) -> None:
        """Forget what was seen."""
        self._seen.clear()

    def fill(self, facts: RunFacts) -> None:
        """Fill the collections' fields."""
        if self._watched:
            facts.garbage_recorded, facts.garbage_collections = True, list(self._seen)

    def _callback(self, phase: str, info: dict[str, int]) -> None:
        # The collector runs one collection at a time, whatever the thread.
        if phase == "start":
            self._began_ns = time.time_ns()
        elif self._began_ns:
            probe(lambda: self._ended(info))

    def _ended(self, info: dict[str, int]) -> None:
        took_ns = time.time_ns() - self._began_ns
        if took_ns >= SHORTEST_NS:
            self._seen.append(GarbageCollection(self._began_ns, took_ns, info.get("generation", 0)))
        self._began_ns = 0
