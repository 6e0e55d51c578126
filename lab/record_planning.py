"""Records on one GPU what the planner, the energy estimates and the rules on memory and power are held to.

    python -m lab.record_planning --out DIRECTORY [--seconds 410]

Runs four recorders one after the other, each in a process of its own and within its share of the time, and packs what
each wrote to DIRECTORY/<name>.tgz: the planted trainings of `RULES`, `lab.energy.record`,
`lab.memory_plan.inputs_and_splits` and `lab.layer_resources.record`. What fails or takes too long loses
its own part alone. Prints the end of what each printed, and a table.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

RULES = (
    "out_of_memory_ahead",
    "late_zero_grad",
)
_PARTS = (
    ("planted", 0.33, ["lab.planted.record", "--rules", *RULES]),
    ("energy", 0.36, ["lab.energy.record"]),
    ("layer_resources", 0.15, ["lab.layer_resources.record"]),
    ("inputs_and_splits", 0.16, ["lab.memory_plan.inputs_and_splits"]),
)
_ENDING_S = 12
"""Between a recorder's own limit and its end: what is under way, and writing."""


def main() -> None:
    """Run and pack the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=410)
    parser.add_argument("--parts", nargs="*", default=[name for name, _, _ in _PARTS])
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    began_s, rows = time.monotonic(), []
    left = [part for part in _PARTS if part[0] in given.parts]
    while left:
        (name, share, module), *left = left
        # What an earlier part did not need is for those behind it.
        rest_s = given.seconds - (time.monotonic() - began_s)
        own_s = rest_s * share / (share + sum(one[1] for one in left))
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", *module, "--out", folder, "--seconds", f"{own_s - _ENDING_S:.0f}"]
            started_s = time.monotonic()
            try:
                ended = subprocess.run(command, capture_output=True, text=True, timeout=own_s + _ENDING_S, check=False)
                text, status = ended.stdout + ended.stderr[-3000:], str(ended.returncode)
            except subprocess.TimeoutExpired as error:
                printed = error.stdout or b""
                text = printed if isinstance(printed, str) else printed.decode(errors="replace")
                status = "too long"
            print(f"== {name}\n{text[-5000:]}", flush=True)
            packed = given.out / f"{name}.tgz"
            with tarfile.open(packed, "w:gz") as archive:
                archive.add(folder, arcname=name)
            rows.append((name, status, time.monotonic() - started_s, packed.stat().st_size / 1e6))
    for name, status, seconds, megabytes in rows:
        print(f"{name:16} status {status:9} {seconds:6.1f} s {megabytes:7.2f} MB")


if __name__ == "__main__":
    main()
