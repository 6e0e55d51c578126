"""Records small traces of every kind that people have, each with torch's own averages in a second file.

    python lab/capture_traces.py [--out tests/traces] [--only cpu_training two_streams]

On a machine without a GPU it records the CPU kinds; kinds that need two GPUs are left out where there is one. Each
kind is a function in `recordings/`, and runs in a process of its own: torch joins kernels to ops by two kinds of ids at
once, and in a process that has profiled a lot the two overlap. A kind that fails prints its error; the others go on.

A recording is ``<kind>.pt.trace.json.gz``, as torch exported it, and ``<kind>.key_averages.json.gz``: the rows of
``key_averages()`` of the same profile object, and the versions and the date. `--readme DIR` writes the table of what is
in a directory.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "demo"), str(HERE.parent)]

from recordings import cpu, one_gpu, several  # noqa: E402 - after the path
from recordings.recorder import Recorder  # noqa: E402

DEFAULT_OUT = HERE.parent / "tests" / "traces"
TIME_LIMIT_S = 150

Kind = Callable[[Recorder], None]
CPU_KINDS: list[Kind] = [*cpu.KINDS, *several.CPU_KINDS]
KINDS: dict[str, Kind] = {kind.__name__: kind for kind in [*one_gpu.KINDS, *several.KINDS, *CPU_KINDS]}


@dataclass(frozen=True)
class Result:
    """How a kind went: "ok", "skipped" or "failed", and why."""

    name: str
    status: str
    why: str = ""
    seconds: float = 0.0


def reason_to_skip(name: str) -> str:
    """Why this machine cannot record a kind; empty if it can."""
    kind = KINDS[name]
    gpus = torch.cuda.device_count()
    if kind in CPU_KINDS:
        return ""
    if gpus == 0:
        return "needs a GPU"
    if kind in several.KINDS and gpus < 2:
        return "needs two GPUs"
    if kind in one_gpu.NEED_COMPILER and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        return "needs a C compiler"
    return ""


def record_one(name: str, out: Path, prefix: str) -> None:
    """Records one kind in this process."""
    kind = KINDS[name]
    device = torch.device("cpu" if kind in CPU_KINDS else "cuda")
    recorder = Recorder(prefix + name, out, device, (kind.__doc__ or "").strip())
    kind(recorder)
    print(", ".join(path.name for path in recorder.written))


def run(name: str, out: Path, prefix: str) -> Result:
    """Records one kind in a process of its own."""
    why = reason_to_skip(name)
    if why:
        return Result(name, "skipped", why)
    begun = time.monotonic()
    command = [sys.executable, __file__, "--one", name, "--out", str(out), "--prefix", prefix]
    with tempfile.TemporaryDirectory() as caches:
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor",
            "TORCHINDUCTOR_COMPILE_THREADS": "4",
            "TRITON_CACHE_DIR": f"{caches}/triton",
        }
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, env=environment)
        except subprocess.TimeoutExpired:
            return Result(name, "failed", f"took more than {TIME_LIMIT_S} s", time.monotonic() - begun)
    seconds = time.monotonic() - begun
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return Result(name, "failed", "\n    ".join(lines[-12:]), seconds)
    return Result(name, "ok", "", seconds)


def record_all(names: list[str], out: Path, prefix: str, jobs: int) -> list[Result]:
    """Records kinds: first those that want the machine for themselves, then the others side by side."""
    alone = [name for name in names if KINDS[name] in one_gpu.ALONE]
    results = [run(name, out, prefix) for name in alone]
    with ThreadPoolExecutor(jobs) as pool:
        results += pool.map(lambda name: run(name, out, prefix), [name for name in names if name not in alone])
    return results


def readme(folder: Path) -> str:
    """The table of the recordings in a directory."""
    lines = [
        "# Recorded traces",
        "",
        "Made by `lab/capture_traces.py`, which has a function for each kind; synthetic data throughout. With",
        "each trace are the rows of torch's `prof.key_averages()` of the same profile object, times in µs.",
        "",
        "| trace | what | torch | GPU | recorded | events | kB |",
        "|---|---|---|---|---|---:|---:|",
    ]
    for averages in sorted(folder.glob("*.key_averages.json.gz")):
        facts = json.loads(gzip.decompress(averages.read_bytes()))["recorded"]
        name = averages.name.removesuffix(".key_averages.json.gz")
        trace = folder / f"{name}.pt.trace.json.gz"
        # Counted rather than parsed: not every trace is valid JSON.
        events = len(re.findall(rb'"ph"\s*:', gzip.decompress(trace.read_bytes())))
        lines.append(
            f"| `{name}` | {facts['about']} | {facts['torch']} | {facts['gpu'] or 'none'} | {facts['date']} "
            f"| {events} | {trace.stat().st_size / 1000:.0f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description="Record small traces of every kind.")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="where the files go")
    parser.add_argument("--only", nargs="+", choices=sorted(KINDS), metavar="KIND", help="record these kinds")
    parser.add_argument("--cpu", action="store_true", help="record the CPU kinds only")
    parser.add_argument("--prefix", default="", help="put before the files' names")
    parser.add_argument("--jobs", type=int, default=max(1, min(6, (os.cpu_count() or 1) // 2)))
    parser.add_argument("--one", choices=sorted(KINDS), metavar="KIND", help="record one kind in this process")
    parser.add_argument("--readme", type=Path, metavar="DIR", help="write DIR/README.md and record nothing")
    args = parser.parse_args()
    if args.readme:
        (args.readme / "README.md").write_text(readme(args.readme))
        return
    if args.one:
        record_one(args.one, args.out, args.prefix)
        return
    names = args.only or [name for name, kind in KINDS.items() if kind in CPU_KINDS or not args.cpu]
    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    print(f"torch {torch.__version__}, {', '.join(gpus) or 'no GPU'}", flush=True)
    results = record_all(names, args.out, args.prefix, args.jobs)
    for result in results:
        sizes = sum(path.stat().st_size for path in args.out.glob(f"{args.prefix}{result.name}*.gz"))
        size = f"{sizes / 1000:7.1f} kB" if result.status == "ok" else ""
        print(f"{result.name:32}{result.status:8}{result.seconds:6.1f} s {size} {result.why}")
    total = sum(path.stat().st_size for path in args.out.glob("*.pt.trace.json.gz"))
    print(f"{total / 1e6:.2f} MB in all")
    sys.exit(1 if any(result.status == "failed" for result in results) else 0)


if __name__ == "__main__":
    main()
