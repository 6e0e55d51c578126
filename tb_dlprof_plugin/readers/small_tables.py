"""Tables of a Timeline that are filled row by row, for recordings of thousands of events."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tb_dlprof_plugin.model.timeline import DeviceEvents, DeviceKind, HostEvents, HostKind, Ints


@dataclass(slots=True)
class HostRows:
    """Events of CPU threads. Indices as in `HostEvents`."""

    rows: list[tuple[int, ...]] = field(default_factory=list)

    def add(
        self, name: int, kind: HostKind, thread: int, start_ns: int, duration_ns: int, *, external_id: int = -1,
        shapes: int = 0, dtypes: int = 0,
    ) -> None:  # fmt: skip
        """Appends an event."""
        self.rows.append((name, kind, thread, start_ns, duration_ns, -1, external_id, -1, -1, shapes, dtypes))

    def table(self) -> HostEvents:
        """All events, sorted as `HostEvents` are."""
        columns = _columns(self.rows, len(HostEvents.__slots__))
        order = np.lexsort((-columns[4], columns[3], columns[2]))
        return HostEvents(*(column[order] for column in columns))


@dataclass(slots=True)
class DeviceRows:
    """Activities of a GPU. Indices as in `DeviceEvents`."""

    rows: list[tuple[int, ...]] = field(default_factory=list)

    def add(
        self, name: int, kind: DeviceKind, stream: int, start_ns: int, duration_ns: int, *, external_id: int = -1,
        config: int = 0,
    ) -> None:  # fmt: skip
        """Appends an activity of GPU 0."""
        self.rows.append((name, kind, 0, stream, start_ns, duration_ns, -1, external_id, -1, config))

    def table(self) -> DeviceEvents:
        """All activities, sorted as `DeviceEvents` are."""
        columns = _columns(self.rows, len(DeviceEvents.__slots__))
        order = np.argsort(columns[4], kind="stable")
        return DeviceEvents(*(column[order] for column in columns))


def _columns(rows: list[tuple[int, ...]], count: int) -> list[Ints]:
    return list(np.array(rows, dtype=np.int64).reshape(-1, count).T)
