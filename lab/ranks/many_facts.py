"""A run of thousands of ranks made from the stored profiles of two, and what `tb-dlprof distributed` takes to answer.

    python -m lab.ranks.many_facts RUN --out DIRECTORY [--ranks 4096] [--steps 10] [--calls 2000]

RUN is a run of two ranks, of which rank 1 is late, such as tests/data/ranks/recorded/ddp_slow_gpu. Its steps are
repeated until a rank has as many steps and calls in each as asked; 0 leaves them as they are. Rank 1 becomes the
straggler; rank 0, whose calls begin later by a jitter and end as they did, becomes all others. Eight ranks share a
host, whose clock is off by up to 5 ms. This leaves out reading traces.

Prints the size of the facts, then what the command answers with its seconds, those of one core, and its peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from tb_dlprof_plugin.fleet.facts_codec import encode_facts
from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Collectives, Gradients, RankFacts, Steps
from tb_dlprof_plugin.fleet.stored_facts import stored_facts
from tb_dlprof_plugin.store.event_file import event_file_content, event_file_name
from tb_dlprof_plugin.store.logdir import EventFileStore, runs_below
from tb_dlprof_plugin.store.profile_store import read_profile

JITTER_NS = 150_000
CLOCK_NS = 5_000_000
HOST_RANKS = 8
_AT_NS = 1_800_000_000_000_000_000


def job_facts(
    pair: tuple[RankFacts, RankFacts], ranks: int, steps: int, calls: int, straggler: int
) -> Iterator[RankFacts]:
    """The facts of so many ranks, one after the other."""
    longer = [repeated(one, steps, calls) for one in pair]
    draw, clocks = np.random.default_rng(0), random.Random(0)
    offsets = [clocks.randint(-CLOCK_NS, CLOCK_NS) for _ in range(-(-ranks // HOST_RANKS))]
    everyone = tuple(range(ranks))
    groups = tuple(replace(group, members=everyone) for group in longer[0].groups)
    for rank in range(ranks):
        one = longer[1] if rank == straggler else jittered(longer[0], draw)
        host = rank // HOST_RANKS
        yield replace(
            one,
            rank=rank,
            world_size=ranks,
            host=f"node{host:04d}",
            device=rank % HOST_RANKS,
            base_ns=one.base_ns + offsets[host],
            groups=groups,
            mesh=(("dp", rank),),
        )


def repeated(one: RankFacts, steps: int, calls: int) -> RankFacts:
    """The rank with so many steps of so many calls: each is a row of its recorded steps, one behind the other."""
    recorded = len(one.steps.number)
    if not steps:
        return one
    of_step = np.bincount(one.collectives.iteration, minlength=recorded)
    if not of_step.all():
        raise SystemExit("the run has a step without collectives")
    step_rows: dict[str, list[int]] = {column.name: [] for column in fields(Steps)}
    parts: dict[str, list[Any]] = {column.name: [] for column in fields(Collectives)}
    now, source = int(one.steps.start_ns[0]), 0
    for step in range(steps):
        begin, left = now, calls
        sums = dict.fromkeys(step_rows, 0) | {"work_hash": int(one.steps.work_hash[0])}
        while left > 0:
            at = source % recorded
            source += 1
            rows = np.flatnonzero(one.collectives.iteration == at)[:left]
            left -= len(rows)
            shift = now - int(one.steps.start_ns[at])
            for name, values in parts.items():
                column = getattr(one.collectives, name)[rows]
                if name in ("start_ns", "launched_ns"):
                    column = np.where(column == UNKNOWN, UNKNOWN, column + shift)
                values.append(np.full(len(rows), step) if name == "iteration" else column)
            for name in sums.keys() - {"work_hash"}:
                sums[name] += int(getattr(one.steps, name)[at])
            now += int(one.steps.end_ns[at] - one.steps.start_ns[at])
        sums |= {"number": step, "start_ns": begin, "end_ns": now}
        for name, value in sums.items():
            step_rows[name].append(value if name == "work_hash" else max(value, UNKNOWN))
    columns = {name: np.concatenate(values) for name, values in parts.items()}
    for group in np.unique(columns["group"]):
        here = columns["group"] == group
        columns["sequence"][here] = np.arange(int(here.sum()))
    return replace(
        one,
        steps=Steps(**{name: np.array(values, dtype=np.int64) for name, values in step_rows.items()}),
        collectives=Collectives(**columns),
        gradients=Gradients(),
        step_length=None,
    )


def jittered(one: RankFacts, draw: np.random.Generator) -> RankFacts:
    """The rank with each call beginning somewhat later, the GPU idle before it, and ending as it did."""
    calls, steps = one.collectives, one.steps
    by = np.minimum(draw.integers(0, JITTER_NS, len(calls)), calls.exposed_ns // 2)
    late = np.bincount(calls.iteration, weights=by, minlength=len(steps.number)).astype(np.int64)
    return replace(
        one,
        collectives=replace(
            calls,
            start_ns=calls.start_ns + by,
            duration_ns=calls.duration_ns - by,
            exposed_ns=calls.exposed_ns - by,
            idle_ns=calls.idle_ns + by,
        ),
        steps=replace(steps, communication_ns=steps.communication_ns - late, idle_ns=steps.idle_ns + late),
    )


def write_job(run: Path, target: Path, ranks: int, steps: int, calls: int, straggler: int) -> int:
    """Writes an event file for each rank, with the profile of the rank it is made from; the bytes of all facts."""
    blobs = sorted(EventFileStore(runs_below(run)).all(), key=lambda blob: blob.ref.rank)[:2]
    pair = stored_facts(blobs[0]), stored_facts(blobs[1])
    profile = read_profile(blobs[0])
    target.mkdir(parents=True)
    size = 0
    for one in job_facts(pair, ranks, steps, calls, straggler):
        own = replace(profile, source=replace(profile.source, rank=one.rank, session="job"))
        facts = encode_facts(one)
        size += len(facts)
        name = event_file_name(_AT_NS, f"rank{one.rank}")
        (target / name).write_bytes(event_file_content(own, _AT_NS, None, facts))
    return size


def answered(run: str) -> dict[str, Any]:
    """What the command says of the job, its seconds (of the wall and of one core) and its peak memory."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["-m", "tb_dlprof_plugin.cli.main", "distributed", run, "--format", "json"]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    job = json.loads(done.stdout)
    return {
        "seconds": round(seconds, 1),
        "of_one_core": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "peak_mb": after.ru_maxrss // 1024,
        "delays": job["delays"][:2],
        "clock": job["clock"]["uncertainty_us"],
        "matched_percent": job["collectives"]["matched_percent"],
        "notes": job["notes"],
    }


def main() -> None:
    """Prints the figures, one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--straggler", type=int, default=37)
    given = parser.parse_args()
    run = given.out / f"job_{given.ranks}x{given.steps}x{given.calls}"
    if not run.exists():
        began = time.perf_counter()
        size = write_job(given.run, run, given.ranks, given.steps, given.calls, given.straggler % given.ranks)
        print(f"{size / given.ranks / 1e3:.0f} kB of facts a rank, in {time.perf_counter() - began:.0f} s", flush=True)
    print("tb-dlprof distributed:", json.dumps(answered(os.fspath(run)), indent=1))


if __name__ == "__main__":
    main()
