"""The least that reading a trace can cost in Python: one typed decode of the whole file with msgspec, nothing else.

Decoded are the fields that an analysis of ops, launches, kernels and memory needs; shapes and types stay JSON text.
``lab/speed/peers.py`` holds the whole analysis against this.

    python lab/speed/bare_decode.py FILE.json[.gz]     # prints the number of events
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import msgspec


class Args(msgspec.Struct, gc=False):
    """What events carry."""

    external_id: int | None = msgspec.field(default=None, name="External id")
    correlation: int | None = None
    sequence: int | None = msgspec.field(default=None, name="Sequence number")
    forward_thread: int | None = msgspec.field(default=None, name="Fwd thread id")
    input_dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input Dims")
    input_types: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input type")
    device: int | None = None
    stream: int | str | None = None
    bytes: int | None = None
    grid: msgspec.Raw = msgspec.Raw()
    block: msgspec.Raw = msgspec.Raw()
    registers: int | None = msgspec.field(default=None, name="registers per thread")
    shared_memory: int | None = msgspec.field(default=None, name="shared memory")
    occupancy: float | None = msgspec.field(default=None, name="est. achieved occupancy %")
    device_type: int | None = msgspec.field(default=None, name="Device Type")
    device_id: int | None = msgspec.field(default=None, name="Device Id")
    allocation: int | None = msgspec.field(default=None, name="Bytes")
    address: int | None = msgspec.field(default=None, name="Addr")
    allocated: int | None = msgspec.field(default=None, name="Total Allocated")
    reserved: int | None = msgspec.field(default=None, name="Total Reserved")


class Event(msgspec.Struct, gc=False):
    """One event."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float = 0.0
    dur: float = 0.0
    args: Args | None = None


class Trace(msgspec.Struct):
    """The document."""

    traceEvents: list[Event]


def main() -> None:
    """Entry point of the script."""
    path = Path(sys.argv[1])
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    print(len(msgspec.json.decode(data, type=Trace).traceEvents))


if __name__ == "__main__":
    main()
