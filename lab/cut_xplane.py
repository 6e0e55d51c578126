"""Cuts an XPlane file down to a fixture of the tests: its first steps, and of its programs what the reader reads.

    python lab/cut_xplane.py vm.xplane.pb tests/readers/xplane/jax_h200.xplane.pb.gz --steps 2

Activities of later steps are left out, and so are programs that ran no kernel and fields that the reader's proto does
not know.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

from tb_dlprof_plugin.readers.xplane.device_events import gpu_of
from tb_dlprof_plugin.readers.xplane.event_table import named_stats, stat_number, text_of
from tb_dlprof_plugin.readers.xplane.space import read_space
from tb_dlprof_plugin.readers.xplane.xplane_pb2 import HloProto, XLine, XPlane, XStat

_PLANES = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--steps", type=int, default=2)
    options = parser.parse_args()
    planes = read_space(options.source).planes
    calls = [
        call for plane in planes if gpu_of(plane) is not None for line in plane.lines for call in _calls(plane, line)
    ]
    kept = set(sorted(set(calls))[: options.steps])
    text = b""
    for plane in planes:
        if gpu_of(plane) is not None:
            _keep_calls(plane, kept)
        if text_of(plane.name) == "/host:metadata":
            _cut_programs(plane, _programs(planes))
        plane.DiscardUnknownFields()  # type: ignore[attr-defined]
        body = plane.SerializeToString()
        text += bytes([_PLANES << 3 | 2]) + _varint(len(body)) + body
    options.target.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{options.target}: {options.target.stat().st_size:,} bytes")


def _number(plane: XPlane, event: bytes, name: str) -> int | None:
    stats = [XStat.FromString(body) for number, body in _fields(event) if number == 4]
    return stat_number(named_stats(plane, stats).get(name))


def _calls(plane: XPlane, line: XLine) -> list[int]:
    found = (_number(plane, event, "correlation_id") for event in line.events)
    return [number for number in found if number is not None]


def _keep_calls(plane: XPlane, kept: set[int]) -> None:
    for line in plane.lines:
        events = [event for event in line.events if _number(plane, event, "correlation_id") in kept]
        del line.events[:]
        line.events.extend(events)


def _programs(planes: list[XPlane]) -> set[str]:
    return {text_of(one.name) for plane in planes if gpu_of(plane) is not None for one in plane.stat_metadata.values()}


def _cut_programs(plane: XPlane, names: set[str]) -> None:
    for key in list(plane.event_metadata):
        one = plane.event_metadata[key]
        if text_of(one.name).partition("(")[0] not in names:
            del plane.event_metadata[key]
            continue
        for stat in one.stats:
            if stat.bytes_value:
                proto = HloProto.FromString(stat.bytes_value)
                proto.DiscardUnknownFields()  # type: ignore[attr-defined]
                stat.bytes_value = proto.SerializeToString(deterministic=True)


def _fields(message: bytes) -> list[tuple[int, bytes]]:
    """The length-delimited fields of a message."""
    found, at = [], 0
    while at < len(message):
        tag, at = _read(message, at)
        length, at = _read(message, at)
        if tag & 7 == 2:
            found.append((tag >> 3, message[at : at + length]))
            at += length
    return found


def _read(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _varint(value: int) -> bytes:
    text = b""
    while value > 127:
        text += bytes([value & 127 | 128])
        value >>= 7
    return text + bytes([value])


if __name__ == "__main__":
    main()
