"""Makes XPlane files event by event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tb_dlprof_plugin.readers.xplane.xplane_pb2 import HloProto, XPlane, XStat


class Space:
    """A file under construction."""

    def __init__(self) -> None:
        self.planes: list[Plane] = []

    def plane(self, name: str, **stats: Any) -> Plane:
        """A new plane."""
        self.planes.append(Plane(name, stats))
        return self.planes[-1]

    def program(self, name: str, number: int, hlo: HloProto) -> None:
        """A compiled program among the metadata."""
        plane = self.plane("/host:metadata")
        plane.message.event_metadata[number].name = f"{name}({number})".encode()
        plane.message.event_metadata[number].stats.append(plane.stat("Hlo Proto", hlo.SerializeToString()))

    def text(self) -> bytes:
        """The file's bytes."""
        parts = []
        for plane in self.planes:
            body = plane.message.SerializeToString()
            parts.append(b"\x0a" + varint(len(body)) + body)
        return b"".join(parts)

    def write(self, path: Path) -> Path:
        """Writes the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.text())
        return path


class Plane:
    """A plane under construction; texts are references, as profilers write them."""

    def __init__(self, name: str, stats: dict[str, Any]) -> None:
        self.message = XPlane(name=name.encode())
        self._names: dict[str, int] = {}
        self._events: dict[str, int] = {}
        self._lines: dict[str, int] = {}
        for key, value in stats.items():
            self.message.stats.append(self.stat(key, value))

    def stat(self, name: str, value: Any) -> XStat:
        """A stat of this plane."""
        stat = XStat(metadata_id=self._number(name))
        if isinstance(value, str):
            stat.ref_value = self._number(value)
        elif isinstance(value, bytes):
            stat.bytes_value = value
        elif isinstance(value, float):
            stat.double_value = value
        else:
            stat.int64_value = value
        return stat

    def event(
        self, line: str, called: str, start_us: float, duration_us: float, /, *, line_id: int = 0, begin_ns: int = 0,
        **stats: Any,
    ) -> None:  # fmt: skip
        """An event on a line, which is made where it is new."""
        if line not in self._lines:
            self._lines[line] = len(self.message.lines)
            self.message.lines.add(name=line.encode(), id=line_id or len(self._lines), timestamp_ns=begin_ns)
        number = self._events.setdefault(called, len(self._events) + 1)
        self.message.event_metadata[number].name = called.encode()
        times = varint(round(start_us * 1e6)), varint(round(duration_us * 1e6))
        text = b"\x08" + varint(number) + b"\x10" + times[0] + b"\x18" + times[1]
        for key, value in stats.items():
            body = self.stat(key, value).SerializeToString()
            text += b"\x22" + varint(len(body)) + body
        self.message.lines[self._lines[line]].events.append(text)

    def _number(self, name: str) -> int:
        number = self._names.setdefault(name, len(self._names) + 1)
        self.message.stat_metadata[number].name = name.encode()
        return number


def varint(value: int) -> bytes:
    """A number of protobuf's."""
    text = b""
    while value > 127:
        text += bytes([value & 127 | 128])
        value >>= 7
    return text + bytes([value])
