"""What `tb-dlprof run` costs a training: outside of the recorded steps, and in them above a bare torch.profiler.

Each model is trained in processes of its own, by turns with a bare torch.profiler (record_shapes) around the same steps
and under `tb-dlprof run`. A step's time is that on the clock with a wait for the GPU at its end; without a GPU it is
the CPU time of one thread. Outside are the steps before the warm-up; inside are the recorded ones. Of each kind the
median of a process is taken, and of all processes the lowest. Ends with 1 where the cost is more than 1 % outside or
5 % inside.

    python benchmarks/run_overhead.py [--models mlp custom resnet50] [--pairs 3]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "benchmarks" / "run_scripts" / "step_times.py"
SETTLED = 30
"""Steps until clocks, caches and the allocator have settled."""
WARMUP = 5
"""Steps before the first recorded one that are left out: the profiler warms up in the last three."""
MOST_OUTSIDE_PERCENT, MOST_INSIDE_PERCENT = 1.0, 5.0


@dataclass(frozen=True)
class Measured:
    """Medians of one process in milliseconds."""

    outside_ms: float
    inside_ms: float


def measure(model: str, under_run: bool, first: int, last: int, folder: Path) -> Measured:
    """Train once; the last step is some after the recorded ones."""
    out = folder / "times.json"
    script = [str(SCRIPT), "--model", model, "--steps", str(last + 5), "--out", str(out)]
    command = [sys.executable, *script, "--profile", str(first), str(last)]
    if under_run:
        options = ["--verbosity", "quiet", "--logdir", str(folder), "--run-name", f"{model}{time.time_ns()}"]
        options += ["--iter-start", str(first), "--iter-stop", str(last)]
        command = [sys.executable, "-m", "tb_dlprof_plugin.commands.main", "run", *options, *script]
    env = os.environ | {"PYTHONPATH": str(ROOT), "KINETO_LOG_LEVEL": "9"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode or done.stderr.strip():
        print(done.stderr.strip(), file=sys.stderr)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with status {done.returncode}.")
    if under_run and not list(folder.glob(f"{model}*/*tfevents*")):
        sys.exit("tb-dlprof run left no profile, so nothing was measured.")
    times = json.loads(out.read_text())
    outside, inside = times[SETTLED : first - WARMUP], times[first : last + 1]
    return Measured(statistics.median(outside) / 1e6, statistics.median(inside) / 1e6)


def best(measured: list[Measured]) -> Measured:
    """The lowest of each kind: what disturbs a process only adds."""
    return Measured(min(one.outside_ms for one in measured), min(one.inside_ms for one in measured))


def percent_more(value: float, base: float) -> float:
    """By how much ``value`` is above ``base``."""
    return 100 * (value / base - 1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["mlp", "custom", "resnet50"])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--outside", type=int, default=200, help="steps to take the time of outside of the recording")
    parser.add_argument("--inside", type=int, default=30, help="steps to record")
    args = parser.parse_args()

    first = SETTLED + args.outside + WARMUP
    last = first + args.inside - 1
    rows = []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="run_overhead_") as name:
        for model in args.models:
            bare: list[Measured] = []
            run: list[Measured] = []
            for pair in range(args.pairs):
                # Neither is always the first.
                for under_run in (False, True) if pair % 2 == 0 else (True, False):
                    (run if under_run else bare).append(measure(model, under_run, first, last, Path(name)))
                print(f"{model}, pair {pair + 1} of {args.pairs}, {time.monotonic() - begun:.0f} s", flush=True)
            rows.append((model, best(bare), best(run)))

    print(f"\n{args.outside} steps outside, {args.inside} inside, {args.pairs} pairs of processes")
    print(f"{'':12}{'outside, ms a step':^34}{'inside, ms a step':^36}")
    print(f"{'model':12}{'alone':>9}{'with run':>12}{'more':>10}   {'torch.profiler':>15}{'with run':>10}{'more':>10}")
    failed = False
    for model, bare_best, run_best in rows:
        outside = percent_more(run_best.outside_ms, bare_best.outside_ms)
        inside = percent_more(run_best.inside_ms, bare_best.inside_ms)
        failed |= outside > MOST_OUTSIDE_PERCENT or inside > MOST_INSIDE_PERCENT
        print(
            f"{model:12}{bare_best.outside_ms:9.3f}{run_best.outside_ms:12.3f}{outside:+9.2f} %   "
            f"{bare_best.inside_ms:15.3f}{run_best.inside_ms:10.3f}{inside:+9.2f} %"
        )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
