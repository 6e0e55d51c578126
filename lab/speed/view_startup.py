"""How long `tb-dlprof view` takes until its first list of runs: by the clock, and seconds of a core.

Each start is a new process, which tensorboard is hidden from. On a machine with other work, the seconds of a core say
what the shortest start of the clock says on one without.

    python lab/speed/view_startup.py [LOGDIR] --starts 10
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
LAUNCHER = """
import sys
sys.modules["tensorboard"] = None
from tb_dlprof_plugin.cli.main import main
main()
"""


def start(logdir: Path) -> tuple[float, float, int]:
    """Seconds until the list of runs, seconds of a core of the process, and the number of runs."""
    command = [sys.executable, "-c", LAUNCHER, "view", str(logdir), "--no-browser", "--port", "0"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = next(word for word in server.stdout.readline().split() if word.startswith("http://"))
        with urllib.request.urlopen(f"{address}data/plugin/tb_dlprof/runs") as answer:
            runs = len(json.load(answer)["runs"])
        took = time.perf_counter() - began
        server.terminate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, runs


def main() -> None:
    """Print the median and the shortest start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logdir", nargs="?", type=Path, default=RECORDED)
    parser.add_argument("--starts", type=int, default=10)
    given = parser.parse_args()
    start(given.logdir)  # The files are in memory from here on.
    starts = [start(given.logdir) for _ in range(given.starts)]
    clock, core = [one[0] for one in starts], [one[1] for one in starts]
    print(
        f"{starts[0][2]} runs, load {os.getloadavg()[0]:.1f}: median {statistics.median(clock):.2f} s, shortest "
        f"{min(clock):.2f} s; {statistics.median(core):.2f} s of a core"
    )


if __name__ == "__main__":
    main()
