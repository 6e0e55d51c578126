"""Records jobs of two ranks (four where there are as many GPUs) with the hook, and measures each without a profiler.

    python -m benchmarks.ranks.record --out DIRECTORY [--device cpu] [--subjects NAME ...] [--seconds 120]

DIRECTORY/<job>/ gets each rank's trace and event file, and `truth.<rank>.json`: the planted cause, its rank, and every step
of two turns without a profiler, one before the recording and one after it. All jobs run in the same processes, one for
each GPU. With `--pack` the jobs go into archives of at most 15 MB, those that are held out into others than the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import tarfile
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from .pair import Pair
from .subjects import SUBJECTS, Subject

ARCHIVE_BYTES = 15 << 20
ARCHIVES = {False: 2, True: 2}
"""Of each kind; what does not fit is left out, traces before event files."""


def main() -> None:
    """Writes the recordings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--subjects", nargs="*", default=[subject.name for subject in SUBJECTS])
    parser.add_argument("--seconds", type=float, default=120, help="of all jobs together; those left are not begun")
    parser.add_argument("--pack", type=Path, help="directory for archives of the recordings")
    given = parser.parse_args()
    began = time.monotonic()
    # NVLink multicast is of no use between two GPUs, and not every machine allows it.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    os.environ.setdefault("TORCH_NCCL_TRACE_BUFFER_SIZE", "500")
    os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "500")
    given.out.mkdir(parents=True, exist_ok=True)
    gpus = _gpus() if given.device == "cuda" else 4
    chosen = [subject for subject in SUBJECTS if subject.name in given.subjects and subject.ranks <= gpus]
    rows: list[dict[str, Any]] = []
    for subjects in _together(chosen):
        while subjects and time.monotonic() - began < given.seconds:
            done, subjects = Pair(subjects, given.out, given.device, began + given.seconds).run()
            rows += done
            (given.out / "recording.json").write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    names = {row["subject"] for row in rows}
    left = [subject.name for subject in chosen if subject.name not in names]
    if given.pack:
        left_out = pack(given.out, given.pack)
        print("left out of the archives:", ", ".join(left_out) or "nothing")
    _print(rows, left, given.out)
    print(f"{time.monotonic() - began:.0f} s")


def _together(subjects: list[Subject]) -> Iterator[list[Subject]]:
    """Jobs that the same processes can run, in the order of the first of each."""

    def kind(subject: Subject) -> tuple[Any, ...]:
        return subject.environment, subject.ranks

    first = {kind(subject): index for index, subject in reversed(list(enumerate(subjects)))}
    for _, members in groupby(sorted(subjects, key=lambda one: first[kind(one)]), key=kind):
        yield list(members)


def _gpus() -> int:
    """Their number, without CUDA in use afterwards: the ranks are forked."""
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    return torch.cuda.device_count()


def pack(recordings: Path, folder: Path) -> list[str]:
    """Archives of the jobs in their order, held out ones apart; names of the files that found no room."""
    folder.mkdir(parents=True, exist_ok=True)
    left_out = []
    for held_out, most in ARCHIVES.items():
        label = "held_out" if held_out else "dev"
        room = [ARCHIVE_BYTES] * most
        members: list[list[Path]] = [[] for _ in room]
        files = [
            path
            for subject in SUBJECTS
            if subject.held_out == held_out
            for path in sorted((recordings / subject.name).glob("*"))
            if path.is_file() and not path.name.startswith(".")
        ]
        # A stable order: traces last, each kind in the order of the jobs.
        for path in sorted(files, key=lambda path: path.name.endswith(".json.gz")):
            size = path.stat().st_size + 1024
            at = next((index for index, free in enumerate(room) if free >= size), None)
            if at is None:
                left_out.append(f"{path.parent.name}/{path.name}")
                continue
            room[at] -= size
            members[at].append(path)
        for index, inside in enumerate(members):
            if not inside:
                continue
            with tarfile.open(folder / f"{label}_{index}.tar", "w") as archive:
                for path in inside:
                    archive.add(path, f"{path.parent.name}/{path.name}")
    return left_out


def _print(rows: list[dict[str, Any]], left: list[str], out: Path) -> None:
    print(f"{'job':24} {'cause':22} rank  step ms by rank     planted")
    for row in rows:
        subject = next(one for one in SUBJECTS if one.name == row["subject"])
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
