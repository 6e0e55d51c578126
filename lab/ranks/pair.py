"""The processes of a job, one for each rank: they go through subjects in turn, and their parent watches them.

A rank that fails or hangs holds the others in a collective, where nothing can end them but their parent: it kills all,
and new ones take the subjects that are left.
"""

from __future__ import annotations

import ctypes
import gc
import gzip
import json
import multiprocessing as mp
import os
import pickle
import queue
import socket
import statistics
import time
import traceback
from contextlib import ExitStack
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import tb_dlprof_plugin

from .plants import PLANTS, SharedGpu
from .subjects import BARE, Subject
from .trainings import Training

WARM, NATURAL, TURN = 4, 5, 10
SCHEDULE = {"wait": 10, "warmup": 2, "repeat": 1}
AFTER = 5
"""Steps after the recorded ones: the hook measures steps before and after its window too."""
_NEW_UTS_NAMESPACE = 0x04000000
"""CLONE_NEWUTS of Linux: names of hosts of its own."""
LIMIT_S = 30.0
"""Of one subject."""
COMPILING_S = 120.0
FIRST_LIMIT_S = 45.0
"""Of a pair's first subject, which loads libraries."""
ENDING_S = 12.0
"""Kept for the analyses that still run when the time is over."""


class Pair:
    """Processes for ``subjects``, all with the same number of ranks and the same environment.

    CUDA must not be in use yet in this process, which they are forked from.
    """

    def __init__(self, subjects: list[Subject], out: Path, device: str, until_s: float) -> None:
        self._subjects, self._out, self._until_s = subjects, out, until_s
        context = mp.get_context("fork")
        self._said: Any = context.Queue()
        self._world = subjects[0].ranks
        # A job whose own way of slowing the GPU down fails is tried again with this one.
        slow = [one.rank for one in subjects if one.plant in ("shared_gpu", "fewer_processors")]
        shared = {rank for rank in slow if rank is not None}
        self._sharers = {rank: SharedGpu(rank, device) for rank in shared}
        for sharer in self._sharers.values():
            sharer.start()
        port = _free_port()
        os.environ.update(subjects[0].environment)
        self._ranks = [
            context.Process(target=_rank, args=(rank, port, subjects, out, device, until_s, self._said, self._sharers))
            for rank in range(self._world)
        ]
        for process in self._ranks:
            process.start()
        for name, _ in subjects[0].environment:
            del os.environ[name]

    def run(self) -> tuple[list[dict[str, Any]], list[Subject]]:
        """What each subject gave, and the subjects that are left because one failed."""
        rows: list[dict[str, Any]] = []
        try:
            for index, subject in enumerate(self._subjects):
                limit_s = LIMIT_S if index else FIRST_LIMIT_S
                if subject.options.get("compiled", False):
                    limit_s = COMPILING_S
                began = time.monotonic()
                found = self._wait_for(subject.name, min(began + limit_s, self._until_s))
                if found is None:
                    break
                row = {"subject": subject.name, "seconds": round(time.monotonic() - began, 1), **found}
                rows.append(row)
                print(
                    f"{row['seconds']:5.1f} s  {subject.name:24} {row.get('step_ms', '')} {row.get('error', '')}",
                    flush=True,
                )
                if "error" in row:
                    rest = self._subjects[index + 1 :]
                    if subject.plant == "fewer_processors":
                        rest = [replace(subject, plant="shared_gpu"), *rest]
                    return rows, rest
            self._wait_for("", self._until_s + 1)
            return rows, []
        finally:
            for process in self._ranks:
                process.join(2 if rows and "error" not in rows[-1] else 0)
                process.kill()
            for sharer in self._sharers.values():
                sharer.stop()

    def _wait_for(self, name: str, until_s: float) -> dict[str, Any] | None:
        """A subject's step on each rank, or why there is none; None where the ranks did not begin it."""
        steps: dict[int, float] = {}
        while len(steps) < self._world:
            try:
                rank, subject, kind, what = self._said.get(timeout=max(0.05, min(1.0, until_s - time.monotonic())))
            except queue.Empty:
                dead = [rank for rank, process in enumerate(self._ranks) if process.exitcode]
                if dead:
                    return {"error": f"rank {dead[0]} ended with status {self._ranks[dead[0]].exitcode}"}
                if time.monotonic() > until_s:
                    return {"error": "took too long"}
                continue
            if kind == "failed":
                return {"error": f"rank {rank}: {what}"}
            if kind == "over" and name:
                return None
            if subject == name:
                steps[rank] = what
        return {"step_ms": [steps[rank] for rank in sorted(steps)]}


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _rank(
    rank: int,
    port: int,
    subjects: list[Subject],
    out: Path,
    device_type: str,
    until_s: float,
    said: Any,
    sharers: dict[int, SharedGpu],
) -> None:
    """One rank's process."""
    world = subjects[0].ranks
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_RANK": str(rank),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    if subjects[0].hosts > 1:
        ctypes.CDLL(None).unshare(_NEW_UTS_NAMESPACE)
        socket.sethostname(f"host{rank * subjects[0].hosts // world}")
    name = ""
    try:
        device = torch.device(device_type, rank) if device_type == "cuda" else torch.device("cpu")
        options: dict[str, Any] = {}
        if device.type == "cuda":
            torch.cuda.set_device(device)
            options["device_id"] = device
        else:
            torch.set_num_threads(1)
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", rank=rank, world_size=world, **options)
        sessions: list[Any] = []
        for subject in subjects:
            name = subject.name
            in_time = torch.tensor(time.monotonic() < until_s - ENDING_S, device=device)
            dist.broadcast(in_time, 0)
            if not in_time.item():
                said.put((rank, name, "over", 0))
                break
            said.put((rank, name, "done", record(subject, device, out, sharers, sessions)))
        name = ""
        well = [session.wait(max(1.0, until_s - time.monotonic())) for session in sessions]
        said.put((rank, "", "done", sum(well)))
        dist.destroy_process_group()
    except BaseException as error:
        traceback.print_exc()
        said.put((rank, name, "failed", f"{type(error).__name__}: {str(error)[:200]}"))
        said.close()
        said.join_thread()
        os._exit(1)


def record(
    subject: Subject, device: torch.device, out: Path, sharers: dict[int, SharedGpu], sessions: list[Any]
) -> float:
    """Measures and records a subject on this rank; the median step (ms) without the profiler."""
    began = time.monotonic()
    rank, guilty = dist.get_rank(), dist.get_rank() == subject.rank
    folder = out / subject.name
    training = Training(subject, device)
    _steps(training, WARM)
    natural = _steps(training, NATURAL)
    said: dict[str, Any] = {}
    plants = {**PLANTS, "shared_gpu": sharers.get(rank, PLANTS[""])}
    with ExitStack() as planted:
        # All ranks begin to be measured together, once the plant is there.
        if guilty:
            planted.enter_context(plants[subject.plant](training, _delay_s(subject, natural), said))
        dist.barrier()
        _steps(training, 2)
        turns = [_steps(training, TURN)]
        if subject.bare:
            _record_bare(training, subject, out)
            turns.append(_steps(training, TURN))
        session = tb_dlprof_plugin.profile(
            folder,
            training.model,
            training.loader,
            optimizer=training.optimizer,
            batch_size=training.batch_size,
            schedule={**SCHEDULE, "active": subject.steps},
            worker_name=f"rank{rank}",
            pytorch_views=False,
            # Its own trace lies in the other folder.
            keep_trace=not subject.bare,
            quiet=True,
            wait=False,
        )
        with session:
            for _ in range(SCHEDULE["wait"] + SCHEDULE["warmup"] + subject.steps + AFTER):
                training()
                session.step()
        turns.append(_steps(training, TURN))
    sessions.append(session)
    together = [step for turn in turns for step in turn]
    truth = {
        **asdict(subject),
        "rank_of_this_file": rank,
        "world_size": dist.get_world_size(),
        "backend": dist.get_backend(),
        "step_ms": round(statistics.median(together), 3),
        "mean_ms": round(statistics.mean(together), 3),
        "turns_ms": [[round(step, 3) for step in turn] for turn in turns],
        "natural_ms": [round(step, 3) for step in natural],
        "planted": said,
        "torch": torch.__version__,
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "seconds": round(time.monotonic() - began, 1),
    }
    for to in (folder, *([out / BARE / subject.name] if subject.bare else [])):
        to.mkdir(parents=True, exist_ok=True)
        (to / f"truth.{rank}.json").write_text(json.dumps(truth, indent=1) + "\n")
    _write_flight_record(folder / f"nccl_trace_rank_{rank}.pickle.gz")
    del training, session
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return float(truth["step_ms"])


def _delay_s(subject: Subject, natural: list[float]) -> float:
    return (subject.share * statistics.median(natural) if subject.delay_ms is None else subject.delay_ms) / 1e3


def _record_bare(training: Training, subject: Subject, out: Path) -> None:
    """As users without the hook record: torch.profiler with a schedule, its trace by rank."""
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if training.device.type == "cuda":
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    wait, warm = 2, 2
    with torch.profiler.profile(
        activities=kinds,
        schedule=torch.profiler.schedule(wait=wait, warmup=warm, active=subject.steps, repeat=1),
        on_trace_ready=torch.profiler.tensorboard_trace_handler(
            str(out / BARE / subject.name), f"rank{training.rank}", use_gzip=True
        ),
        record_shapes=subject.shapes,
    ) as profiler:
        for _ in range(wait + warm + subject.steps):
            training()
            profiler.step()
    # A rank that still writes its trace would be late for the next turn.
    dist.barrier()


def _steps(training: Training, count: int) -> list[float]:
    """Milliseconds of each of so many steps; those of a GPU by events, so that the CPU may run ahead."""
    if training.device.type != "cuda":
        taken = []
        for _ in range(count):
            began = time.perf_counter()
            training()
            taken.append(1e3 * (time.perf_counter() - began))
        return taken
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    events[0].record()
    for event in events[1:]:
        training()
        event.record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) for before, after in pairwise(events)]


def _write_flight_record(path: Path) -> None:
    """torch's own record of the last collectives, where it keeps one."""
    dump = getattr(torch._C._distributed_c10d, "_dump_nccl_trace", None)
    if dump is None or dist.get_backend() != "nccl":
        return
    try:
        path.write_bytes(gzip.compress(bytes(dump(includeCollectives=True, includeStackTraces=False))))
    except (RuntimeError, TypeError, OSError, pickle.PickleError) as error:
        print(f"no flight record: {error}", flush=True)
