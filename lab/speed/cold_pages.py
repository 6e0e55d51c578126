"""CPU time of each page's first answer about a run, on a server that has its modules but has not seen the run.

    python lab/speed/cold_pages.py LOGDIR RUN [--pages overview,advice] [--times 5]

A process imports what all pages import by answering them about another run; a fork of it then answers one page about
RUN. Each fork reads the event file, decodes and computes: what the first click on a run costs. The last column is the
same answer asked again, which the server keeps.
"""

from __future__ import annotations

import argparse
import os
import statistics
import struct
import time
from pathlib import Path
from urllib.parse import urlencode

from werkzeug.test import Client

from tb_dlprof_plugin.web.server import app_of

ROOT = Path(__file__).resolve().parents[2]
OTHER = (ROOT / "demo" / "recorded", "lenet/amp-bf16")
PAGES = (
    "overview,ops,op_types,kernels,modules,launches,timeline,tensor_cores,roofline,memory,plan,advice,energy,compiled,"
    "trust"
)
_PREFIX = "/data/plugin/tb_dlprof/"


def asked(logdir: Path, run: str, page: str, client: Client | None = None) -> int:
    """The status of the answer of a page."""
    client = client or Client(app_of(logdir))
    return client.get(f"{_PREFIX}{page}?{urlencode({'run': run})}").status_code


def forked(logdir: Path, run: str, page: str) -> tuple[float, float, int]:
    """CPU time (ms) of the first answer and of the second in a fork, and the status."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        client = Client(app_of(logdir))
        start = time.process_time()
        status = asked(logdir, run, page, client)
        first = time.process_time()
        asked(logdir, run, page, client)
        os.write(write, struct.pack("ddi", (first - start) * 1e3, (time.process_time() - first) * 1e3, status))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        packed = answer.read()
    os.waitpid(child, 0)
    return struct.unpack("ddi", packed)


def main() -> None:
    """Prints a line per page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logdir", type=Path)
    parser.add_argument("run")
    parser.add_argument("--pages", default=PAGES)
    parser.add_argument("--times", type=int, default=5)
    chosen = parser.parse_args()
    pages = chosen.pages.split(",")
    for page in pages:
        asked(*OTHER, page)
    measured: dict[str, list[tuple[float, float, int]]] = {page: [] for page in pages}
    for _ in range(chosen.times):
        for page in pages:
            measured[page].append(forked(chosen.logdir, chosen.run, page))
    print(f"{'page':<14}{'first ms':>10}{'median':>10}{'again ms':>10}{'status':>8}")
    for page, all_ in measured.items():
        firsts = [one[0] for one in all_]
        again = min(one[1] for one in all_)
        print(f"{page:<14}{min(firsts):>10.0f}{statistics.median(firsts):>10.0f}{again:>10.1f}{all_[0][2]:>8}")


if __name__ == "__main__":
    main()
