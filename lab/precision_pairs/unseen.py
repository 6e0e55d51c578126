"""Records the models that no rule was made on (`unseen_subjects`), and single ops, in one stay on a GPU.

    python -m lab.precision_pairs.unseen --out DIRECTORY [--seconds 500] [--ops-seconds 140]

Each model is trained in four precisions in turns without a profiler: the truth. In FP32 and BF16 it is recorded by the
hook with its default settings and by a bare ``torch.profiler``, between the turns. Both halves are recorded
alternately, so that a limit cuts both. Then single ops are measured (`lab.op_speed.record`). What comes out
are archives: event files and times of each half, traces of each half, and the ops.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import datetime
import gc
import io
import itertools
import json
import lzma
import os
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from tb_dlprof_plugin.capture import wait_for_analysis

from ..true_step import AFTER_S, HOOK_STEPS, by_hook  # type: ignore[import-not-found]
from .record import PRECISIONS, Step, turn_ms, warm_up
from .subjects import Subject
from .unseen_subjects import BY_NAME, HELD_OUT, OPENED

RECORDED = ("fp32", "amp-bf16")
TURN_SHARE = 0.7
"""Of the steps that make a turn elsewhere."""
BARE_STEPS = 4
LARGEST_BYTES = 15_500_000
"""Of an archive; a larger half is spread over several."""
_PACKING_S, _ANALYSIS_S = 25.0, 20.0


class Recording:
    """One model: its steps in each precision, and what was timed and recorded of it."""

    def __init__(self, subject: Subject, out: Path, device: str) -> None:
        self.subject, self.out, self.device = subject, out, device
        self.runs: dict[str, dict[str, Any]] = {
            precision: {"subject": subject.name, "precision": precision, "batch_size": subject.batch_size}
            for precision in PRECISIONS
        }
        self._steps: dict[str, Step] = {}
        self._counts: dict[str, int] = {}
        self._turns: dict[str, list[float]] = {precision: [] for precision in PRECISIONS}

    def record(self) -> None:
        """Turn, hook, turn, bare profiler, turn; what fails in one precision is said in its run."""
        built = copy.copy(self.subject)
        with torch.device(self.device):
            torch.manual_seed(0)
            model = self.subject.build()
        object.__setattr__(built, "build", lambda: copy.deepcopy(model))
        for precision in PRECISIONS:
            self._attempt(precision, lambda p=precision: self._prepare(built, p))  # type: ignore[misc]
        self._take_turn()
        for precision in RECORDED:
            self._attempt(precision, lambda p=precision: self._by_hook(p))  # type: ignore[misc]
        self._take_turn()
        for precision in RECORDED:
            self._attempt(precision, lambda p=precision: self._bare(p))  # type: ignore[misc]
        self._take_turn()
        for precision, run in self.runs.items():
            turns = self._turns[precision]
            if "error" not in run:
                run["unprofiled_step_ms"] = round(statistics.median(turns), 4)
                run["unprofiled_turns_ms"] = [round(value, 4) for value in turns]

    def _attempt(self, precision: str, action: Callable[[], object]) -> None:
        run = self.runs[precision]
        if "error" not in run:
            try:
                action()
            except Exception as error:
                run["error"] = f"{type(error).__name__}: {error}"[:300]

    def _prepare(self, subject: Subject, precision: str) -> None:
        step = self._steps[precision] = Step(subject, precision, self.device)
        self._counts[precision] = max(6, round(warm_up(step) * TURN_SHARE))

    def _take_turn(self) -> None:
        for precision in PRECISIONS:
            self._attempt(
                precision,
                lambda p=precision: self._turns[p].append(turn_ms(self._steps[p], self._counts[p])),  # type: ignore[misc]
            )

    def _by_hook(self, precision: str) -> None:
        count = max(HOOK_STEPS, 24 + round(AFTER_S * 1e3 / self._turns[precision][0]))
        turn_ms(self._steps[precision], 2)
        by_hook(self._steps[precision], self.out / "events" / self.subject.name / precision, count)

    def _bare(self, precision: str) -> None:
        step = self._steps[precision]
        turn_ms(step, 2)
        activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA] if self.device == "cuda" else [ProfilerActivity.CPU]
        plan = schedule(wait=0, warmup=2, active=BARE_STEPS, repeat=1)
        with profile(activities=activities, record_shapes=True, schedule=plan) as prof:
            for index in range(2 + BARE_STEPS):
                step()
                if index == 1 + BARE_STEPS and self.device == "cuda":
                    torch.cuda.synchronize()
                prof.step()
        trace = self.out / "traces" / self.subject.name / f"{precision}.pt.trace.json"
        trace.parent.mkdir(parents=True, exist_ok=True)
        prof.export_chrome_trace(str(trace))


def record(names: list[str], out: Path, until: float, device: str) -> None:
    """Each model into the folder of its half, until the clock says ``until``."""
    halves = {subject.name: half for half, subjects in _HALVES.items() for subject in subjects}
    runs: dict[str, list[dict[str, Any]]] = {half: [] for half in _HALVES}
    for name in names:
        if time.monotonic() > until:
            print(f"The time is over: {name} was not begun.", flush=True)
            continue
        begin = time.monotonic()
        recording = Recording(BY_NAME[name], out / halves[name], device)
        try:
            recording.record()
        except Exception as error:
            for run in recording.runs.values():
                run.setdefault("error", f"{type(error).__name__}: {error}"[:300])
        runs[halves[name]] += recording.runs.values()
        for precision, run in recording.runs.items():
            # The times of models that are held out are not to be seen.
            said = run.get("error") or (run["unprofiled_turns_ms"] if halves[name] == "opened" else "timed")
            print(f"  {name + '/' + precision:44} {said}", flush=True)
        print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
        del recording
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()
        for half, made in runs.items():
            (out / half).mkdir(parents=True, exist_ok=True)
            (out / half / "recording.json").write_text(json.dumps({**_machine(device), "runs": made}, indent=1) + "\n")


_HALVES = {"opened": OPENED, "held_out": HELD_OUT}


def _machine(device: str) -> dict[str, str]:
    return {
        "command": "python -m lab.precision_pairs.unseen",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "device": torch.cuda.get_device_name(0) if device == "cuda" else "cpu",
        "torch": torch.__version__,
        "python": sys.version.split()[0],
    }


def pack(out: Path, results: Path) -> None:
    """The folders of both halves as archives in ``results``; a trace's name tells its model and precision."""
    results.mkdir(parents=True, exist_ok=True)
    traces = [path for half in _HALVES for path in sorted((out / half / "traces").rglob("*.json"))]
    with ProcessPoolExecutor(max_workers=min(16, os.cpu_count() or 1)) as pool:
        packed = dict(zip(traces, pool.map(_compressed, traces), strict=True))
    for half in _HALVES:
        if not (out / half).is_dir():
            continue
        with tarfile.open(results / f"{half}.tar.gz", "w:gz") as archive:
            archive.add(out / half / "recording.json", f"{half}/recording.json")
            if (out / half / "events").is_dir():
                archive.add(out / half / "events", f"{half}/events")
        _in_parts(results / f"{half}_traces", [(path, packed[path]) for path in traces if half in path.parts], out)


def _compressed(trace: Path) -> bytes:
    return lzma.compress(trace.read_bytes(), preset=2)


def _in_parts(stem: Path, files: list[tuple[Path, bytes]], root: Path) -> None:
    part, size = 0, LARGEST_BYTES
    archive: tarfile.TarFile | None = None
    for path, data in files:
        if size + len(data) > LARGEST_BYTES:
            if archive:
                archive.close()
            part, size = part + 1, 0
            archive = tarfile.open(f"{stem}_{part}.tar", "w")  # noqa: SIM115
        size += len(data) + 1024
        info = tarfile.TarInfo(f"{path.relative_to(root)}.xz")
        info.size = len(data)
        assert archive is not None
        archive.addfile(info, io.BytesIO(data))
    if archive:
        archive.close()


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="where the archives go")
    parser.add_argument("--scratch", type=Path, default=Path("/tmp/unseen"))
    alternately = [one for pair in itertools.zip_longest(OPENED, HELD_OUT) for one in pair if one is not None]
    names = [subject.name for subject in alternately]
    parser.add_argument("--subjects", nargs="*", choices=names, default=names, metavar="NAME")
    parser.add_argument("--seconds", type=float, default=500, help="for all of it")
    parser.add_argument("--ops-seconds", type=float, default=140, help="of these, for single ops; 0 for none")
    parser.add_argument("--ops-skip", type=int, default=0, help="leave out this many ops, measured before")
    parser.add_argument("--draws", nargs="+", default=["irregular"], help="of the ops")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    start = time.monotonic()
    args.out.mkdir(parents=True, exist_ok=True)
    end = start + args.seconds - _PACKING_S
    record(args.subjects, args.scratch, end - args.ops_seconds, args.device)
    wait_for_analysis(timeout=30)
    if args.ops_seconds:
        left = (end - time.monotonic()) / len(args.draws)
        for draw in args.draws:
            command = [sys.executable, "-m", "lab.op_speed.record", str(args.out / f"ops_{draw}.json.xz")]
            command += [
                "--draw",
                draw,
                "--seconds",
                f"{left - _ANALYSIS_S:.0f}",
                "--jobs",
                "8",
                "--skip",
                str(args.ops_skip),
                "--device",
                args.device,
            ]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(command, check=False, timeout=left + _ANALYSIS_S)
    pack(args.scratch, args.out)
    print(f"{time.monotonic() - start:.0f} s in all")


if __name__ == "__main__":
    main()
