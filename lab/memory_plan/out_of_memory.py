"""Fails on purpose for want of GPU memory, and tries what `tb-dlprof oom` advises.

    python -m lab.memory_plan.out_of_memory --out DIRECTORY [--deadline 290] [--models gpt2 ...] [--largest]

Each of `MODELS` is recorded once, with memory. Then, in processes of their own: larger batches fail under a limit of
`set_per_process_memory_fraction`, and the hook's file is compared with the script's own list of parameters, gradients,
states and buffers; each advised change runs under the same limit, and the next smaller one, which should fail. Then a
failure that is caught, another process that has the GPU, fragments, and the step with and without the observer in
turns. DIRECTORY/measured.json has a row for each; a table is printed last. With --largest the largest batch that runs
under each limit is searched instead of all that comes after the failure.

Processes are forked from one that has imported torch and has no context on the GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import statistics
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import nn

import tb_dlprof_plugin
from tb_dlprof_plugin.model.plan_request import PlanRequest
from tb_dlprof_plugin.pages.out_of_memory import oom_page, view_for
from tb_dlprof_plugin.planning.memory.capacity import Capacity
from tb_dlprof_plugin.planning.memory.plan import planner
from tb_dlprof_plugin.planning.memory.smallest_change import room_of
from tb_dlprof_plugin.readers.memory_snapshot.oom_file import files_in, read_oom

from .library_models import LATER_MODELS, LibraryModel, _pictures, _timm, _torchvision
from .record_library_models import Training

_AT_ONCE = 6
_STEPS = 3
_BATCHES, _LIMITS = (2, 4, 3, 6), (0.8, 0.6, 0.7, 0.5)
"""Failing batches as multiples of the recorded one, and of what they would take the share that is left."""
_TURNS = 3
_STARTS = threading.Lock()
_BLOCK = 60


def _gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(n_layer=8, use_cache=False))  # type: ignore[no-any-return]


def _words_alone(n: int, tokens: int) -> tuple[torch.Tensor, ...]:
    """A batch of a GPT-2, whose second argument is no mask."""
    words = torch.randint(10, 50000, (n, tokens))
    return words, words


_KNOWN = ("llama", "convnext_tiny", "r3d_18", "distilbert")
HELD_OUT = (
    LibraryModel("wide_resnet50_2", 16, 224, "momentum", r"layer\d\.\d", _torchvision("wide_resnet50_2"), _pictures),
    LibraryModel("vit_b_16", 16, 224, "adamw", r"encoder\.layers\.\w+", _torchvision("vit_b_16"), _pictures),
    LibraryModel("gpt2", 4, 256, "adamw", r"transformer\.h\.\d+", _gpt2, _words_alone, words=True),
    LibraryModel("resmlp_12", 16, 224, "adam", r"blocks\.\d+", _timm("resmlp_12_224"), _pictures),
)
"""Opened when the rules stood."""
MODELS = (*(model for model in LATER_MODELS if model.name in _KNOWN), *HELD_OUT)


class Step(Training):
    """A training step, of several batches where the plan accumulates."""

    def __init__(self, model: LibraryModel, plan: dict[str, Any]) -> None:
        torch.manual_seed(0)
        super().__init__(model, model.build(), plan, "cuda")
        self.accumulate = plan.get("accumulate", 1)

    def __call__(self) -> None:
        self.optimizer.zero_grad()
        for _ in range(self.accumulate):
            batch = tuple(tensor.to(self.device) for tensor in self.batch)
            with torch.autocast(self.device, self.half or torch.bfloat16, enabled=self.half is not None):
                loss = self.model.loss(self.module, batch)
            loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()


def in_process(work: Callable[..., dict[str, Any]], *arguments: Any, seconds: float = 90) -> dict[str, Any]:
    """What work returns in a process of its own, with the process' exit status."""
    context = multiprocessing.get_context("fork")
    with _STARTS:
        # Another child would hold the pipe open.
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_child, args=(there, work, arguments))
        process.start()
        there.close()
    found: dict[str, Any] = {"error": "no answer"}
    if here.poll(seconds):
        with contextlib.suppress(EOFError):
            found = here.recv()
    process.join(5)
    if process.is_alive():
        process.kill()
    return found | {"status": process.exitcode}


def _child(pipe: Any, work: Callable[..., dict[str, Any]], arguments: Any) -> None:
    try:
        found = work(*arguments)
    except BaseException as error:
        traceback.print_exc()
        found = {"error": f"{type(error).__name__}: {error}"[:300]}
    pipe.send(found)
    pipe.close()


def record(name: str, out: str) -> dict[str, Any]:
    """Record two steps with memory."""
    model = next(one for one in MODELS if one.name == name)
    step = Step(model, {})
    with tb_dlprof_plugin.profile(
        Path(out) / name, step.module, optimizer=step.optimizer, batch_size=model.batch_size,
        schedule={"wait": 2, "warmup": 1, "active": 2, "repeat": 1}, profile_memory=True, keep_trace=False, wait=True,
    ) as prof:  # fmt: skip
        for _ in range(12):
            step()
            prof.step()
    return {
        "peak": torch.cuda.max_memory_allocated(),
        "held": torch.cuda.memory_allocated(),
        "total": torch.cuda.get_device_properties(0).total_memory,
    }


def _begin() -> None:
    start: Any = torch.cuda.init
    start()


def _limited(limit: int) -> None:
    torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.get_device_properties(0).total_memory)


def own_list(step: Step) -> dict[str, int]:
    """Bytes by kind and module, of the script's own objects: of a shared one the first module's."""
    sums: Counter[str] = Counter()
    known: set[int] = set()

    def add(kind: str, path: str, tensor: torch.Tensor | None) -> None:
        if tensor is None or not tensor.is_cuda or tensor.data_ptr() in known:
            return
        known.add(tensor.data_ptr())
        sums[f"{kind} {path}"] += tensor.untyped_storage().nbytes()

    for path, module in step.module.named_modules():
        for parameter in module.parameters(recurse=False):
            add("parameter", path, parameter)
            add("gradient", path, parameter.grad)
            for state in step.optimizer.state.get(parameter, {}).values():
                add("optimizer_state", path, state)
        for buffer in module.buffers(recurse=False):
            add("buffer", path, buffer)
    return dict(sums)


def fail(name: str, out: str, batch: int, limit: int) -> dict[str, Any]:
    """Train until it fails; the hook's file goes to a folder of its own."""
    model = next(one for one in MODELS if one.name == name)
    folder = Path(out) / "failed" / f"{name}-{batch}-{limit}"
    _begin()
    _limited(limit)
    seen: list[tuple[int, dict[str, int], int]] = []
    step = Step(model, {"batch_size": batch})

    def observe(device: int, requested: int, most: int, free: int) -> None:
        seen.append((torch.cuda.memory_allocated(device), own_list(step), requested))

    cuda: Any = torch._C
    cuda._cuda_attach_out_of_memory_observer(observe)
    failed = ""
    try:
        with tb_dlprof_plugin.profile(
            folder, step.module, optimizer=step.optimizer, schedule={"wait": 50, "warmup": 1, "active": 1}, oom=True
        ) as prof:
            for _ in range(_STEPS):
                step()
                prof.step()
    except torch.cuda.OutOfMemoryError as error:
        failed = str(error)[:200]
    if not failed:
        return {"failed": False, "observed": len(seen)}
    files = files_in(folder)
    if not files:
        return {"failed": True, "error": "no file"}
    found = read_oom(files[0])
    allocated, named, requested = seen[-1]
    said = {f"{row.kind} {row.module}": row.requested for row in found.held.rows if row.kind != "unnamed"}
    return {
        "failed": True,
        "file": str(files[0]),
        "file_bytes": files[0].stat().st_size,
        "allocated": allocated,
        "said_allocated": found.held.allocated,
        "requested": requested,
        "said_requested": found.requested,
        "named": sum(named.values()),
        "wrong": sum(abs(said.get(key, 0) - named.get(key, 0)) for key in {*said, *named}),
        "batch_found": found.batch_size,
        "module": found.module,
        "during": found.during,
        "observed": len(seen),
    }


def explain(name: str, out: str, file: str) -> dict[str, Any]:
    """The page of a failure, and the next smaller change of each that is advised."""
    view, run = view_for(Path(out) / name)
    began = time.process_time()
    found = read_oom(Path(file))
    page = oom_page(found, view, run)
    took = time.process_time() - began
    changes = []
    for row in page.changes:
        plan: dict[str, Any] = {"batch_size": row.batch_size, "accumulate": row.accumulate}
        smaller: list[dict[str, Any]] = []
        if row.kind == "batch":
            if row.fails_from and row.fails_from < (found.batch_size or 0):
                smaller.append(plan | {"batch_size": row.fails_from})
            smaller.append(plan | {"batch_size": math.ceil(1.02 * (row.batch_size or 1)) + 1})
        elif row.kind == "accumulate":
            fewer = [k for k in range(1, row.accumulate) if (found.batch_size or 0) % k == 0]
            smaller += [{"batch_size": (found.batch_size or 0) // k, "accumulate": k} for k in fewer[-1:]]
        elif row.kind == "checkpoint":
            plan["checkpoint"] = row.checkpoint
            smaller.append(plan | {"checkpoint": row.checkpoint[:-1]})
        elif row.kind == "precision":
            plan["precision"] = "bf16"
        elif row.kind == "allocator":
            plan["expandable"] = True
        else:
            continue
        changes.append({"kind": row.kind, "plan": plan, "smaller": smaller, "limit": row.limit_bytes})
    likely = None
    if view is not None and (room := room_of(found)) is not None:
        likely = planner(view).largest_batch(PlanRequest(batch_size=found.batch_size), Capacity("", room, room, ""))
    return {
        "kind": page.kind,
        "headline": page.headline,
        "unexplained_percent": page.unexplained_percent,
        "replayed": sum(row.bytes for row in page.activations),
        "unnamed": found.held.of("unnamed"),
        "cannot_say": page.cannot_say,
        "all_kinds": [row.kind for row in page.changes],
        "likely_batch": likely,
        "cpu_s": took,
        "changes": changes,
    }


def run(name: str, plan: dict[str, Any], limit: int) -> dict[str, Any]:
    """Whether a configuration runs under the limit."""
    model = next(one for one in MODELS if one.name == name)
    if plan.get("expandable"):
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    _begin()
    if plan.get("expandable"):
        with contextlib.suppress(AttributeError, RuntimeError):
            torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    _limited(limit)
    try:
        step = Step(model, plan)
        for _ in range(_STEPS):
            step()
        torch.cuda.synchronize()
    except torch.cuda.OutOfMemoryError:
        return {"runs": False}
    return {"runs": True, "reserved": torch.cuda.max_memory_reserved()}


def planned(name: str, out: str, batches: list[int]) -> dict[str, Any]:
    """The smallest limit of batches by the planner: lower end, value and upper end (bytes)."""
    view, _ = view_for(Path(out) / name)
    assert view is not None
    found = {}
    for batch in batches:
        limit = planner(view).plan(PlanRequest(batch_size=batch)).smallest_limit
        found[batch] = [limit.low, limit.value, limit.high]
    return {"limits": found}


def caught(out: str) -> dict[str, Any]:
    """A failure that is caught leaves no file."""
    folder = Path(out) / "caught"
    _begin()
    _limited(2 << 30)
    with tb_dlprof_plugin.explain_oom(folder) as watch:
        with contextlib.suppress(torch.cuda.OutOfMemoryError):
            torch.empty(4 << 30, device="cuda")
        torch.ones(4, device="cuda").sum().item()
        observed = watch._failure is not None
    return {"observed": observed, "files": len(list(folder.glob("*"))) if folder.exists() else 0}


def uncaught(out: str) -> dict[str, Any]:
    """An error that ends the process: its status, its file and its last line are as without."""
    import subprocess
    import sys

    code = (
        "import torch, tb_dlprof_plugin\n"
        f"tb_dlprof_plugin.explain_oom({str(Path(out) / 'uncaught')!r})\n"
        "held = torch.empty(1 << 20, device='cuda')\n"
        "torch.empty(1 << 40, device='cuda')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    files = sorted(path.name for path in (Path(out) / "uncaught").glob("*"))
    kind = oom_page(read_oom(Path(out) / "uncaught"), None).kind if files else None
    return {
        "status_of_script": done.returncode,
        "last": done.stderr.strip().splitlines()[-1][:120],
        "files": files,
        "kind": kind,
    }


def fragments(out: str) -> dict[str, Any]:
    """Every second of many blocks is freed, then a larger one is asked for."""
    folder = Path(out) / "fragments"
    _begin()
    _limited(2 << 30)
    error: BaseException | None = None
    try:
        with tb_dlprof_plugin.explain_oom(folder):
            # Halves of 4 MiB: five blocks share a segment of 20 MiB.
            blocks = [torch.empty(4 << 20, dtype=torch.uint8, device="cuda") for _ in range(500)]
            del blocks[::2]
            torch.empty(400 << 20, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError as failed:
        error = failed
    return {"failed": error is not None, "kind": oom_page(read_oom(folder), None).kind if error else None}


def take_memory(pipe: Any, left: int) -> None:
    """Takes the GPU's memory but so much, until the pipe says to end."""
    free, _ = torch.cuda.mem_get_info()
    held = torch.empty(max(free - left, 1), dtype=torch.uint8, device="cuda")
    pipe.send(held.numel())
    pipe.recv()


def beside(out: str) -> dict[str, Any]:
    """With another process that has nearly all memory."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=take_memory, args=(there, 3 << 30))
    process.start()
    here.recv()
    found = in_process(_beside, out)
    here.send("end")
    process.join(10)
    return found


def _beside(out: str) -> dict[str, Any]:
    folder = Path(out) / "beside"
    failed = False
    try:
        with tb_dlprof_plugin.explain_oom(folder):
            held = [torch.empty(256 << 20, dtype=torch.uint8, device="cuda") for _ in range(40)]
            del held
    except torch.cuda.OutOfMemoryError:
        failed = True
    if not failed:
        return {"failed": False}
    summary = read_oom(folder)
    processes = [(one.own, one.bytes) for one in summary.processes]
    return {"failed": True, "kind": oom_page(summary, None).kind, "processes": processes}


def timed(observed: bool, out: str) -> dict[str, Any]:
    """Median of the step (ms) of a small model, whose CPU sets the pace."""
    if observed:
        tb_dlprof_plugin.explain_oom(Path(out) / "timed")
    model = next(one for one in MODELS if one.name == "resmlp_12")
    step = Step(model, {"batch_size": 8})
    for _ in range(20):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(_BLOCK):
        began = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - began))
    return {"ms": statistics.median(times)}


class Lab:
    """All measurements, until a time."""

    def __init__(self, out: Path, names: list[str], until_s: float, largest: bool) -> None:
        self.out, self.names, self.until_s, self.largest = out, names, until_s, largest
        self.pool = ThreadPoolExecutor(_AT_ONCE)
        self.rows: dict[str, Any] = {"failures": [], "other": {}, "left_out": 0}

    @property
    def left_s(self) -> float:
        return self.until_s - time.monotonic()

    def measure(self) -> None:
        """Everything, and the results on the way."""
        out = str(self.out)
        recorded = dict(
            zip(self.names, self.pool.map(lambda name: in_process(record, name, out), self.names), strict=True)
        )
        self.rows["recorded"] = recorded
        self.save()
        cases = []
        # All models in turns: where time ends, each has had some.
        for factor, share in zip(_BATCHES, _LIMITS, strict=True):
            for name, found in recorded.items():
                if "peak" not in found:
                    continue
                model = next(one for one in MODELS if one.name == name)
                batch = factor * model.batch_size
                limit = int(share * (found["held"] + factor * (found["peak"] - found["held"])))
                cases.append((name, batch, max(limit, int(1.15 * found["peak"]))))
        list(self.pool.map(lambda case: self.case(*case), cases))
        self.save()
        if self.largest:
            return
        if self.left_s > 60:
            self.rows["other"] |= {"caught": in_process(caught, out), "fragments": in_process(fragments, out)}
        if self.left_s > 50:
            self.rows["other"]["uncaught"] = uncaught(out)
            self.rows["other"]["beside"] = beside(out)
        self.save()
        turns: dict[bool, list[float]] = defaultdict(list)
        for turn in range(2 * _TURNS):
            if self.left_s > 15:
                observed = turn % 4 in (1, 2)
                turns[observed].append(in_process(timed, observed, out).get("ms", math.nan))
        self.rows["other"]["step_ms"] = {"with": turns[True], "without": turns[False]}
        self.save()

    def case(self, name: str, batch: int, limit: int) -> None:
        """One failure and what is advised."""
        held_out = name in {model.name for model in HELD_OUT}
        row: dict[str, Any] = {"model": name, "held_out": held_out, "batch": batch, "limit": limit}
        self.rows["failures"].append(row)
        row |= in_process(fail, name, str(self.out), batch, limit)
        if "file" not in row:
            return
        row["page"] = page = in_process(explain, name, str(self.out), row["file"])
        if self.largest:
            row["largest"] = self.largest_batch(name, page, batch, limit)
            return
        for change in page.get("changes", ()):
            if self.left_s < 75:
                self.rows["left_out"] += 1
                continue
            change["found"] = in_process(run, name, change["plan"], limit)
            change["found_smaller"] = [in_process(run, name, plan, limit) for plan in change["smaller"]]

    def largest_batch(self, name: str, page: dict[str, Any], failed: int, limit: int) -> dict[str, Any]:
        """The largest batch that runs and the next that does not, by bisecting, with what the planner says."""
        advised = next((one for one in page.get("changes", ()) if one["kind"] == "batch"), None)
        works, fails = 0, failed
        tried: dict[int, bool] = {}
        ahead = (
            [] if advised is None else [advised["plan"]["batch_size"], *(x["batch_size"] for x in advised["smaller"])]
        )
        if page.get("likely_batch"):
            ahead.append(page["likely_batch"])
        while fails - works > max(1, works // 100) and self.left_s > 12:
            between = [one for one in ahead if works < one < fails]
            batch = between[0] if between else (works + fails) // 2
            tried[batch] = bool(in_process(run, name, {"batch_size": batch}, limit).get("runs"))
            works, fails = (batch, fails) if tried[batch] else (works, batch)
        found = in_process(planned, name, str(self.out), [works, fails] if works else [fails])
        return {"works": works, "fails": fails, "tried": tried, "likely": page.get("likely_batch")} | found

    def save(self) -> None:
        """Write the results."""
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "measured.json").write_text(json.dumps(self.rows, indent=1, default=str))


def print_tables(rows: dict[str, Any]) -> None:
    """What was measured, models of the rules apart from those that had no part in them."""
    for held_out in (False, True):
        of = [row for row in rows["failures"] if row["held_out"] == held_out]
        failed = [row for row in of if "file" in row]
        print(f"\n{'held out' if held_out else 'open'}: {len(of)} configurations, {len(failed)} failed and explained")
        for row in of:
            page = row.get("page", {})
            kinds = ", ".join(page.get("all_kinds", ())) or page.get("cannot_say", row.get("error", "?"))[:80]
            named = (
                f"wrong {row['wrong']:,} of {row['named']:,} named" if "named" in row else f"failed {row.get('failed')}"
            )
            total = f", total off {row['said_allocated'] - row['allocated']:,}" if "named" in row else ""
            print(
                f"  {row['model']:16} {row['batch']:4} under {row['limit'] / 1e9:5.2f} GB: {named}{total}, batch "
                f"{row.get('batch_found')}, {row.get('during')} {row.get('module')}; {page.get('kind')}, unexplained "
                f"{page.get('unexplained_percent')} %: {kinds}"
            )
        for row in (one for one in of if "largest" in one):
            found = row["largest"]
            shares = {
                batch: [round(one / row["limit"], 3) for one in ends] for batch, ends in found.get("limits", {}).items()
            }
            advised = [one["plan"]["batch_size"] for one in row["page"]["changes"] if one["kind"] == "batch"]
            print(
                f"  {row['model']:16} {row['batch']:4}: {found['works']} runs, {found['fails']} does not; advised "
                f"{advised}, likely {found['likely']}; forecast over limit {shares}"
            )
        tried: dict[str, list[bool]] = defaultdict(list)
        smaller: dict[str, list[bool]] = defaultdict(list)
        for change in (one for row in failed for one in row.get("page", {}).get("changes", ()) if "found" in one):
            tried[change["kind"]].append(bool(change["found"].get("runs")))
            for number, found in enumerate(change["found_smaller"]):
                if "runs" in found:
                    smaller[f"{change['kind']} {number}"].append(not found["runs"])
        for kind, ran in tried.items():
            print(f"  {kind:12} {sum(ran)} of {len(ran)} advised ran")
        for kind, failures in smaller.items():
            print(f"  {kind:12} {sum(failures)} of {len(failures)} next smaller failed")
        every = [one for ran in tried.values() for one in ran]
        fewer = [one for failures in smaller.values() for one in failures]
        print(f"  all: {sum(every)} of {len(every)} ran; {sum(fewer)} of {len(fewer)} next smaller failed")
    print("\nother:", json.dumps(rows["other"], indent=1, default=str))
    print("left out for want of time:", rows["left_out"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--deadline", type=float, default=290.0, help="seconds")
    parser.add_argument("--models", nargs="*", default=[model.name for model in MODELS])
    parser.add_argument("--largest", action="store_true", help="search the largest batch under each limit")
    given = parser.parse_args()
    began = time.monotonic()
    # Whether CUDA is there is asked by NVML: a forked child cannot use what its parent has initialised.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    with contextlib.suppress(ImportError):
        # Once, for all processes.
        import timm
        import torchvision
        import transformers
        from transformers import DistilBertForMaskedLM, GPT2LMHeadModel, LlamaForCausalLM

        del timm, torchvision, transformers, DistilBertForMaskedLM, GPT2LMHeadModel, LlamaForCausalLM
    os.environ.setdefault("TB_DLPROF_QUIET", "1")
    lab = Lab(given.out.resolve(), given.models, began + given.deadline, given.largest)
    lab.measure()
    print_tables(lab.rows)
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
