"""Runs every planted training with its fault and fixed, each in a process of its own, and keeps the event files.

    python -m lab.planted.record --out DIRECTORY [--rules NAME ...] [--gpus N] [--seconds 500]

Recordings go to DIRECTORY/<rule>/fault and DIRECTORY/<rule>/fixed, what machine made them and what failed to
DIRECTORY/recording.json. ``--gpus`` picks trainings by the number of GPUs that they need.
With PLANTED_QUICK set in the environment each runs a few steps only, which shows that it runs and no more;
PLANTED_SCALE makes batches and widths larger by a factor.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from . import faults  # noqa: F401  # which fill `PLANTED`
from .common import PLANTED, SCALE, set_up

LIMIT_S = 90
VARIANTS = ("fault", "fixed")


def record(name: str, variant: str, out: Path) -> dict[str, Any]:
    """One training in a forked process: torch is loaded already, CUDA is not."""
    directory = out / name / variant
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT_S)
        try:
            set_up()
            PLANTED[name].train(directory, variant == "fixed")
            sys.stdout.flush()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    for path in files:
        if "tfevents" not in path.name:
            path.unlink()
    kept = [path for path in files if path.exists()]
    run: dict[str, Any] = {"rule": name, "variant": variant, "seconds": round(time.monotonic() - start, 1)}
    run["event_bytes"] = sum(path.stat().st_size for path in kept)
    if status:
        run["error"] = f"ended with status {status}"
    elif not kept:
        run["error"] = "left no event file"
    return run


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rules", nargs="+", choices=sorted(PLANTED), default=None, metavar="NAME")
    parser.add_argument("--gpus", type=int, default=None, help="only trainings that need this many GPUs")
    parser.add_argument("--seconds", type=float, default=3600, help="begin no training after about this long")
    args = parser.parse_args()
    names = args.rules or [name for name in sorted(PLANTED) if args.gpus in (None, PLANTED[name].gpus)]
    start = time.monotonic()
    runs: list[dict[str, Any]] = []
    for name in names:
        if time.monotonic() - start > args.seconds:
            print(f"{args.seconds:.0f} s are over: {name} was not begun.")
            continue
        for variant in VARIANTS:
            run = record(name, variant, args.out)
            runs.append(run)
            print(f"{time.monotonic() - start:6.1f} s  {name:28} {variant:7} {run['event_bytes'] / 1e3:6.0f} kB  "
                  f"{run['seconds']:5.1f} s  {run.get('error', '')}", flush=True)  # fmt: skip
    _write(args.out, runs)


def _write(out: Path, runs: list[dict[str, Any]]) -> None:
    """Adds to what an earlier recording of other rules wrote."""
    path = out / "recording.json"
    earlier = json.loads(path.read_text())["runs"] if path.exists() else []
    again = {(run["rule"], run["variant"]) for run in runs}
    machine = {
        "command": "python -m lab.planted.record",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "device": torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu",
        "gpus": torch.cuda.device_count(),
        "scale": SCALE,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
    }
    kept = [run for run in earlier if (run["rule"], run["variant"]) not in again]
    made = [{**run, **{key: machine[key] for key in ("date", "device", "gpus", "torch")}} for run in runs]
    together = sorted([*kept, *made], key=lambda run: (run["rule"], run["variant"]))
    path.write_text(json.dumps({**machine, "runs": together}, indent=1) + "\n")


if __name__ == "__main__":
    main()
