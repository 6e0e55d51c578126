"""How long reading an XPlane file takes, against protobuf's own parse of it.

    python lab/speed/xplane_reading.py vm.xplane.pb --times 40

The file's events are repeated to the size of a real recording, later each time. The peer parses the whole file with a
proto in which events and stats are messages, as TensorFlow's is, and does nothing with them.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tb_dlprof_plugin.readers.registry import read_timelines
from tb_dlprof_plugin.readers.xplane.xplane_pb2 import DESCRIPTOR

_BOUND = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--times", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "large.xplane.pb"
        events = _repeated(options.source, file, options.times)
        peer = _whole_space()
        text = file.read_bytes()
        parse = _best(lambda: peer.FromString(text))
        read = _best(lambda: read_timelines(file))
    print(f"{events:,} events, {len(text) / 1e6:.1f} MB")
    print(f"protobuf's parse {parse * 1e3:.0f} ms, reading into a Timeline {read * 1e3:.0f} ms")
    print(f"ratio {read / parse:.2f} (bound {_BOUND:g})")


def _best(work: Callable[[], object], rounds: int = 15) -> float:
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def _repeated(source: Path, target: Path, times: int) -> int:
    """Writes the file with all events ``times`` times; how many those are.

    Lines of later rounds begin later, and their launches have other numbers: one launch of all rounds would be none
    that a program makes.
    """
    text = source.read_bytes()
    space = _whole_space().FromString(gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text)
    count = 0
    step = max((getattr(stat, kind) for plane in space.planes for line in plane.lines for event in line.events
                for stat, kind in _launches(plane, event)), default=0)  # fmt: skip
    for plane in space.planes:
        lines = list(plane.lines)
        for turn in range(1, times):
            for line in lines:
                copy = plane.lines.add()
                copy.CopyFrom(line)
                copy.timestamp_ns += turn * 200_000_000
                for event in copy.events:
                    for stat, kind in _launches(plane, event):
                        setattr(stat, kind, getattr(stat, kind) + turn * step)
        count += sum(len(line.events) for line in plane.lines)
    target.write_bytes(space.SerializeToString())
    return count


def _launches(plane: Any, event: Any) -> Iterator[tuple[Any, str]]:
    """The stats of an event that name a launch, and the field that holds its number."""
    for stat in event.stats:
        kind = stat.WhichOneof("value")
        if kind in ("uint64_value", "int64_value") and plane.stat_metadata[stat.metadata_id].name == b"correlation_id":
            yield stat, kind


def _whole_space() -> Any:
    """The message of a whole file, with events and stats as messages."""
    file = descriptor_pb2.FileDescriptorProto()
    DESCRIPTOR.CopyToProto(file)
    file.name, file.package = "peer.proto", "peer"
    for message in file.message_type:
        for field in [*message.field, *(inner for nested in message.nested_type for inner in nested.field)]:
            if field.type_name:
                field.type_name = field.type_name.replace(".tb_dlprof.xplane.v1.", ".peer.")
        if message.name == "XLine":
            events = next(field for field in message.field if field.name == "events")
            events.type, events.type_name = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE, ".peer.XEvent"
    kinds = descriptor_pb2.FieldDescriptorProto
    event = file.message_type.add(name="XEvent")
    for number, name in enumerate(("metadata_id", "offset_ps", "duration_ps"), 1):
        event.field.add(name=name, number=number, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    event.field.add(
        name="stats", number=4, type=kinds.TYPE_MESSAGE, type_name=".peer.XStat", label=kinds.LABEL_REPEATED
    )
    space = file.message_type.add(name="XSpace")
    space.field.add(
        name="planes", number=1, type=kinds.TYPE_MESSAGE, type_name=".peer.XPlane", label=kinds.LABEL_REPEATED
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("peer.XSpace"))
    return found


if __name__ == "__main__":
    main()
