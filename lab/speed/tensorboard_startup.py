"""How much longer TensorBoard takes to start with tb_dlprof_plugin installed.

Measured is the time from starting the process until ``/data/plugins_listing`` has answered, which a browser asks for
first and which loads every plugin, on an empty logdir. *With* and *without* run the same interpreter, the same
packages and the same launcher; *without*, the launcher hides our one entry point from TensorBoard before TensorBoard
loads it, which is all that uninstalling changes at start-up. The two alternate, and so does which one goes first: a
busy machine burdens both. A first pair warms the file cache and is not counted.

    python lab/speed/tensorboard_startup.py --pairs 10
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from importlib import metadata

ENTRY_POINT = "tb_dlprof"
GROUP = "tensorboard_plugins"
TIMEOUT_S = 120
POLL_S = 0.005

LAUNCHER = """
import importlib.metadata as metadata
import sys

hidden = sys.argv.pop(1)
real = metadata.entry_points

def entry_points(**params):
    found = real(**params)
    if hasattr(found, "values"):  # before Python 3.12, all groups come as a dictionary
        found = [point for group in found.values() for point in group]
    return metadata.EntryPoints(point for point in found if point.name != hidden)

metadata.entry_points = entry_points
from tensorboard.main import run_main
run_main()
"""


def start_time(hidden: str, logdir: str, extra: list[str]) -> tuple[float, bool]:
    """Seconds until TensorBoard lists its plugins, and whether ours is among them."""
    port = _free_port()
    command = [sys.executable, "-c", LAUNCHER, hidden, "--logdir", logdir, "--port", str(port), "--host", "127.0.0.1"]
    start = time.perf_counter()
    server = subprocess.Popen(
        [*command, *extra], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while True:
            listing = _get(f"http://127.0.0.1:{port}/data/plugins_listing")
            elapsed = time.perf_counter() - start
            if listing is not None:
                return elapsed, f'"{ENTRY_POINT}"'.encode() in listing
            if server.poll() is not None:
                sys.exit(f"TensorBoard ended with status {server.returncode} before it answered.")
            if elapsed > TIMEOUT_S:
                sys.exit(f"TensorBoard did not answer within {TIMEOUT_S} s.")
            time.sleep(POLL_S)
    finally:
        server.terminate()
        server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _get(url: str) -> bytes | None:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            body: bytes = answer.read()
            return body
    except (urllib.error.URLError, ConnectionError):
        return None


def main(argv: list[str] | None = None) -> None:
    """Print both medians, and last the ratio between them."""
    parser = argparse.ArgumentParser(description="TensorBoard's start with tb_dlprof_plugin against without it.")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--load-fast", choices=("auto", "true", "false"), default="auto", help="as TensorBoard's flag")
    args = parser.parse_args(argv)
    if not any(point.name == ENTRY_POINT for point in metadata.entry_points(group=GROUP)):
        sys.exit("tb_dlprof_plugin is not installed: run `pip install -e .` in the repository first.")

    seconds: dict[str, list[float]] = {"with": [], "without": []}
    with tempfile.TemporaryDirectory(prefix="tb_dlprof_startup_") as logdir:
        for number in range(args.pairs + 1):
            order = ("with", "without") if number % 2 else ("without", "with")
            for side in order:
                hidden = ENTRY_POINT if side == "without" else "-"
                elapsed, listed = start_time(hidden, logdir, ["--load_fast", args.load_fast])
                if listed != (side == "with"):
                    sys.exit(
                        f"The start {side} our plugin {'lists' if listed else 'lacks'} it: the measurement is void."
                    )
                if number:
                    seconds[side].append(elapsed)
    for side, values in seconds.items():
        spread = f"{min(values):.2f} to {max(values):.2f}"
        print(f"{side:8} median {statistics.median(values):.3f} s of {len(values)} starts ({spread} s)")
    pairs = sorted(a / b for a, b in zip(seconds["with"], seconds["without"], strict=True))
    print(f"pairwise ratio: median {statistics.median(pairs):.3f}, from {pairs[0]:.3f} to {pairs[-1]:.3f}")
    ratio = statistics.median(seconds["with"]) / statistics.median(seconds["without"])
    print(f"with / without: {ratio:.3f}")


if __name__ == "__main__":
    main()
