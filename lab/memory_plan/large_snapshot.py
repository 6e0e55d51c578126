"""Time and memory of reading a large snapshot of torch.

    python -m lab.memory_plan.large_snapshot FILE --entries 200000              # writes a made-up one
    python -m lab.memory_plan.large_snapshot FILE --gigabytes 5 --like SMALL    # writes one as long by repetition
    python -m lab.memory_plan.large_snapshot FILE                               # reads it

A made-up snapshot has so many entries of history, of 82 bytes each, and takes 0.5 kB of memory for each to write. SMALL
is one of them or one that torch wrote: its history comes again and again. Reading prints the file's size, seconds
of a core and the most memory of the process that reads, which is why another one writes.
"""

from __future__ import annotations

import argparse
import io
import pickle
import resource
from collections import Counter
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.readers.memory_snapshot.oom_file import read_oom

MIB = 1 << 20
_STACKS, _DEPTH, _BLOCKS = 400, 20, 20_000


def made_up(entries: int) -> dict[str, Any]:
    """A snapshot with as many fields as torch 2.11 writes."""
    stacks = [
        [{"filename": f"/train{stack}.py", "line": line, "name": f"f{line}"} for line in range(_DEPTH)]
        for stack in range(_STACKS)
    ]
    history = [
        {
            "action": "alloc" if number % 2 == 0 else "free_completed", "addr": (1 << 45) + 512 * number, "size": MIB,
            "stream": 0, "time_us": 1_700_000_000_000_000 + number, "compile_context": "N/A", "user_metadata": "",
            "frames": stacks[number % _STACKS],
        }
        for number in range(entries)
    ]  # fmt: skip
    blocks = [
        {"address": (1 << 40) + MIB * number, "size": MIB, "requested_size": MIB, "state": "active_allocated"}
        for number in range(_BLOCKS)
    ]
    segment = {"device": 0, "address": 1 << 40, "total_size": _BLOCKS * MIB, "blocks": blocks}
    return {"segments": [segment], "device_traces": [history], "allocator_settings": {}}


class Pieces:
    """Pickles objects one after another as parts of one pickle, so that later ones refer to what is in earlier ones."""

    def __init__(self) -> None:
        self._written = io.BytesIO()
        self._pickler = pickle.Pickler(self._written, protocol=4)

    def piece(self, content: object) -> list[bytes]:
        """The opcodes that put the object, which must stay alive, on the stack, as contents of frames."""
        self._written.seek(0)
        self._written.truncate()
        self._pickler.dump(content)
        pickled, at, found = self._written.getvalue(), 2, []
        while pickled[at : at + 1] == pickle.FRAME:
            end = at + 9 + int.from_bytes(pickled[at + 1 : at + 9], "little")
            found.append(pickled[at + 9 : end])
            at = end
        # A small one has no frame.
        found.append(pickled[at:])
        last = next(number for number in reversed(range(len(found))) if found[number])
        found[last] = found[last].removesuffix(pickle.STOP)
        return found


def framed(*contents: bytes) -> bytes:
    """As frames of a pickle."""
    return b"".join(pickle.FRAME + len(one).to_bytes(8, "little") + one for one in contents if one)


def repeated(snapshot: dict[str, Any], size: int, path: Path) -> None:
    """Writes a snapshot whose longest history comes again until the file has so many bytes.

    Each repetition has the same bytes: what they refer to by number lies before all of them, or in their first.
    """
    pieces, whole, traces = Pieces(), dict[str, Any](), list[Any]()
    history = max(snapshot["device_traces"], key=len)
    often = Counter(id(value) for entry in history for value in entry.values())
    made: dict[int, Any] = {}

    def anew(value: Any) -> Any:
        """Another object where torch makes one for each entry: a stack, a pool, a text of the user."""
        if type(value) not in (list, tuple, str) or often[id(value)] > len(history) / 100:
            return value
        if id(value) not in made:
            made[id(value)] = value[:1] + value[1:] if type(value) is str else type(value)([*value])
        return made[id(value)]

    again = [{key: anew(value) for key, value in entry.items()} for entry in history]
    with path.open("xb") as file:
        file.write(pickle.PROTO + b"\x04" + framed(*pieces.piece(whole)))
        for key, value in snapshot.items():
            if key != "device_traces":
                file.write(framed(*pieces.piece(key), *pieces.piece(value), pickle.SETITEM))
        file.write(framed(*pieces.piece("device_traces"), *pieces.piece(traces), *pieces.piece(history)))
        first, *others = pieces.piece(again)
        start = pickle.EMPTY_LIST + pickle.MEMOIZE
        assert first.startswith(start)
        # The list is on the stack already: of this one only its number is kept.
        entries = framed(pickle.NONE + pickle.MEMOIZE + pickle.POP + first.removeprefix(start), *others)
        while file.tell() + len(entries) < size:
            file.write(entries)
        file.write(pickle.APPEND + pickle.SETITEM + pickle.STOP)


def main() -> None:
    """Write, or read and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--entries", type=int, help="write a file that does not exist yet")
    parser.add_argument("--gigabytes", type=float)
    parser.add_argument("--like", type=Path, metavar="SMALL", help="as long by repetition; a file of your own alone")
    given = parser.parse_args()
    if given.entries is not None:
        with given.file.open("xb") as file:
            pickle.dump(made_up(given.entries), file, protocol=4)
        return
    if given.gigabytes is not None:
        repeated(pickle.loads(given.like.read_bytes()), int(1e9 * given.gigabytes), given.file)
        return
    found = read_oom(given.file)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{given.file.stat().st_size / 1e6:,.0f} MB: {used.ru_utime + used.ru_stime:.1f} s, "
        f"{used.ru_maxrss / 1e3:,.0f} MB of memory, {found.held.allocated:,} bytes in use"
    )


if __name__ == "__main__":
    main()
