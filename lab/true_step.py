"""How near the shown step and the shown speedup come to those without a profiler.

    python lab/true_step.py record --out DIRECTORY [--set held-out] [--seconds 500]      # on a GPU
    python lab/true_step.py report DIRECTORY ...

``record`` trains each model in four precisions in one process. Turns of steps without any profiler (half a second each)
are timed right before and right after each recording: they are the truth. Two recordings: one by the hook with its
default settings and, in two of the precisions, one by a bare ``torch.profiler`` with shapes, imported as any trace is.
``record --run`` records by ``tb-dlprof run`` instead, a process for each; the script times the turns itself. ``report``
prints, for each kind of recording, the error of the shown step, and for FP32 against each other precision the error of
the shown speedup, in how many pairs its direction is right, and how often the intervals hold the truth.

Where the CPU sets the pace, the truth itself moves: ``drift`` says by how much the turns before and after differ. The
figures of the last recording are in lab/true_step.md.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "lab"), str(ROOT / "demo")]
PRECISIONS = ("fp32", "tf32", "amp-fp16", "amp-bf16")
TURN_S = 0.5
HOOK_STEPS = 46
"""At least: the default cycle (22 steps), and those after it that are timed without the profiler."""
AFTER_S = 1.7
"""Seconds that the loop goes on after the cycle: the hook times steps for a little less."""
BARE_STEPS = 5
BARE_PRECISIONS = ("fp32", "amp-bf16")
RUN_FIRST = 60
"""The first iteration that `tb-dlprof run` records: those before it are warm-up and the first turn."""
_CPU_PACED = 1.1
"""A step this many times as long as its GPU work is paced by the CPU."""
_DIFFERS = 0.03


@dataclass
class Run:
    """One model in one precision, recorded in one way; ``turns_ms`` are the mean steps of the turns around it."""

    subject: str
    precision: str
    kind: str
    turns_ms: list[float] = field(default_factory=list)
    error: str = ""

    @property
    def name(self) -> str:
        """Of its directory."""
        return f"{self.subject}/{self.precision}/{self.kind}"

    @property
    def truth_ms(self) -> float:
        """The step without the profiler."""
        return statistics.mean(self.turns_ms)


# ---- record


def record(names: Sequence[str], out: Path, seconds: float, by_run: bool) -> None:
    """Record the subjects, and write what was timed."""
    import torch
    from true_step_subjects import BY_NAME

    start, runs = time.monotonic(), list[Run]()
    analyses: list[subprocess.Popen[bytes]] = []
    for name in names:
        for precision in PRECISIONS:
            if time.monotonic() - start > seconds:
                print(f"{seconds:.0f} s are over: {name} in {precision} was not begun.")
                continue
            made = (
                [_run_of_script(name, precision, out)]
                if by_run
                else _hook_and_bare(BY_NAME[name], precision, out, analyses)
            )
            for run in made:
                turns = ", ".join(f"{turn:.2f}" for turn in run.turns_ms)
                print(f"{time.monotonic() - start:5.0f} s  {run.name:48} {run.error or turns}", flush=True)
            runs += made
            gc.collect()
            torch.cuda.empty_cache()
    for analysis in analyses:
        analysis.wait()
    machine = {
        "command": "python lab/true_step.py record",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "python": sys.version.split()[0],
    }
    file = out / "recording.json"
    earlier = json.loads(file.read_text())["runs"] if file.exists() else []
    file.write_text(json.dumps({**machine, "runs": [*earlier, *map(asdict, runs)]}, indent=1) + "\n")


def _hook_and_bare(subject: Any, precision: str, out: Path, analyses: list[subprocess.Popen[bytes]]) -> list[Run]:
    from precision_pairs.record import Step, turn_ms, warm_up

    hook, bare = (Run(subject.name, precision, kind) for kind in ("hook", "bare"))
    try:
        step = Step(subject, precision)
        count = max(5, round(warm_up(step) * TURN_S / 0.3))
        hook.turns_ms.append(turn_ms(step, count))
        by_hook(step, out / hook.name, max(HOOK_STEPS, 24 + round(AFTER_S * 1e3 / hook.turns_ms[0])))
        between = turn_ms(step, count)
        hook.turns_ms.append(between)
        if precision in BARE_PRECISIONS:
            bare.turns_ms.append(between)
            analyses.append(_by_torch(step, out / bare.name))
            bare.turns_ms.append(turn_ms(step, count))
    except Exception as error:
        hook.error = bare.error = f"{type(error).__name__}: {error}"[:200]
    return [hook, bare] if precision in BARE_PRECISIONS else [hook]


def by_hook(step: Any, directory: Path, steps: int) -> None:
    """As a user would, with the default settings."""
    import tb_dlprof_plugin

    with tb_dlprof_plugin.profile(
        directory,
        model=step.model,
        optimizer=step.optimizer,
        batch_size=step.subject.batch_size,
        run_name=f"{step.subject.name}/{step.precision}",
        keep_trace=False,
    ) as prof:
        for _ in range(steps):
            step()
            prof.step()


def _by_torch(step: Any, directory: Path) -> subprocess.Popen[bytes]:
    """With nothing of ours; the trace is analysed by another process, as `tb-dlprof import` does."""
    import torch
    from torch.profiler import ProfilerActivity, schedule

    plan = schedule(wait=0, warmup=2, active=BARE_STEPS, repeat=1)
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, record_shapes=True, schedule=plan) as prof:
        for index in range(2 + BARE_STEPS):
            step()
            if index == 1 + BARE_STEPS:
                torch.cuda.synchronize()
            prof.step()
    folder = Path(tempfile.mkdtemp(prefix="true_step"))
    trace = folder / "bare.pt.trace.json"
    prof.export_chrome_trace(str(trace))
    code = (
        "import shutil, sys, pathlib\n"
        "from tb_dlprof_plugin.analysis import analyze_trace\n"
        "from tb_dlprof_plugin.store.event_file import write_profile\n"
        "write_profile(pathlib.Path(sys.argv[2]), analyze_trace(sys.argv[1], session='bare'))\n"
        "shutil.rmtree(pathlib.Path(sys.argv[1]).parent)\n"
    )
    return subprocess.Popen([sys.executable, "-c", code, str(trace), str(directory)], env=_environment())


def _run_of_script(name: str, precision: str, out: Path) -> Run:
    """The script is this file, which trains the subject and times turns before and after what is recorded."""
    run = Run(name, precision, "run")
    directory, times = out / run.name, out / f"{name.replace('/', '-')}-{precision}-turns.json"
    directory.parent.mkdir(parents=True, exist_ok=True)
    script = [str(Path(__file__)), "train", "--subject", name, "--precision", precision, "--times", str(times)]
    options = ["--verbosity", "quiet", "--logdir", str(directory.parent), "--run-name", "run"]
    command = [sys.executable, "-m", "tb_dlprof_plugin.cli.main", "run", *options]
    command += ["--iter-start", str(RUN_FIRST), *script]
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode or not times.exists():
        run.error = f"status {done.returncode}: {done.stderr.strip()[-200:]}"
        return run
    run.turns_ms = json.loads(times.read_text())
    times.unlink()
    for trace in directory.rglob("*.json*"):
        trace.unlink()
    return run


def train(name: str, precision: str, times: Path) -> None:
    """What `tb-dlprof run` records: warm-up, a turn, the recorded steps, a turn."""
    import torch
    from precision_pairs.record import Step
    from true_step_subjects import BY_NAME

    from training import Mark, allow_tf32

    allow_tf32(precision == "tf32")
    step, device = Step(BY_NAME[name], precision), torch.device("cuda")

    def turn(count: int) -> float:
        begin = Mark(device)
        for _ in range(count):
            step()
        return Mark(device).ms_since(begin) / count

    turn(15)
    before = turn(RUN_FIRST - 15 - 14)
    turn(14 + max(HOOK_STEPS, 24 + round(AFTER_S * 1e3 / before)) - 10)
    torch.cuda.synchronize()
    times.write_text(json.dumps([before, turn(RUN_FIRST - 15 - 14)]))


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return os.environ | {"PYTHONPATH": path}


# ---- report


@dataclass(frozen=True)
class Shown:
    """The step shown for a recording and the true one, in milliseconds."""

    run: Run
    ms: float
    low_ms: float
    high_ms: float
    source: str
    recorded_ms: float
    cpu_paced: bool
    view: Any

    @property
    def error(self) -> float:
        """Of the shown step, as a share of the true one."""
        return self.ms / self.run.truth_ms - 1

    @property
    def holds(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low_ms <= self.run.truth_ms <= self.high_ms


def shown(directory: Path) -> list[Shown]:
    """All recordings of a directory that ``record`` wrote."""
    from tb_dlprof_plugin.metrics.iterations import step_totals
    from tb_dlprof_plugin.profile_view import ProfileView
    from tb_dlprof_plugin.simulation.estimate import step_estimate
    from tb_dlprof_plugin.store.logdir import read_profiles

    result = []
    for row in json.loads((directory / "recording.json").read_text())["runs"]:
        run = Run(**row)
        stored = read_profiles(directory / run.name) if (directory / run.name).exists() else []
        if run.error or not stored:
            continue
        view = ProfileView(stored[-1].profile)
        selection = view.selection()
        step, busy = step_estimate(view, selection), step_totals(view, selection).gpu_busy_ns or 0
        times = (step.ns / 1e6, step.low_ns / 1e6, step.high_ns / 1e6)
        cpu_paced = run.truth_ms * 1e6 > _CPU_PACED * busy / selection.count
        result.append(Shown(run, *times, step.source, step.recorded_ns / 1e6, cpu_paced, view))
    return result


def report(directories: Iterable[Path]) -> None:
    """Tables of steps and of speedups, by kind of recording."""
    found = [one for directory in directories for one in shown(directory)]
    for one in found:
        turns = one.run.turns_ms
        print(
            f"{one.run.name:48} true {one.run.truth_ms:7.2f} ms, drift {100 * (turns[-1] / turns[0] - 1):+5.1f} %, "
            f"recorded {100 * (one.recorded_ms / one.run.truth_ms - 1):+6.1f} %, shown {100 * one.error:+5.1f} % "
            f"({one.source}, {100 * (one.low_ms / one.ms - 1):+.1f} to {100 * (one.high_ms / one.ms - 1):+.1f} %)"
            f"{'' if one.holds else '  truth outside'}"
        )
    for kind, group in itertools.groupby(sorted(found, key=lambda one: one.run.kind), key=lambda one: one.run.kind):
        rows = list(group)
        print(f"\n{kind}")
        for label, chosen in (
            ("steps, all", rows),
            ("  the GPU sets the pace", [one for one in rows if not one.cpu_paced]),
            ("  the CPU does", [one for one in rows if one.cpu_paced]),
        ):
            _print(label, [one.error for one in chosen], [one.holds for one in chosen])
            if chosen:
                drift = statistics.median(abs(one.run.turns_ms[-1] / one.run.turns_ms[0] - 1) for one in chosen)
                recorded = statistics.median(one.recorded_ms / one.run.truth_ms - 1 for one in chosen)
                print(
                    f"{'':28} recorded {100 * recorded:+.1f} % at the median; the truth drifts by {100 * drift:.1f} %"
                )
        _speedups(rows)
    _costs(found)


def _costs(found: list[Shown]) -> None:
    """What recording adds to a step, by the window that it is recorded in."""
    print("\nadded to a step by the recorder (median, quartiles)")
    for label, chosen in (
        ("the GPU sets the pace", [one for one in found if not one.cpu_paced]),
        ("the CPU does", [one for one in found if one.cpu_paced]),
    ):
        for window, shares in (
            ("light window", [ms / one.run.truth_ms - 1 for one in chosen if (ms := _light_ms(one.view)) is not None]),
            ("bare torch.profiler with shapes", _recorded_shares(chosen, "bare")),
            ("full window", _recorded_shares(chosen, "hook")),
            ("full window of run", _recorded_shares(chosen, "run")),
        ):
            if len(shares) > 1:
                low, middle, high = (100 * share for share in statistics.quantiles(shares, n=4))
                print(f"{label:24} {window:34} {middle:+6.1f} % ({low:+.1f} to {high:+.1f}), {len(shares)} runs")


def _recorded_shares(chosen: list[Shown], kind: str) -> list[float]:
    return [one.recorded_ms / one.run.truth_ms - 1 for one in chosen if one.run.kind == kind]


def _light_ms(view: Any) -> float | None:
    """The mean step of the light window, from completion to completion; None without one."""
    import numpy as np

    light = view.profile.light_window
    if len(light) < 2 or not len(light.launches):
        return None
    launches, boundary, step = light.launches, light.boundary_ns, light.step_of_launches()
    done = boundary[1:].copy()
    inside = (step >= 0) & (step < len(light))
    np.maximum.at(done, step[inside], (launches.start_ns + launches.duration_ns)[inside])
    return float(done[-1] - done[0]) / (len(light) - 1) / 1e6


def _speedups(rows: list[Shown]) -> None:
    from tb_dlprof_plugin.comparison.differences import compare

    by_run = {(one.run.subject, one.run.precision): one for one in rows}
    errors, holds, right, clear = [], [], 0, 0
    for (subject, precision), after in by_run.items():
        before = by_run.get((subject, "fp32"))
        if before is None or precision == "fp32":
            continue
        truth = before.run.truth_ms / after.run.truth_ms
        made = compare(before.view, after.view)
        if made.speedup is None or made.speedup_interval is None:
            continue
        errors.append(made.speedup / truth - 1)
        holds.append(made.speedup_interval[0] <= truth <= made.speedup_interval[1])
        if abs(truth - 1) > _DIFFERS:
            clear += 1
            right += (made.speedup > 1) == (truth > 1)
            if (made.speedup > 1) != (truth > 1):
                print(f"  wrong direction: {subject} {precision}: true {truth:.3f}, shown {made.speedup:.3f}")
    _print("speedups", errors, holds)
    print(f"{'':28} direction right in {right} of {clear} pairs that differ by more than {100 * _DIFFERS:.0f} %")


def _print(label: str, errors: list[float], holds: list[bool]) -> None:
    if not errors:
        return
    sizes = sorted(abs(error) for error in errors)
    print(
        f"{label:28} {len(sizes):3}: median error {100 * statistics.median(sizes):.1f} %, "
        f"worst {100 * sizes[-1]:.1f} %, interval holds the truth in {100 * sum(holds) / len(holds):.0f} %"
    )


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    actions = parser.add_subparsers(dest="action", required=True)
    making = actions.add_parser("record")
    making.add_argument("--out", type=Path, required=True)
    making.add_argument("--set", choices=("tuned", "held-out"), default="held-out")
    making.add_argument("--subjects", nargs="+", default=None)
    making.add_argument("--seconds", type=float, default=3600, help="begin no run after about this long")
    making.add_argument("--run", action="store_true", help="by tb-dlprof run")
    training = actions.add_parser("train")
    training.add_argument("--subject", required=True)
    training.add_argument("--precision", required=True)
    training.add_argument("--times", type=Path, required=True)
    actions.add_parser("report").add_argument("directories", type=Path, nargs="+")
    args = parser.parse_args()
    if args.action == "train":
        train(args.subject, args.precision, args.times)
    elif args.action == "report":
        report(args.directories)
    else:
        from true_step_subjects import HELD_OUT, TUNED

        names = args.subjects or [one.name for one in (HELD_OUT if args.set == "held-out" else TUNED)]
        args.out.mkdir(parents=True, exist_ok=True)
        record(names, args.out, args.seconds, args.run)


if __name__ == "__main__":
    main()
