"""Fails for want of memory in ways that are not a plain forward pass, and times what watches for it.

    python -m lab.memory_plan.out_of_memory_cases --out DIRECTORY [--deadline 110] [--gigabytes 1]
    python -m lab.memory_plan.out_of_memory_cases --out DIRECTORY --turns-alone [--deadline 45]
    python -m lab.memory_plan.out_of_memory_cases --out DIRECTORY --ranks-alone    # two GPUs

Each way fails in a process of its own without and with the hook, which must change no error: an allocation in the
backward pass, in compiled code, while a CUDA graph is captured, with expandable segments, with stacks recorded; one of
pinned memory of the host, which the hook leaves alone; one of two ranks, on one GPU or two. Then a snapshot with the
history of a training is read at its size and made larger by `large_snapshot`. DIRECTORY/cases.json has all of it,
DIRECTORY/history.pickle.gz the snapshot. --turns-alone times steps with and without the hook in turns in one process,
with nothing else on the machine.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import nn

import tb_dlprof_plugin
from tb_dlprof_plugin.capture.out_of_memory import OutOfMemoryWatch
from tb_dlprof_plugin.pages.out_of_memory import oom_page
from tb_dlprof_plugin.readers.memory_snapshot.oom_file import files_in, read_oom
from tb_dlprof_plugin.trial.statistics import gain

from .out_of_memory import _begin, _limited, in_process

_AT_ONCE = 6
_GIB = 1 << 30
_HISTORY_S, _ENTRIES = 15.0, 500_000
_QUADS, _STEPS = 100, 6
_DEVICE = "cuda"

RANKS = """
import sys
import torch
import torch.distributed as dist
import tb_dlprof_plugin

two = torch.cuda.device_count() > 1
dist.init_process_group("nccl" if two else "gloo")
torch.cuda.set_device(dist.get_rank() if two else 0)
model = torch.nn.Linear(4096, 4096).cuda()
if sys.argv[2] == "with":
    tb_dlprof_plugin.explain_oom(sys.argv[1], model)
for step in range(4):
    model(torch.randn(8, 4096, device="cuda")).sum().backward()
    dist.all_reduce(torch.ones(1, device="cuda" if two else "cpu"))
    if dist.get_rank() == 1 and step == 2:
        torch.empty(1 << 43, dtype=torch.uint8, device="cuda")
"""


class Block(nn.Module):
    """Of a transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 8, batch_first=True)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of (batch, words, width)."""
        inner = self.norm(x)
        x = x + self.attention(inner, inner, inner, need_weights=False)[0]
        return x + self.down(torch.nn.functional.gelu(self.up(x)))  # type: ignore[no-any-return]


class Training:
    """Steps of a small transformer."""

    def __init__(self, width: int = 256, blocks: int = 6, batch: int = 8, words: int = 64) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(*(Block(width) for _ in range(blocks))).to(_DEVICE)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), foreach=True)
        self.inputs = torch.randn(batch, words, width, device=_DEVICE)

    def step(self) -> None:
        """One of them."""
        self.optimizer.zero_grad()
        loss = self.model(self.inputs).square().mean()
        loss.backward()
        self.optimizer.step()

    def until_it_fails(self) -> None:
        """With ever larger batches."""
        for _ in range(20):
            self.step()
            self.inputs = self.inputs.repeat(2, 1, 1)


def forward(watched: Callable[[Any, Any], Any]) -> None:
    """The plain case."""
    training = Training()
    with watched(training.model, training.optimizer):
        training.until_it_fails()


class Grows(torch.autograd.Function):
    """Needs memory in the backward pass alone."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        """The same values."""
        return x.clone()

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> torch.Tensor:
        """Fails."""
        torch.empty(64 * _GIB, dtype=torch.uint8, device=_DEVICE)
        return gradients[0]


def backward(watched: Callable[[Any, Any], Any]) -> None:
    """In the backward pass, whose thread has frames of Python here."""
    training = Training()
    with watched(training.model, training.optimizer):
        training.step()
        Grows.apply(training.model(training.inputs)).sum().backward()  # type: ignore[no-untyped-call]


def compiled(watched: Callable[[Any, Any], Any]) -> None:
    """In code of torch.compile."""
    training = Training(blocks=2)
    training.model.compile(dynamic=True)
    with watched(training.model, training.optimizer):
        training.until_it_fails()


def captured(watched: Callable[[Any, Any], Any]) -> None:
    """While a graph is captured."""
    model, x = nn.Linear(1024, 1024).cuda(), torch.randn(64, 1024, device=_DEVICE)
    for _ in range(3):
        model(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with watched(model, None), torch.cuda.graph(graph):
        y = model(x)
        torch.empty(64 * _GIB, dtype=torch.uint8, device=_DEVICE)
        del y


def pinned(watched: Callable[[Any, Any], Any]) -> None:
    """Memory of the host, which the driver refuses."""
    model = nn.Linear(1024, 1024).cuda()
    with watched(model, None):
        torch.empty(1 << 46, dtype=torch.uint8, pin_memory=True)


CASES: dict[str, tuple[Callable[[Any], None], dict[str, Any]]] = {
    "forward": (forward, {}),
    "forward, with stacks": (forward, {"stacks": True}),
    "expandable segments": (forward, {"settings": "expandable_segments:True"}),
    "backward": (backward, {}),
    "compiled": (compiled, {}),
    "captured": (captured, {}),
    "pinned": (pinned, {}),
}


def fail(name: str, out: str, hook: bool) -> dict[str, Any]:
    """One failure: its error, what the process can do then, and what the hook says of it."""
    work, options = CASES[name]
    folder = Path(out) / name.replace(", ", "_").replace(" ", "_")
    if "settings" in options:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = options["settings"]
    _begin()
    if "settings" in options:
        torch.cuda.memory._set_allocator_settings(options["settings"])
    _limited(3 * _GIB)
    in_use: list[int] = []

    def count(*_: int) -> None:
        in_use.append(torch.cuda.memory_allocated())

    if hook:
        observe: Any = torch._C
        observe._cuda_attach_out_of_memory_observer(count)
    seconds = [math.nan]

    def watched(model: Any, optimizer: Any) -> Any:
        if not hook:
            return OutOfMemoryWatch(None)
        return tb_dlprof_plugin.explain_oom(folder, model, optimizer, stacks=options.get("stacks", False))

    found: dict[str, Any] = {}
    began = time.perf_counter()
    try:
        work(watched)
    except Exception as error:
        seconds[0] = time.perf_counter() - began
        chain: list[str] = []
        one: BaseException | None = error
        while one is not None and len(chain) < 6:
            chain.append(type(one).__name__)
            one = one.__cause__ or one.__context__
        found |= {"error": str(error).splitlines()[0][:100], "chain": chain}
    found["seconds"] = round(seconds[0], 2)
    try:
        found["goes_on"] = torch.ones(4, device=_DEVICE).sum().item() == 4
    except Exception as error:
        found["goes_on"] = f"{type(error).__name__}: {error}".splitlines()[0][:100]
    if hook:
        found["files"] = sorted((path.suffix, path.stat().st_size) for path in folder.glob("*"))
        if files_in(folder):
            began = time.process_time()
            summary = read_oom(folder)
            page = oom_page(summary, None)
            found |= {
                "kind": page.kind, "during": page.during, "module": page.module, "batch": page.batch_size,
                "allocated_off": summary.held.allocated - in_use[-1], "expandable": summary.held.expandable,
                "rows": {f"{row.kind} {row.module}": row.bytes for row in page.rows[:3]},
                "unexplained_percent": page.unexplained_percent, "stacks": len(page.stacks),
                "stack": page.stacks[0].stack[:2] if page.stacks else [], "where": page.where[:1],
            }  # fmt: skip
            if options.get("stacks"):
                # torch's own snapshot next to it has the history.
                file = next(folder.glob("*.pickle"))
                read = read_oom(file)
                found["of_snapshot"] = {
                    "bytes": file.stat().st_size, "requested": read.requested, "where": read.where[:1],
                    "stacks": len(read.held.stacks), "points": len(read.over_time),
                }  # fmt: skip
    return found


def ranks(out: str, hook: str) -> dict[str, Any]:
    """One of two ranks on one GPU fails."""
    folder = Path(out) / f"ranks_{hook}"
    folder.mkdir(parents=True)
    script = folder / "script.py"
    script.write_text(RANKS)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *launch, str(script), str(folder / "files"), hook],
        capture_output=True, text=True, check=False, timeout=90, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    lines = done.stderr.splitlines()
    return {
        "status": done.returncode,
        "files": sorted(path.name for path in (folder / "files").glob("*")),
        "said": [line[:150] for line in lines if "OutOfMemoryError" in line or "tb-dlprof oom" in line][:4],
        "exitcodes": [line.strip()[:60] for line in lines if "exitcode" in line][:3],
        "devices": sorted(
            (summary.rank, summary.held.device, summary.held.allocated)
            for summary in map(read_oom, files_in(folder / "files"))
        ),
    }


def history(out: str) -> dict[str, Any]:
    """A snapshot of torch with the history of a training; its size, and seconds to take and to write it."""
    _begin()
    record: Any = torch.cuda.memory._record_memory_history
    record(enabled="all", context="all", stacks="python", max_entries=_ENTRIES)
    training = Training()
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < _HISTORY_S:
        training.step()
        steps += 1
    taken = time.perf_counter()
    take: Any = torch.cuda.memory._snapshot
    snapshot = take()
    written = time.perf_counter()
    path = Path(out) / "history.pickle"
    with path.open("wb") as file:
        pickle.dump(snapshot, file, protocol=4)
    wrote = time.perf_counter() - written
    with path.open("rb") as source, gzip.open(f"{path}.gz", "wb", 6) as packed:
        shutil.copyfileobj(source, packed)
    return {
        "bytes": path.stat().st_size, "packed": Path(f"{path}.gz").stat().st_size, "steps": steps,
        "entries": len(snapshot["device_traces"][0]), "keys": list(snapshot["device_traces"][0][-1]),
        "snapshot_s": round(written - taken, 1), "dump_s": round(wrote, 1),
        "allocated": torch.cuda.memory_allocated(),
    }  # fmt: skip


def reading(out: str, gigabytes: float) -> dict[str, Any]:
    """What reading the snapshot takes, at its size and made larger."""
    command = [sys.executable, "-m", "lab.memory_plan.large_snapshot"]
    small, large = Path(out) / "history.pickle", Path(out) / "large.pickle"
    said = [subprocess.run([*command, str(small)], capture_output=True, text=True, check=False).stdout.strip()]
    if gigabytes:
        subprocess.run([*command, str(large), "--gigabytes", str(gigabytes), "--like", str(small)], check=True)
        said.append(subprocess.run([*command, str(large)], capture_output=True, text=True, check=False).stdout.strip())
        large.unlink()
    small.unlink()
    return {"said": said}


def turns(out: str, width: int, blocks: int, batch: int, stacks: bool, until_s: float) -> dict[str, Any]:
    """Steps without, with, with and without the hook, again and again: percent that they take longer with it.

    torch has no way to detach its observer: it is attached in all of them, and is not called.
    """
    training = Training(width, blocks, batch)
    watch = OutOfMemoryWatch(Path(out) / "turns", training.model, training.optimizer, stacks=stacks)
    watch.begin()
    for _ in range(10):
        training.step()
    watch.end()
    ratios: list[float] = []
    steps_ms: list[float] = []
    while len(ratios) < _QUADS and time.monotonic() < until_s:
        times = []
        for hook in (False, True, True, False):
            if hook:
                watch.begin()
            training.step()
            _wait()
            began = time.perf_counter()
            for _ in range(_STEPS):
                training.step()
            _wait()
            times.append(time.perf_counter() - began)
            watch.end()
        ratios.append(math.log((times[1] + times[2]) / (times[0] + times[3])))
        steps_ms += [1e3 * times[0] / _STEPS, 1e3 * times[3] / _STEPS]
    found = gain(ratios)
    return {
        "step_ms": round(sorted(steps_ms)[len(steps_ms) // 2], 3), "quads": found.quads,
        "longer_percent": round(-found.percent, 3), "interval": [round(-found.high, 3), round(-found.low, 3)],
    }  # fmt: skip


def _wait() -> None:
    if _DEVICE == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--deadline", type=float, default=110.0, help="seconds")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of the larger snapshot; 0 for none")
    parser.add_argument("--turns-alone", action="store_true", help="steps with and without the hook, and nothing else")
    parser.add_argument("--ranks-alone", action="store_true", help="one of two ranks, and nothing else")
    given = parser.parse_args()
    began = time.monotonic()
    out = str(given.out.resolve())
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    os.environ.setdefault("TB_DLPROF_QUIET", "1")
    rows: dict[str, Any] = {"torch": torch.__version__, "cases": {}}

    def save() -> None:
        name = "turns.json" if given.turns_alone else "cases.json"
        (given.out / name).write_text(json.dumps(rows, indent=1, default=str))

    if given.turns_alone:
        ends = began + given.deadline
        # The CPU sets the pace of the first, the GPU that of the second.
        for name, width, blocks, batch, stacks, share in (
            ("small", 256, 2, 8, False, 0.4),
            ("large", 1024, 2, 64, False, 0.65),
            ("small, stacks", 256, 2, 8, True, 1.0),
        ):  # fmt: skip
            now = time.monotonic()
            found = in_process(turns, out, width, blocks, batch, stacks, now + share * (ends - now))
            rows[f"turns {name}"] = found
            print(name, found, flush=True)
            save()
        return
    if given.ranks_alone:
        print(json.dumps({hook: ranks(out, hook) for hook in ("with", "without")}, indent=1))
        return

    with ThreadPoolExecutor(1) as beside, ThreadPoolExecutor(_AT_ONCE) as pool:
        read = pool.submit(in_process, history, out)
        both = {hook: pool.submit(ranks, out, hook) for hook in ("with", "without")}
        started = {
            (name, hook): pool.submit(in_process, fail, name, out, hook) for name in CASES for hook in (True, False)
        }
        rows["history"] = read.result()
        save()
        rest = beside.submit(reading, out, given.gigabytes)
        for (name, hook), future in started.items():
            rows["cases"].setdefault(name, {})["with" if hook else "without"] = future.result()
            save()
        for ranked, future in both.items():
            try:
                rows[f"ranks {ranked}"] = future.result()
            except (OSError, subprocess.SubprocessError) as error:
                rows[f"ranks {ranked}"] = {"error": str(error)[:300]}
        save()
        rows["reading"] = rest.result()
        save()
    print(json.dumps(rows, indent=1, default=str))
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
