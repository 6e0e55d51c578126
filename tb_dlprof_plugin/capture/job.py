"""What the training process hands to the analysis process: one JSON file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tb_dlprof_plugin.storage.facts import RunFacts, System


class Job(msgspec.Struct):
    """One trace to analyse. All paths are absolute."""

    trace: str
    """The trace as the training process wrote it: plain JSON."""
    final_trace: str
    """Where the trace ends up: the same path, or one that ends in ``.gz`` where it is to be compressed."""
    keep_trace: bool
    event_directory: str
    facts: RunFacts
    system: System
    session: str
    rank: int
    cycle: int
    worker: str
    lock_fd: int | None = None
    """An inherited file, locked during the analysis: one training process has one analysis running at a time."""

    @property
    def compress(self) -> bool:
        """Whether the trace is to be gzip'd."""
        return self.final_trace != self.trace

    def write(self, path: Path) -> None:
        """Store the job. Raises OSError."""
        path.write_bytes(msgspec.json.encode(self))

    @classmethod
    def read(cls, path: Path) -> Job:
        """Raises OSError, or msgspec.MsgspecError for something that is no job."""
        return msgspec.json.decode(path.read_bytes(), type=cls)
