"""What `tb-dlprof run` costs a training: outside of the recorded steps, and in them above a bare torch.profiler.

Outside: until its warm-up `tb-dlprof run` only has a hook on the optimizer's steps. In one process, blocks of
ten steps run with that and without it by turns; the medians of both are compared.

Inside: the recorded steps of a process under `tb-dlprof run` are compared with the same steps of a process with a bare
torch.profiler (record_shapes), in pairs, by turns the one and the other first. Of each process it is the median, of all
pairs the median and the quartiles of the ratios, because processes differ from one another by some percent. On a GPU
`--mode simple` is measured likewise. By default batches are so small that the CPU sets the pace, or nearly: where the
GPU does, parallel work of the CPU costs little.

A step's time is that on the clock with a wait for the GPU at its end; without a GPU it is the CPU time of one thread.
Ends with 1 where the cost is more than 1 % outside or 5 % inside.

    python lab/speed/run_overhead.py [--models mlp custom resnet50] [--pairs 5]
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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "lab" / "run_scripts" / "step_times.py"
SETTLED = 40
"""Steps until clocks, caches and the allocator have settled; a whole number of pairs of blocks."""
BLOCK = 10
"""As in the script."""
MOST_OUTSIDE_PERCENT, MOST_INSIDE_PERCENT = 1.0, 5.0


def train(model: str, steps: int, folder: Path, options: list[str], run_options: list[str] | None) -> list[int]:
    """Nanoseconds of each step of one process, under ``tb-dlprof run`` where it has options for that."""
    out = folder / "times.json"
    command = [sys.executable, str(SCRIPT), "--model", model, "--steps", str(steps), "--out", str(out), *options]
    if run_options is not None:
        run = [sys.executable, "-m", "tb_dlprof_plugin.cli.main", "run", "--verbosity", "quiet"]
        run += ["--logdir", str(folder), "--run-name", f"{model}{time.time_ns()}"]
        command = [*run, *run_options, *command[1:]]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = os.environ | {"PYTHONPATH": path, "KINETO_LOG_LEVEL": "9"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with status {done.returncode}:\n{done.stderr.strip()}")
    times: list[int] = json.loads(out.read_text())
    return times


def outside(model: str, steps: int, options: list[str], folder: Path) -> tuple[float, float]:
    """Median step in milliseconds without and with what `tb-dlprof run` leaves in a training that is not recorded."""
    steps = SETTLED + steps // (2 * BLOCK) * 2 * BLOCK
    times = train(model, steps, folder, ["--toggle", *options], ["--iter-start", str(10**6)])
    sides: tuple[list[int], list[int]] = ([], [])
    for step in range(SETTLED, steps):
        # The first of a block pays for the switch.
        if step % BLOCK:
            sides[step // BLOCK % 2].append(times[step])
    return statistics.median(sides[0]) / 1e6, statistics.median(sides[1]) / 1e6


def inside(model: str, kind: str, steps: int, options: list[str], folder: Path) -> float:
    """Median recorded step in milliseconds: bare, run or simple."""
    first = SETTLED
    last = first + steps - 1
    window = ["--iter-start", str(first), "--iter-stop", str(last)]
    if kind == "bare":
        times = train(model, last + 5, folder, ["--profile", str(first), str(last), *options], None)
    else:
        times = train(model, last + 5, folder, options, [*window, *(["--mode", "simple"] if kind == "simple" else [])])
    if kind != "bare" and not list(folder.glob(f"{model}*/*tfevents*")):
        sys.exit("tb-dlprof run left no profile, so nothing was measured.")
    return statistics.median(times[first : last + 1]) / 1e6


def measure(
    model: str,
    kinds: tuple[str, ...],
    outside_steps: int,
    inside_steps: int,
    pairs: int,
    options: list[str],
    folder: Path,
) -> tuple[str, bool]:
    """The row of a model, and whether it costs no more than it may."""
    without, with_run = outside(model, outside_steps, options, folder)
    more_outside = 100 * (with_run / without - 1)
    rounds = []
    for number in range(pairs):
        # None is always the first.
        order = kinds if number % 2 == 0 else kinds[::-1]
        rounds.append({kind: inside(model, kind, inside_steps, options, folder) for kind in order})
        if sys.stderr.isatty():
            print(f"{model}, {number + 1} of {pairs}", file=sys.stderr, flush=True)
    good = more_outside <= MOST_OUTSIDE_PERCENT
    bare_ms = statistics.median(one["bare"] for one in rounds)
    row = f"{model:10}{without:9.4f}{with_run:10.4f}{more_outside:+8.2f} %    {bare_ms:15.3f}"
    for kind in kinds[1:]:
        more = sorted(100 * (one[kind] / one["bare"] - 1) for one in rounds)
        middle = statistics.median(more)
        good &= kind != "run" or middle <= MOST_INSIDE_PERCENT
        row += f"   {statistics.median(one[kind] for one in rounds):8.3f}{middle:+7.2f} %"
        row += f" ({more[len(more) // 4]:+.1f} to {more[-1 - len(more) // 4]:+.1f})"
    return row, good


def has_gpu() -> bool:
    """Whether torch sees one; asked in another process, so that this one stays free of CUDA."""
    probe = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["mlp", "custom", "resnet50"])
    parser.add_argument("--pairs", type=int, default=5, help="pairs of processes for inside (default 5)")
    parser.add_argument("--outside", type=int, default=2000, help="steps to take the time of outside of the recording")
    parser.add_argument("--inside", type=int, default=40, help="steps to record")
    parser.add_argument("--batch-size", type=int, help="by default a small one for each model")
    args = parser.parse_args()

    options = [] if args.batch_size is None else ["--batch-size", str(args.batch_size)]
    kinds = ("bare", "run", "simple") if has_gpu() else ("bare", "run")
    print(f"{args.outside} steps outside in one process; {args.inside} steps inside, {args.pairs} processes of a kind")
    print(f"{'':10}{'outside, ms a step':^33}{'inside, ms a step; more than torch.profiler':^56}")
    print(
        f"{'model':10}{'alone':>9}{'with run':>10}{'more':>10}    {'torch.profiler':>15}{'run and simple':>24}",
        flush=True,
    )
    failed = False
    with tempfile.TemporaryDirectory(prefix="run_overhead_") as name:
        for model in args.models:
            row, good = measure(model, kinds, args.outside, args.inside, args.pairs, options, Path(name))
            print(row, flush=True)
            failed |= not good
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
