"""Bytes that ask for as much memory or time as they can, of every kind of blob that is stored: a table of builders.

    python -m tests.hostile.bombs [WORDS OF A NAME]

measures them, and large recorded blobs, each in a process of its own: MB of memory beyond the start, seconds of the
processor, and what came out.

Those with ``many`` in their name have noise next to what they hold, so that they may ask for more: what a blob may take
is in proportion to its size.
"""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile.event_files import framed
from support.messages import pb
from support.recorded_runs import PAIRS
from support.stored_profiles import packed, trial_result, varint
from tensorboard.compat.proto.event_pb2 import Event

from tb_dlprof_plugin.fleet.facts_codec import FORMAT
from tb_dlprof_plugin.model.profile import SCHEMA_VERSION, TIME_CATEGORIES
from tb_dlprof_plugin.model.trial_result import encode_trial
from tb_dlprof_plugin.store.event_file import read_blobs

SIZE = 1_000_000
"""Bytes that most of them have at most."""


@dataclass(frozen=True, slots=True)
class Bomb:
    """Blobs of one kind: "profile", "facts" (of ranks of one job), "trial", "header" or "file"."""

    kind: str
    name: str
    blobs: list[bytes]


@dataclass(frozen=True, slots=True)
class Measured:
    """MB of memory beyond the start, seconds of the processor, and "read", "refused" or a sentence."""

    megabytes: int
    seconds: float
    said: str


def bombs() -> Iterator[Bomb]:
    """All of them."""
    for kind, builder in (("profile", profiles), ("trial", trials), ("header", headers)):
        for name, blob in builder():
            yield Bomb(kind, name, [blob])
    for name, blob in event_files():
        yield Bomb("file", name, [blob])
    for name, blob in facts():
        yield Bomb("facts", name, [blob])
    yield from jobs()


def recorded() -> Iterator[Bomb]:
    """The largest recorded profile, and a job of two ranks of the longest steps that a recording has."""
    largest = max(PAIRS.rglob("*.tb_dlprof"), key=lambda file: file.stat().st_size)
    yield Bomb("profile", "recorded", [next(read_blobs(largest, "run")).blob])
    names = sorted((Path(__file__).parents[1] / "fleet" / "recorded").glob("*slow_gpu*.facts.gz"))
    yield Bomb("facts", "recorded", [gzip.decompress(name.read_bytes()) for name in names])


def measured(some: Sequence[Bomb]) -> list[Measured]:
    """What reading each takes, in a process of its own each."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, bomb in enumerate(some):
            paths.append(Path(folder, str(number)))
            paths[-1].write_bytes(msgspec.msgpack.encode(bomb))
        command = [sys.executable, "-m", "tests.hostile.measure_memory", *paths]
        done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    if len(lines) != len(some):
        raise RuntimeError(done.stderr)
    return [Measured(int(used), float(took), said) for used, took, said in lines]


def noise(size: int) -> bytes:
    """Bytes that do not shrink, always the same."""
    return np.random.default_rng(1).bytes(size)


def _inside(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def profiles(size: int = SIZE) -> Iterator[tuple[str, bytes]]:
    """Stored profiles."""
    start = pb.Profile(schema_version=SCHEMA_VERSION, strings=[""]).SerializeToString()
    calls = pb.Calls(thread=[1], thread_runs=[10**9])
    yield "run length", packed(pb.Profile(schema_version=SCHEMA_VERSION, calls=calls))
    yield "gzip", gzip.compress(bytes(60 * size), mtime=0)
    yield "gzip of gzip", gzip.compress(gzip.compress(bytes(60 * size), mtime=0), mtime=0)
    yield "members of gzip", gzip.compress(start, mtime=0) * 20_000
    number = {kind.name: kind.number for kind in pb.Profile.DESCRIPTOR.fields}
    # What expands a thousand times is refused before it is looked at; what expands by 7 is not.
    for ratio, ballast in ((1000, b""), (7, _inside(99, noise(size // 2))), (4, _inside(99, noise(size // 5)))):
        # Behind so much noise as much as may be.
        room = size * ratio // 20 if ratio == 1000 else size * 7 // 2 if ratio == 7 else 4_000_000 - size // 5

        def blob(content: bytes, ballast: bytes = ballast) -> bytes:
            return gzip.compress(start + ballast + content, 6, mtime=0)

        yield f"one column x{ratio}", blob(_inside(number["launches"], _inside(1, bytes(room))))
        every = b"".join(_inside(field, bytes(room // 9)) for field in range(1, 10))
        yield f"empty strings x{ratio}", blob(_inside(number["strings"], b"") * (room // 2))
        if ratio == 1000:
            continue
        yield f"all columns of launches x{ratio}", blob(_inside(number["launches"], every))
        yield f"unpacked column x{ratio}", blob(_inside(number["launches"], b"\x08\x00" * (room // 2)))
        yield f"notes x{ratio}", blob(_inside(number["notes"], b"") * (room // 2))
        gpus = b"".join((_inside(1, b""),)) * (room // 2)
        yield f"GPUs x{ratio}", blob(_inside(number["system"], gpus))
        yield f"times in the facts x{ratio}", blob(_inside(number["facts"], _inside(68, bytes(room))))
        yield f"lists of shapes x{ratio}", blob(_inside(number["input_shapes"], _inside(1, bytes(room))))
        yield f"shapes x{ratio}", blob(_inside(number["input_shapes"], _inside(3, bytes(room))))
        yield f"unknown fields x{ratio}", blob(_inside(77, b"") * (room // 3))
        yield f"process groups x{ratio}", blob(_inside(number["process_groups"], b"") * (room // 2))
        calls_of = b"".join(_inside(field, bytes(room // 4)) for field in (1, 2, 3, 4))
        one_thread = _inside(5, b"\0") + _inside(6, varint(room // 4))
        yield f"sound calls x{ratio}", blob(_iteration() + _op() + _inside(number["calls"], calls_of + one_thread))
        wide = _inside(number["strings"], "\U0001f600".encode() + b"x" * room)
        yield f"wide string x{ratio}", blob(wide)
    again = pb.ShapeColumns(dimensions=[-100_002, *[100_000, -100_000] * 50_000, 100_000], sizes=[1] * 100_000)
    yield "sizes taken again and again", packed(pb.Profile(schema_version=SCHEMA_VERSION, input_shapes=again))
    # 12 bytes each, and each of them says that 4 million ranks are its members.
    groups = [pb.ProcessGroup(name=str(n), members=[0, 1, 2**22]) for n in range(1000)]
    sound = start + _iteration()
    yield "members of groups", gzip.compress(sound + pb.Profile(process_groups=groups).SerializeToString(), mtime=0)
    runs = pb.ProcessGroup(members=[0, 1, 1] * (size * 5 // 3))
    yield "runs of members", gzip.compress(start + pb.Profile(process_groups=[runs]).SerializeToString(), mtime=0)
    places = b"".join(_inside(field, bytes(4_000_000 // 2)) for field in (1, 2))
    yield "places of calls", gzip.compress(start + _inside(number["call_places"], places), mtime=0)
    rows = 255_000
    calls_of = b"".join(_inside(field, bytes(rows)) for field in (1, 2, 3, 4))
    one_thread = _inside(5, b"\0") + _inside(6, varint(rows))
    sound_calls = _iteration() + _op() + _inside(number["calls"], calls_of + one_thread)
    yield "as many calls as may be", gzip.compress(start + _inside(99, noise(size // 2)) + sound_calls, 6, mtime=0)
    counted = pb.Iterations(number=[0] * 400_000, gpu_ids=list(range(1024)))
    yield (
        "iterations of 1,024 GPUs",
        packed(pb.Profile(schema_version=SCHEMA_VERSION, strings=[""], iterations=counted)),
    )
    numbers = [2**62, -(2**62)] * 200_000
    deltas = pb.Profile(schema_version=SCHEMA_VERSION, strings=[""], memory=pb.Memory(time_ns=numbers))
    yield "differences that leave the range", packed(deltas)


def _iteration() -> bytes:
    rows = {"number": [1], "start_ns": [0], "stop_ns": [9], "host_start_ns": [0], "host_stop_ns": [9]}
    categories = [0] * len(TIME_CATEGORIES)
    return pb.Profile(iterations=pb.Iterations(**rows, category_ns=categories)).SerializeToString()


def _op() -> bytes:
    zero, no = [0], [False]
    ops = pb.Ops(name=zero, kind=zero, op_type=zero, module=zero, role=zero, top=no, tensor_core_eligible=zero,
                 continuation=no, shapes=zero, dtypes=zero)  # fmt: skip
    return pb.Profile(ops=ops).SerializeToString()


def trials(size: int = SIZE) -> Iterator[tuple[str, bytes]]:
    """Results of `tb-dlprof try`."""
    sound = json.loads(encode_trial(trial_result()))
    yield "rows", json.dumps(sound | {"rows": [{"remedy": ""}] * (size // 17)}).encode()
    yield "notes", json.dumps(sound | {"notes": [""] * (size // 4 - 1000)}).encode()
    yield "command", json.dumps(sound | {"command": [""] * (size // 4 - 1000)}).encode()
    yield "brackets", b'{"x":' + b"[" * (size - 10)
    yield "digits", b'{"baseline_ms":' + b"9" * (size - 20) + b"}"
    yield "too long", json.dumps(sound | {"rows": [{"remedy": ""}] * size}).encode()


def headers(size: int = SIZE) -> Iterator[tuple[str, bytes]]:
    """What the metadata of a run holds."""
    yield "unknown fields", pb.Header(schema_version=1).SerializeToString() + _inside(77, b"") * (size // 3)
    yield "long name", pb.Header(schema_version=1, model="\U0001f600" + "x" * (size - 10)).SerializeToString()


def event_files(size: int = SIZE) -> Iterator[tuple[str, bytes]]:
    """Event files."""
    summary = {kind.name: kind.number for kind in Event.DESCRIPTOR.fields}["summary"]
    yield "values", framed(_inside(summary, _inside(1, b"") * (size // 2)))
    named = Event(step=1)
    named.summary.value.add(tag="tb_dlprof/v1/s/rank0").metadata.plugin_data.plugin_name = "tb_dlprof"
    for _ in range(size // 2):
        named.summary.value[0].tensor.string_val.append(b"")
    yield "blobs of one value", framed(named.SerializeToString())
    del named.summary.value[0].tensor.string_val[:]
    named.summary.value[0].tensor.float_val.extend([0.0] * (size // 4))
    yield "numbers in a tensor", framed(named.SerializeToString())
    yield "records", framed(b"") * (size // 16)
    yield "long record", struct.pack("<Q", 2**62) + framed(b"x")[8:]
    variant = b""
    for _ in range(300):
        # TensorProto.variant_val.tensors, inside of each other.
        variant = _inside(15, _inside(3, variant))
    yield "tensors in tensors", framed(_inside(summary, _inside(1, _inside(8, variant))))


_STEPS = ("number", "start_ns", "end_ns", "compute_ns", "communication_ns", "copy_ns", "idle_ns", "input_ns",
          "garbage_ns", "work_hash", "matrix_ns", "matrix_flops")  # fmt: skip
_CALLS = ("iteration", "group", "operation", "sequence", "bytes", "dtype", "peer", "start_ns", "duration_ns",
          "exposed_ns", "work_ns", "idle_ns", "launched_ns", "module", "stream")  # fmt: skip
_PATHS = ("gpu_ns", "gpu_after_host_ns", "host_ns", "host_after_gpu_ns", "unprofiled_gpu_ns",
          "unprofiled_gpu_after_host_ns", "unprofiled_host_ns", "unprofiled_host_after_gpu_ns", "behind_ns",
          "contended_ns")  # fmt: skip
_GRADIENTS = ("iteration", "call", "exchange", "bytes", *_PATHS[:8])
_KERNELS = ("key", "count", "mean_ns")
_Columns = dict[str, tuple[int, bytes]]


def _zeros(names: tuple[str, ...], rows: int, width: int = 1) -> _Columns:
    return {name: (width, bytes(width * rows)) for name in names}


def stored(ballast: int = 0, pieces: list[bytes] | None = None, rank: int = 0, world: int = 2, **changed: Any) -> bytes:
    """The facts of a rank with these parts; the rest is sound. Noise lies next to it, where no version looks."""
    one_step = _zeros(_STEPS, 1)
    parts: dict[str, Any] = {
        "format": FORMAT, "rank": rank, "world_size": world, "host": "", "gpu": "x", "device": 0, "base_ns": 0,
        "framework": "", "backend": "nccl", "step_length": None, "groups": [("0", "", [0, 1, 2], "")],
        "strings": ["", "Float"], "mesh": [], "notes": [], "steps": one_step, "collectives": _zeros(_CALLS, 0),
        "kernels": _zeros(_KERNELS, 0), "launch_share": 1.0, "batch_size": 1, "wrapper": "", "gradients": {},
        "bucket_bytes": -1,
    } | changed  # fmt: skip
    head = zlib.compress(msgspec.msgpack.encode(list(parts.values())), 9)
    return msgspec.msgpack.encode([FORMAT, head, pieces or [], noise(ballast)])


def _spread(calls: int) -> _Columns:
    """Calls that last 1 ns each, one behind the other."""
    ones = dict.fromkeys(("duration_ns", "exposed_ns", "operation"), (1, b"\x02" * calls))
    return _zeros(_CALLS, calls) | ones


def _array(count: int, content: bytes) -> msgspec.Raw:
    return msgspec.Raw(b"\xdd" + struct.pack(">I", count) + content)


def _map(count: int, content: bytes) -> msgspec.Raw:
    return msgspec.Raw(b"\xdf" + struct.pack(">I", count) + content)


def facts(size: int = SIZE) -> Iterator[tuple[str, bytes]]:
    """Facts of a rank: small blobs, and large ones of noise with the same in them."""
    for ballast in (0, size - 70_000):
        name = "many " if ballast else ""

        def blob(pieces: list[bytes] | None = None, ballast: int = ballast, **changed: Any) -> bytes:
            return stored(ballast, pieces, **changed)

        most = 8_000_000 if not ballast else 7_000_000
        yield f"{name}empty strings", blob(strings=_array(most, b"\xa0" * most))
        other = np.full((most // 3, 3), 0xA2, dtype=np.uint8)
        other[:, 1:] = (np.arange(most // 3)[:, None] >> np.array([6, 0])) % 64 + 32
        yield f"{name}other strings", blob(strings=_array(most // 3, other.tobytes()))
        yield f"{name}mesh", blob(mesh=_array(most // 3, b"\x92\xa0\x00" * (most // 3)))
        yield f"{name}notes", blob(notes=_array(most, b"\xa0" * most))
        yield f"{name}groups", blob(groups=_array(most // 5, b"\x94\xa0\xa0\x90\xa0" * (most // 5)))
        members = [(str(n), "", [0, n + 1, 2**22 // (n + 1)], "") for n in range(500)]
        yield f"{name}members of groups", blob(groups=members)
        yield f"{name}runs of members", blob(groups=[("0", "", _array(most, bytes(most)), "")])
        named = b"".join(msgspec.msgpack.encode(str(n)) + b"\x92\x01\xc4\x00" for n in range(200_000))
        yield f"{name}columns", blob(kernels=_map(200_000, named))
        rows = most // 15
        yield f"{name}steps", blob(steps=_zeros(_STEPS, rows))
        numbers = np.arange(rows, dtype="<u4") << 1
        planes = numbers.view(np.uint8).reshape(-1, 4).T.tobytes()
        yield f"{name}other steps", blob(steps=_zeros(_STEPS, rows // 2) | {"number": (4, planes[: 4 * (rows // 2)])})
        yield f"{name}calls", blob(collectives=_zeros(_CALLS, rows) | {"operation": (1, b"\x02" * rows)})
        paths = _zeros((*_CALLS, *_PATHS), most // 25)
        yield f"{name}calls with paths", blob(collectives=paths | {"operation": (1, b"\x02" * (most // 25))})
        yield f"{name}kernels", blob(kernels=_zeros(_KERNELS, most // 3))
        yield f"{name}gradients", blob(gradients=_zeros(_GRADIENTS, most // 12))
        piece = zlib.compress(msgspec.msgpack.encode(_zeros((*_CALLS, *_PATHS), most // 250)), 9)
        yield f"{name}pieces", blob([piece] * 10, steps=_zeros(_STEPS, 10))
        yield f"{name}empty pieces", blob([b""] * 400_000, steps=_zeros(_STEPS, 400_000))
        empty = zlib.compress(b"\x80")
        yield f"{name}pieces of nothing", blob([empty] * 50_000, steps=_zeros(_STEPS, 50_000))
        yield f"{name}host", blob(host="\U0001f600" + "x" * most)
        yield f"{name}unknown parts", blob(later=_array(most, b"\xa0" * most))
        yield f"{name}arrays in arrays", blob(later=msgspec.Raw(b"\x91" * most + b"\x90"))
    for name, ballast, calls in (("few", 0, 5_000), ("many", 60_000, 20_000)):
        # What is let in.
        yield f"as many calls as may be, {name}", stored(ballast, collectives=_spread(calls))
    yield "as many strings as may be", stored(strings=[str(n) for n in range(45_000)])
    yield "stated length", stored(strings=_array(2**32 - 1, b""))
    yield "format 1", zlib.compress(b"\xdc\x00\x11" + struct.pack(">BI", 0xDD, 8_000_000) + b"\xa0" * 8_000_000, 9)
    calls = 60_000
    spread = _zeros(_CALLS, calls) | {"operation": (1, b"\x02" * calls)}
    many = [(str(n), "", [n, 1, 2], "") for n in range(2000)]
    group = (np.arange(calls, dtype="<u2") % 2000 << 1).astype("<u2")
    spread["group"] = (2, group.view(np.uint8).reshape(-1, 2).T.tobytes())
    yield "calls of many groups", stored(collectives=spread, groups=many)
    each = np.full(calls, 2, dtype="<u1")
    one_call_steps = _zeros(_CALLS, calls) | {"iteration": (1, b"\0" + each.tobytes()[1:])}
    one_call_steps |= {"operation": (1, b"\x02" * calls)}
    numbers = (np.arange(calls, dtype="<u4") << 1).view(np.uint8).reshape(-1, 4).T.tobytes()
    yield (
        "a call in each step",
        stored(collectives=one_call_steps, steps=_zeros(_STEPS, calls) | {"number": (4, numbers)}),
    )
    yield "a world of a million", stored(world=2**20, groups=[("0", "", [0, 1, 2**20], "")])
    yield "the last rank of a million", stored(world=2**20, rank=2**20 - 1)
    places = [[f"d{n}", 2**40] for n in range(40_000)]
    yield "places in a mesh", stored(mesh=places)


def jobs() -> Iterator[Bomb]:
    """Jobs each of whose ranks has a bomb."""
    most = 20_000_000
    flood = _array(most, b"\xa0" * most)
    yield Bomb("facts", "four ranks of empty strings", [stored(strings=flood, rank=n, world=4) for n in range(4)])
    for ranks, ballast in ((64, 3_000), (512, 0), (64, 60_000)):
        rows = 30_000
        calls = _zeros(_CALLS, rows) | {"operation": (1, b"\x02" * rows)}
        blobs = [stored(ballast, rank=n, world=ranks, collectives=calls) for n in range(ranks)]
        yield Bomb("facts", f"{ranks} ranks of calls, {ballast} bytes of noise", blobs)
        # One member more in each: no two ranks have the same.
        groups = [[(str(k), "", [0, 1, 2**20 - n - 1000 * k], "") for k in range(4)] for n in range(ranks)]
        blobs = [stored(ballast, rank=n, world=ranks, groups=own) for n, own in enumerate(groups)]
        yield Bomb("facts", f"{ranks} ranks of members, {ballast} bytes of noise", blobs)
    blobs = [stored(rank=n, world=200, collectives=_spread(5_000)) for n in range(200)]
    yield Bomb("facts", "200 ranks of as many calls as may be", blobs)
    steps = _zeros(_STEPS, 60_000)
    steps["number"] = (4, (np.arange(60_000, dtype="<u4") << 1).view(np.uint8).reshape(-1, 4).T.tobytes())
    blobs = [stored(rank=n, world=64, steps=steps) for n in range(64)]
    yield Bomb("facts", "64 ranks of steps", blobs)


def main() -> None:
    """Entry point of the command."""
    words = " ".join(sys.argv[1:])
    chosen = [*recorded(), *(bomb for bomb in bombs() if words in f"{bomb.kind} {bomb.name}")]
    for bomb, one in zip(chosen, measured(chosen), strict=True):
        size = sum(map(len, bomb.blobs))
        print(f"{bomb.kind:8} {bomb.name:41}{size:>10,} bytes{one.megabytes:>6} MB{one.seconds:>6.2f} s  {one.said}")


if __name__ == "__main__":
    main()
