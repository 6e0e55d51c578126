"""Record the six models in four precisions, and keep the event files: what `demo/recorded/` is made with.

Each run is a process of its own. Its event file goes to `<out>/<model>/<precision>/`; its raw trace is dropped, unless
`--keep-traces` says otherwise. `<out>/recording.json` and `<out>/README.md` say where the files come from; runs that
are not recorded again stay in both.

    python demo/record.py --out demo/recorded
    python demo/record.py --out demo/recorded --models custom --profile-memory --keep-traces demo/recorded
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

try:
    from models import MODELS
    from training import PRECISIONS
except ImportError as error:
    sys.exit(f"demo/record.py: torch is missing ({error}): install it (pip install torch) and try again.")

HERE = Path(__file__).resolve().parent
EVENT_FILES = "events.out.tfevents.*"
TRACES = "*.pt.trace.json*"
RECORDED_STEPS = 10


@dataclass
class Run:
    """One recorded run, or why there is none."""

    model: str
    precision: str
    event_files: list[str] = field(default_factory=list)
    event_bytes: int = 0
    trace_bytes: int = 0
    seconds: float = 0.0
    result: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def name(self) -> str:
        """Model and precision, as the run is called in TensorBoard."""
        return f"{self.model}/{self.precision}"


def _parse_args(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Record the demo models and keep their event files.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", nargs="+", choices=sorted(MODELS), default=list(MODELS), metavar="MODEL")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS), metavar="PRECISION")
    parser.add_argument("--keep-traces", type=Path, metavar="DIR", help="keep raw traces in DIR/<model>/<precision>/")
    parser.add_argument("--traces-of", nargs="+", metavar="RUN", help="only of these runs, as in vgg16/fp32")
    parser.add_argument("--profile-memory", action="store_true", help="record the memory, too")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--steps", type=int, default=RECORDED_STEPS, help="iterations to record")
    parser.add_argument("--workers", type=int, default=None, help="DataLoader workers")
    parser.add_argument("--quick", action="store_true", help="small images and batches, for a try")
    parser.add_argument("--timeout", type=float, default=180, help="seconds that one run may take")
    return parser.parse_args(argv)


def record(model: str, precision: str, args: argparse.Namespace) -> Run:
    """Train one model in one precision in a process of its own, and sort what it leaves."""
    run = Run(model, precision)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tb_dlprof_demo_") as scratch:
        command = [sys.executable, str(HERE / "train.py"), "--model", model, "--precision", precision]
        command += ["--logdir", scratch, "--steps", str(args.steps), "--device", args.device]
        if args.workers is not None:
            command += ["--workers", str(args.workers)]
        if args.quick:
            command.append("--quick")
        if args.profile_memory:
            command.append("--profile-memory")
        # A checkout that is not installed works too; the traces that are kept are those that torch wrote.
        env = dict(os.environ, TB_DLPROF_PYTORCH_VIEWS="0")
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE.parent), env.get("PYTHONPATH"))))
        try:
            done = subprocess.run(
                command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=args.timeout
            )
        except subprocess.TimeoutExpired:
            run.error = f"took longer than {args.timeout:.0f} s"
        else:
            if done.returncode == 0:
                run.result = json.loads(done.stdout.strip().splitlines()[-1])
            else:
                run.error = f"ended with status {done.returncode}: {_last_line(done.stderr)}"
        if not run.error:
            _keep(run, Path(scratch), args)
            if not run.event_files:
                run.error = f"left no event file: {_last_line(done.stderr)}"
    run.seconds = round(time.monotonic() - start, 1)
    return run


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no output"


def _keep(run: Run, scratch: Path, args: argparse.Namespace) -> None:
    """Move the event files, and the traces where they are wanted, out of the run's scratch directory."""
    event_files = sorted(scratch.rglob(EVENT_FILES))
    traces = sorted(scratch.rglob(TRACES))
    run.trace_bytes = sum(path.stat().st_size for path in traces)
    if not event_files:
        return
    target = args.out / run.model / run.precision
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    for path in event_files:
        run.event_bytes += path.stat().st_size
        run.event_files.append(path.name)
        shutil.move(path, target / path.name)
    if args.keep_traces and (args.traces_of is None or run.name in args.traces_of):
        kept = args.keep_traces / run.model / run.precision
        kept.mkdir(parents=True, exist_ok=True)
        for path in traces:
            shutil.move(path, kept / path.name)


def _table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| run | batch | unprofiled step | without the loader | profiled step | event file | trace |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        name, result = _name(row), row["result"]
        if row["error"]:
            lines.append(f"| {name} | | {row['error']} | | | | |")
            continue
        lines.append(
            f"| {name} | {result['batch_size']} | {result['unprofiled_step_ms']:.2f} ms "
            f"| {result['unprofiled_step_without_loader_ms']:.2f} ms | {result['profiled_step_ms']:.2f} ms "
            f"| {row['event_bytes'] / 1e3:.0f} kB | {row['trace_bytes'] / 1e3:.0f} kB |"
        )
    return lines


def _not_again(out: Path, runs: list[Run]) -> list[dict[str, Any]]:
    """The rows of an earlier recording in the same directory, but those of runs that are recorded again."""
    try:
        earlier = json.loads((out / "recording.json").read_text(encoding="utf-8"))
    except OSError:
        return []
    again = {run.name for run in runs}
    return [row for row in earlier["runs"] if _name(row) not in again]


def _name(row: dict[str, Any]) -> str:
    return f"{row['model']}/{row['precision']}"


def write_report(out: Path, runs: list[Run], command: str) -> None:
    """Write `recording.json` (everything) and `README.md` (the same for people)."""
    made = {
        "command": command,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "python": ".".join(map(str, sys.version_info[:3])),
        "cpu_count": os.cpu_count(),
    }
    rows = [*_not_again(out, runs), *({**asdict(run), **made} for run in runs)]
    order = list(MODELS)
    rows.sort(key=lambda row: (order.index(row["model"]), PRECISIONS.index(row["precision"])))
    out.mkdir(parents=True, exist_ok=True)
    (out / "recording.json").write_text(json.dumps({"runs": rows}, indent=2) + "\n", encoding="utf-8")
    by = {(row["command"], row["date"], row["python"], row["cpu_count"], *_device_and_torch(row)): None for row in rows}
    text = ["# Recorded runs", "", "Event files of the demo models, recorded by", ""]
    for line, date, python, cpus, device, torch in by:
        text += [
            f"    {line}",
            "",
            f"on {date} on one {device} ({cpus} CPU cores), torch {torch}, Python {python}.",
            "",
        ]
    notes = {row["note"]: None for row in rows if row.get("note")}
    text += [
        "Images are made up, the training loop is `demo/train.py`. *Unprofiled step* is the mean of steps timed",
        "without the profiler, the data loader included: the speedup between two precisions that a user gets. *Without",
        "the loader* is the same on one batch that stays on the device. *Profiled step* is the mean of the recorded",
        "steps on the device. Raw traces are kept with the event files of few runs.",
        "",
        *_table(rows),
        "",
        *(f"{note} ({', '.join(_name(row) for row in rows if row.get('note') == note)})" for note in notes),
    ]
    (out / "README.md").write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")


def _device_and_torch(row: dict[str, Any]) -> tuple[str, str]:
    return row["result"].get("device", "unknown"), row["result"].get("torch", "unknown")


def main(argv: list[str] | None = None) -> None:
    """Entry point of the script."""
    args = _parse_args(argv)
    command = shlex.join(["python", "demo/record.py", *(sys.argv[1:] if argv is None else argv)])
    wanted = [(model, precision) for model in args.models for precision in args.precisions]
    runs: list[Run] = []
    for number, (model, precision) in enumerate(wanted, start=1):
        run = record(model, precision, args)
        runs.append(run)
        outcome = run.error or f"{run.result['unprofiled_step_ms']:.2f} ms a step, {run.event_bytes / 1e3:.0f} kB"
        print(f"[{number}/{len(wanted)}] {run.name}: {outcome} ({run.seconds:.0f} s)", flush=True)
        write_report(args.out, runs, command)  # after each run: a recording cut short still says what it holds
    print("\n".join(["", *_table([asdict(run) for run in runs])]), flush=True)
    failed = [run.name for run in runs if run.error]
    if failed:
        sys.exit(f"demo/record.py: {len(failed)} of {len(runs)} runs failed: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
