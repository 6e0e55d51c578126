"""How long `tb-dlprof --help` takes, against the start of Python alone and against TensorBoard's own help.

Three commands by turns, each a process of its own of the same interpreter: ``python -c pass``, ``tb-dlprof --help`` and
``tensorboard --help``. A first round warms the file cache and is not counted. *Processor time* (user and system) is
what the command costs on an idle core; the wall time is longer on a machine that does other work, too.

    python lab/speed/startup.py --rounds 10
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "tb-dlprof --help": ("-m", "tb_dlprof_plugin.cli.main", "--help"),
    "tensorboard --help": ("-m", "tensorboard.main", "--help"),
}
OURS, BARE, PEER = "tb-dlprof --help", "python -c pass", "tensorboard --help"


def measure(arguments: tuple[str, ...]) -> tuple[float, float]:
    """Wall time and processor time of one process, in seconds."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(arguments)} ended with status {process.returncode}.")
    return seconds, usage.ru_utime + usage.ru_stime


def main(argv: list[str] | None = None) -> None:
    """Prints the medians, and last the ratio to TensorBoard's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args(argv).rounds
    wall: dict[str, list[float]] = {name: [] for name in COMMANDS}
    processor: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(rounds + 1):
        for name, arguments in COMMANDS.items():
            seconds, used = measure(arguments)
            if number:
                wall[name].append(seconds)
                processor[name].append(used)
    for name in COMMANDS:
        print(
            f"{name:20} processor time {statistics.median(processor[name]):.3f} s, "
            f"wall time {statistics.median(wall[name]):.3f} s (medians), {min(wall[name]):.3f} s (least)"
        )
    cost = statistics.median(processor[OURS])
    print(f"tb-dlprof / python -c pass: {cost / statistics.median(processor[BARE]):.2f}")
    print(f"tb-dlprof / tensorboard: {cost / statistics.median(processor[PEER]):.2f}")


if __name__ == "__main__":
    main()
