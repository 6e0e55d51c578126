"""Time and memory of reading a large snapshot of torch.

    python -m lab.memory_plan.large_snapshot FILE --entries 2000000    # writes it, with 0.5 kB of memory an entry
    python -m lab.memory_plan.large_snapshot FILE                      # reads it

FILE is a made-up snapshot with so many entries of history, of 82 bytes each. Reading prints its size, seconds of a core
and the most memory of the process that reads, which is why another one writes.
"""

from __future__ import annotations

import argparse
import pickle
import resource
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


def main() -> None:
    """Write, or read and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--entries", type=int, help="write a file that does not exist yet")
    given = parser.parse_args()
    if given.entries is not None:
        with given.file.open("xb") as file:
            pickle.dump(made_up(given.entries), file, protocol=4)
        return
    found = read_oom(given.file)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{given.file.stat().st_size / 1e6:,.0f} MB: {used.ru_utime + used.ru_stime:.1f} s, "
        f"{used.ru_maxrss / 1e3:,.0f} MB of memory, {found.held.allocated:,} bytes in use"
    )


if __name__ == "__main__":
    main()
