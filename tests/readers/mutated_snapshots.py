"""Reads so many mutated memory snapshots within 1.5 GiB, and prints how often each outcome came.

    python mutated_snapshots.py COUNT SEED MARKER

Some mutations insert code that would make the file MARKER.
"""

from __future__ import annotations

import collections
import io
import pickle
import random
import resource
import sys
from typing import Any

from tb_dlprof_plugin.readers.memory_snapshot.blocks import NoSnapshot
from tb_dlprof_plugin.readers.memory_snapshot.in_child import _Refused, _summary


def snapshot(draw: random.Random, blocks: int, protocol: int) -> bytes:
    """Made up, with a history."""
    frames = [{"filename": f"train{n}.py", "line": n, "name": "step"} for n in range(3)]
    states, actions = ["active_allocated", "inactive"], ["alloc", "free_requested", "free_completed", "oom"]
    held = [
        {"address": 512 * n, "size": 512, "requested_size": 500, "state": draw.choice(states), "frames": frames}
        for n in range(blocks)
    ]
    segment = {"device": 0, "address": 0, "total_size": 512 * blocks, "segment_pool_id": (0, 0), "blocks": held}
    history = [{"action": draw.choice(actions), "addr": 512 * n, "size": 512, "time_us": n} for n in range(blocks)]
    return pickle.dumps({"segments": [segment], "device_traces": [history]}, protocol=protocol)


def mutated(draw: random.Random, content: bytes, code: list[bytes]) -> bytes:
    """With one change, or many."""
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 5, 30))):
        at = draw.randrange(len(data) + 1)
        change = draw.random()
        if change < 0.5:
            data[at : at + 1] = bytes([draw.randrange(256)])
        elif change < 0.7:
            del data[at : at + draw.randrange(1, 20)]
        elif change < 0.85:
            data[at:at] = draw.randbytes(draw.randrange(1, 9))
        elif change < 0.93:
            data[at:at] = draw.choice(code)
        else:
            del data[at:]
    return bytes(data)


def outcome(content: bytes) -> str:
    """Of reading it."""
    try:
        _summary(io.BytesIO(content))
    except MemoryError:
        return "memory"
    except (_Refused, NoSnapshot):
        return "refused"
    except Exception:
        return "damaged"
    return "read"


def main(count: int, seed: int, marker: str) -> None:
    """See the module's docstring."""
    resource.setrlimit(resource.RLIMIT_AS, (3 << 29, 3 << 29))
    draw = random.Random(seed)
    bases = [snapshot(draw, blocks, protocol) for blocks, protocol in ((12, 2), (12, 4), (40, 4))]
    call = f"open({marker!r}, 'w')".encode()
    code = [
        b"cbuiltins\neval\n(V" + call + b"\ntR.",
        b"\x8c\x08builtins\x8c\x04eval\x93\x8c" + bytes([len(call)]) + call + b"\x85R",
        b"(V" + call + b"\nibuiltins\neval\n",
    ]
    found: Any = collections.Counter(outcome(mutated(draw, draw.choice(bases), code)) for _ in range(count))
    print(dict(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
