"""Records jobs of two ranks (four where there are as many GPUs) with the hook, and measures each without a profiler.

    python -m lab.ranks.record --out DIRECTORY [--device cpu] [--jobs users] [--subjects NAME ...]

DIRECTORY/<job>/ gets each rank's trace and event file, and `truth.<rank>.json`: the planted cause, its rank, and every
step of two turns without a profiler, one before the recording and one after it. All jobs run in the same processes, one
for each GPU. With `--pack` the jobs go into archives of at most 15 MB, those that are held out into others.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from .archives import pack
from .pair import ENDING_S, Pair
from .settings import GLOO, SETTINGS
from .subjects import SUBJECTS, Subject
from .user_jobs import SCALING, USER_JOBS

_JOBS = {"causes": SUBJECTS, "settings": SETTINGS, "gloo": GLOO, "users": USER_JOBS, "scaling": SCALING}
LATER_S = 14
"""Kept for each group of jobs that needs processes of its own."""


def main() -> None:
    """Writes the recordings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--jobs", choices=tuple(_JOBS), default="causes")
    parser.add_argument("--subjects", nargs="*", help="instead of all that are not set apart")
    parser.add_argument("--trial", action="store_true", help="the jobs that are set apart")
    parser.add_argument("--seconds", type=float, default=120, help="of all jobs together; those left are not begun")
    parser.add_argument("--pack", type=Path, help="directory for archives of the recordings")
    given = parser.parse_args()
    began = time.monotonic()
    # What is not installed fails here, not in each job.
    import_module("tb_dlprof_plugin.capture.analysis_process")
    import_module("tb_dlprof_plugin.store.event_file")
    # NVLink multicast is of no use between two GPUs, and not every machine allows it.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "500")
    given.out.mkdir(parents=True, exist_ok=True)
    gpus = _gpus() if given.device == "cuda" else 4
    known = _JOBS[given.jobs]
    asked = given.subjects or [one.name for one in known if one.set_apart == given.trial]
    chosen = [one for one in known if one.name in asked and one.ranks <= gpus]
    rows: list[dict[str, Any]] = []
    groups = list(_together(chosen))
    for number, subjects in enumerate(groups, start=1):
        until = began + given.seconds - LATER_S * (len(groups) - number)
        while subjects and time.monotonic() < until - ENDING_S:
            done, subjects = Pair(subjects, given.out, given.device, until).run()
            rows += done
            (given.out / "recording.json").write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    names = {row["subject"] for row in rows}
    left = [subject.name for subject in chosen if subject.name not in names]
    if given.pack:
        left_out = pack(given.out, given.pack, known)
        print("left out of the archives:", ", ".join(left_out) or "nothing")
    _print(rows, left, given.out, known)
    print(f"{time.monotonic() - began:.0f} s")


def _together(subjects: list[Subject]) -> Iterator[list[Subject]]:
    """Jobs that the same processes can run, in the order of the first of each."""

    def kind(subject: Subject) -> tuple[Any, ...]:
        return subject.environment, subject.ranks, subject.hosts

    first = {kind(subject): index for index, subject in reversed(list(enumerate(subjects)))}
    for _, members in groupby(sorted(subjects, key=lambda one: first[kind(one)]), key=kind):
        yield list(members)


def _gpus() -> int:
    """Their number, without CUDA in use afterwards: the ranks are forked."""
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    return torch.cuda.device_count()


def _print(rows: list[dict[str, Any]], left: list[str], out: Path, known: list[Subject]) -> None:
    print(f"{'job':24} {'cause':22} rank  step ms by rank     planted")
    for row in rows:
        subject = next(one for one in known if one.name == row["subject"])
        files = [path.name for path in (out / subject.name).glob("*")]
        missing = subject.ranks - sum("tfevents" in name for name in files)
        truth = out / subject.name / f"truth.{subject.rank or 0}.json"
        planted = json.loads(truth.read_text())["planted"].get("what", "") if truth.exists() else ""
        steps = " ".join(f"{step:8.2f}" for step in row.get("step_ms", []))
        rank = "" if subject.rank is None else subject.rank
        said = row.get("error", "") or planted
        lacks = f"({missing} event files missing) " if missing else ""
        print(f"{subject.name:24} {subject.cause:22} {rank!s:4}  {steps:18}  {lacks}{said}")
    if left:
        print("not begun:", ", ".join(left))


if __name__ == "__main__":
    main()
