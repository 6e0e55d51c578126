"""What the copy of a trace for the PyTorch Profiler tab costs: disk, time and memory.

A process of its own analyses each trace and then copies it, as the hook's analysis process does. Sizes are in MB (10**6
bytes), gzip is level 6, as the hook compresses traces. Last the copy's size as a share of the trace's own, plain and
gzip, and the time of the copy over that of the analysis.

    python lab/speed/pytorch_views_cost.py tests/traces/resnet50_big.pt.trace.json.gz
    python lab/speed/big_trace.py tests/traces/resnet50_big.pt.trace.json.gz /tmp/big.json --megabytes 400
    python lab/speed/pytorch_views_cost.py /tmp/big.json
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MEGABYTE = 10**6
_GZIP_LEVEL = 6


def cost(trace: Path) -> dict[str, float]:
    """Sizes in bytes, seconds, and peak memory in bytes of one trace."""
    with tempfile.TemporaryDirectory() as folder:
        plain, packed, copy = (Path(folder) / name for name in ("plain.json", "packed.json.gz", "copy.json.gz"))
        with trace.open("rb") as file:
            is_packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(trace) if is_packed else trace.open("rb") as source, plain.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=_GZIP_LEVEL) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        # In a process of its own: the peak memory is that of the whole process.
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(plain), str(copy)], check=True, stdout=subprocess.PIPE, text=True
        )
        sizes = {"plain": plain.stat().st_size, "gzip": packed.stat().st_size, "copy": copy.stat().st_size}
        return {**json.loads(done.stdout), **sizes}


def one(plain: Path, copy: Path) -> None:
    """Analyses and copies, and prints what that took."""
    from tb_dlprof_plugin.analysis import analyze_trace
    from tb_dlprof_plugin.interop.torch_tb_profiler.trace_copy import write_tab_copy

    begun = time.process_time()
    profile = analyze_trace(plain)
    analysed, peak = time.process_time(), _peak()
    write_tab_copy(profile, plain, copy)
    ended = time.process_time()
    figures = {"analysis_s": analysed - begun, "copy_s": ended - analysed, "analysis_peak": peak, "peak": _peak()}
    json.dump(figures, sys.stdout)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description="What the copy of a trace for the PyTorch Profiler tab costs.")
    parser.add_argument("traces", nargs="+", type=Path, help="*.pt.trace.json[.gz]")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        one(*args.traces)
        return
    for trace in args.traces:
        found = cost(trace)
        plain, packed, copy = (found[name] for name in ("plain", "gzip", "copy"))
        print(f"{trace.name}: {plain / MEGABYTE:.1f} MB of JSON, {packed / MEGABYTE:.1f} MB gzip")
        print(
            f"  copy {copy / MEGABYTE:.1f} MB, in {found['copy_s']:.2f} s of CPU, "
            f"after {found['analysis_s']:.2f} s of analysis"
        )
        print(
            f"  peak memory {found['peak'] / MEGABYTE:.0f} MB with the copy, "
            f"{found['analysis_peak'] / MEGABYTE:.0f} MB without"
        )
        print(
            f"  the copy is {100 * copy / plain:.1f} % of the plain trace, {100 * copy / packed:.0f} % of the gzip "
            f"one, and takes {found['copy_s'] / found['analysis_s']:.2f} times as long as the analysis"
        )


if __name__ == "__main__":
    main()
