"""Measures what faults of torch.compile cost: a model with one and without, in turns, each in a process of its own.

    python lab/compiled/pairs.py record --out DIRECTORY [--seconds 500] [--only gpt_small.training,mlp.training]  # GPU
    python lab/compiled/pairs.py record --out DIRECTORY --tiny                                                  # CPU
    python lab/compiled/pairs.py flops DIRECTORY
    python lab/compiled/pairs.py report DIRECTORY [--only gpt_small.training]
    python lab/compiled/pairs.py together --out DIRECTORY [--seconds 400]                                       # GPU

A family is a model, a batch and a pass; its variants are ways to run it: eager, compiled, as CUDA graphs, with one of
``PLANTED``. Each variant is a process with the hook, so that what a recording says of compilations is of this variant
alone. All of them compile at once and then wait. Then one family after the other is timed without the profiler, its
variants in turns while all others wait, and recorded. ``report`` sets what advice says of each recording against the
difference that was timed. Graphs that are captured by hand are recorded with their capture, too. Files are packed as
tar, each at most 15 MiB; what was not done in time is named.

Processes differ in the speed of their cores, by up to a third on a shared machine. ``together`` times the variants of a
family in one process, in many short turns, and so tells differences of a few percent; it records nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import importlib.util
import json
import math
import os
import selectors
import shutil
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "lab")]

FAMILIES = {
    "gpt_small.training": "default eager graphs item cuts breaks mutated cpu_tensor dynamic guard whole blocks hand "
    "graphed",
    "mlp.training": "default eager graphs cuts breaks mutated hand",
    "gpt_large.training": "default eager graphs cuts mutated",
    "gpt.inference": "default eager graphs cuts breaks mutated",
    "unet.training": "default eager graphs graphed",
    "bert.training": "default eager graphs",
    "resnet.training": "default eager breaks",
    "gpt.training": "default item autotune",
}
"""By family its variants; ``default`` first, whose kernels the others find in Triton's cache."""
TINY = {"mlp.training": "default eager cuts guard", "gpt.inference": "default item breaks"}
PLANTED = {
    "item": "a tensor is read in Python in the middle of the model",
    "cuts": "two breaks between blocks, at which the function goes on compiled",
    "breaks": "a break in the loop over the blocks, so that only each block is compiled",
    "mutated": "the model writes into its input, so that CUDA graphs are skipped",
    "cpu_tensor": "a tensor of the model lies on the CPU, so that CUDA graphs are skipped",
    "dynamic": "dynamic=True, called with one size",
    "guard": "an attribute that is a string changes twice at the start, and once in a recorded step",
}
WITHOUT = dict.fromkeys(("item", "cuts", "breaks", "dynamic", "guard", "eager"), "default")
WITHOUT |= dict.fromkeys(("mutated", "cpu_tensor"), "graphs") | {"blocks": "whole"}
WITHOUT_TOGETHER = WITHOUT | {"blocks": "default", "graphs": "default"}
"""By variant the one without the fault."""
MODES = {"graphs": "reduce-overhead", "mutated": "reduce-overhead", "cpu_tensor": "reduce-overhead",
         "autotune": "max-autotune"}  # fmt: skip
RULES = {"item": "graph_break", "cuts": "graph_break", "breaks": "graph_break", "mutated": "cudagraphs_skipped",
         "cpu_tensor": "cudagraphs_skipped", "dynamic": "dynamic_shapes", "guard": "recompiles",
         "blocks": "regional_compilation"}  # fmt: skip
TRACED = ("unet.training", "bert.training", "resnet.training", "mlp.training")
"""Families whose compiled variants leave the logs of TORCH_TRACE, and a trace without the hook."""
TOGETHER = {
    "gpt_small.training": "default eager graphs cuts item breaks blocks mutated cpu_tensor dynamic",
    "mlp.training": "default eager graphs cuts breaks mutated dynamic",
    "gpt_large.training": "default eager graphs cuts mutated dynamic",
    "gpt.inference": "default eager graphs cuts breaks mutated",
    "unet.training": "default eager graphs",
    "bert.training": "default eager graphs",
    "resnet.training": "default eager graphs cuts breaks",
}
SHORT_TURNS, SHORT_TURN_S = 30, 0.06
TURNS = 6
TURN_S = 0.15
READY_SHARE = 0.6
"""Of all the time, that for compiling."""
AT_ONCE = 16


# ---- one variant, in a process of its own


def build(family: str, variant: str, torch: Any, tiny: bool) -> tuple[Any, tuple[Any, ...]]:
    """The model and its inputs, on the CPU."""
    from compiled import record

    nn, functional = torch.nn, torch.nn.functional
    name = family.split(".")[0]

    class Chain(nn.Module):  # type: ignore[misc, name-defined]
        """Parts one after the other, with one of ``PLANTED``."""

        def __init__(self, first: Any, blocks: Any, last: Any) -> None:
            super().__init__()
            self.first, self.blocks, self.last = first, nn.ModuleList(blocks), last
            self.kind = "once"
            self.on_cpu = torch.tensor(1.0)

        def forward(self, x: Any) -> Any:
            if variant == "mutated":
                x.clamp_(min=-1000)
            h = self.first(x)
            if variant == "cpu_tensor":
                h = h * self.on_cpu
            if variant == "guard":
                h = h * {"once": 1.0, "twice": 1.1, "thrice": 1.2, "again": 1.3}[self.kind]
            # A function cannot go on compiled behind a break in a loop: so there are three.
            third = max(len(self.blocks) // 3, 1)
            for block in self.blocks[:third]:
                h = block(h)
            if variant == "cuts":
                torch._dynamo.graph_break()
            if variant == "item" and h.sum().item() > 1e9:
                h = h / 2
            for block in self.blocks[third : 2 * third]:
                if variant == "breaks":
                    torch._dynamo.graph_break()
                h = block(h)
            if variant == "cuts":
                torch._dynamo.graph_break()
            for block in self.blocks[2 * third :]:
                h = block(h)
            return self.last(h)

    class Basic(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inside: int, outside: int) -> None:
            super().__init__()
            step = 1 if inside == outside else 2
            self.c1 = nn.Conv2d(inside, outside, 3, step, 1, bias=False)
            self.c2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
            self.n1, self.n2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
            self.skip = nn.Identity() if step == 1 else nn.Conv2d(inside, outside, 1, step)

        def forward(self, x: Any) -> Any:
            return functional.relu(self.skip(x) + self.n2(self.c2(functional.relu(self.n1(self.c1(x))))))

    if name.startswith("gpt"):
        model, (tokens,) = record.gpt(torch, tiny)
        sizes = {"gpt_small": (4, 128), "gpt_large": (16, 512)}
        if name in sizes and not tiny:
            tokens = torch.randint(0, 8000, sizes[name])
        return Chain(model.embedding, model.blocks, model.head), (tokens,)
    if name == "mlp":
        width, depth, batch = (16, 2, 4) if tiny else (512, 8, 256)
        blocks = [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(depth)]
        return Chain(nn.Linear(width, width), blocks, nn.Linear(width, width)), (torch.randn(batch, width),)
    if name == "resnet":
        widths = [64, 64, 64, 128, 128, 256, 256]
        blocks = [Basic(inside, outside) for inside, outside in pairwise(widths)]
        stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU())
        last = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 100))
        return Chain(stem, blocks, last), (torch.randn(32, 3, 128, 128),)
    return record.build(name, torch, tiny)


class Worker:
    """A variant that is compiled, and then does what it reads."""

    def __init__(self, family: str, variant: str, out: Path, tiny: bool) -> None:
        import torch

        import tb_dlprof_plugin

        self.torch, self.out, self.family, self.variant = torch, out, family, variant
        self.training = family.endswith(".training")
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.on_gpu = self.device.type == "cuda"
        torch.manual_seed(0)
        model, inputs = build(family, variant, torch, tiny)
        self.model = model.to(self.device).train(self.training)
        self.inputs = tuple(one.to(self.device) for one in inputs)
        self.by_hand = variant in ("hand", "graphed")
        parameters = self.model.parameters()
        self.optimizer = (
            torch.optim.AdamW(parameters, lr=1e-4, fused=self.on_gpu, capturable=self.on_gpu and variant == "hand")
            if self.training
            else None
        )
        # The hook comes before torch.compile.
        self.session = tb_dlprof_plugin.profile(
            out / "run", model=self.model, schedule=(10, 2, 3), wait=False, quiet=True
        )
        self.called = self.model
        mode = MODES.get(variant, "default")
        if variant == "blocks":
            for block in self.model.blocks:
                block.compile()
        elif variant != "eager" and not self.by_hand:
            self.called = torch.compile(self.model, mode=mode, dynamic=True if variant == "dynamic" else None)
        self.run = self.step
        self.result: dict[str, Any] = {
            "family": family, "variant": variant, "torch": torch.__version__,
            "gpu": torch.cuda.get_device_name() if self.on_gpu else "none",
        }  # fmt: skip

    def prepare(self) -> None:
        """Compile, or capture by hand."""
        began, cpu = time.perf_counter(), time.process_time()
        if self.by_hand and self.on_gpu:
            self.capture()
        for number in range(6):
            if self.variant == "guard":
                self.model.kind = ("once", "twice", "thrice")[number // 2]
            self.run()
        self.synchronize()
        self.result |= {"start_s": time.perf_counter() - began, "start_cpu_s": time.process_time() - cpu}
        if self.on_gpu and not self.by_hand:
            self.torch.cuda.empty_cache()

    def step(self) -> None:
        """One step."""
        torch = self.torch
        with torch.autocast(self.device.type, torch.bfloat16, cache_enabled=not self.by_hand):
            with torch.set_grad_enabled(self.training):
                result = self.called(*self.inputs)
            tensor = result if isinstance(result, torch.Tensor) else result[0]
            loss = tensor.float().square().mean()
        if self.optimizer is not None:
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=self.variant != "hand")

    def capture(self) -> None:
        """Capture by hand, once in a trace without the hook, once in a recording of the hook, once for the timing."""
        torch = self.torch
        import tb_dlprof_plugin

        def once() -> Any:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.step()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.step()
            return graph.replay

        def graphed() -> Any:
            with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
                self.called = torch.cuda.make_graphed_callables(self.model, self.inputs)
            return self.step

        forward = self.model.forward
        make = once if self.variant == "hand" else graphed

        def traced() -> None:
            with torch.profiler.profile(record_shapes=True) as profiler:
                run = make()
                for number in range(3):
                    with torch.profiler.record_function(f"ProfilerStep#{number}"):
                        run()
            self.synchronize()
            profiler.export_chrome_trace(str(self.out / "capture.pt.trace.json.gz"))

        def recorded() -> None:
            session = tb_dlprof_plugin.profile(
                self.out / "early", model=self.model, schedule=(0, 0, 5), wait=True, quiet=True
            )
            with session:
                self.step()
                session.step()
                run = make()
                session.step()
                for _ in range(3):
                    run()
                    session.step()
            self.synchronize()

        for action in (traced, recorded):
            try:
                action()
            except Exception as error:
                self.result[f"{action.__name__}_failed"] = repr(error)
            # make_graphed_callables of a module replaces its forward.
            self.model.forward, self.called = forward, self.model
        self.run = make()

    def synchronize(self) -> float:
        """The time, once the GPU is done."""
        if self.on_gpu:
            self.torch.cuda.synchronize()
        return time.perf_counter()

    def time(self, seconds: float = TURN_S) -> float:
        """Milliseconds a step of a turn of at least so many seconds, without the profiler."""
        began = self.synchronize()
        self.run()
        number = max(4, min(200, round(seconds / (self.synchronize() - began))))
        began = self.synchronize()
        for _ in range(number):
            self.run()
        return (self.synchronize() - began) * 1000 / number

    def record(self) -> dict[str, Any]:
        """Record with the hook; the wall time of each step (ms), and compilations while it ran."""
        steps, compiled = [], self.compilations()
        with self.session:
            until = time.perf_counter() + 1.0
            for number in range(60):
                if number > 20 and time.perf_counter() > until:
                    break
                if self.variant == "guard" and number == 13:
                    self.model.kind = "again"
                began = time.perf_counter()
                self.run()
                self.session.step()
                steps.append((time.perf_counter() - began) * 1000)
        return {"recorded_steps_ms": steps, "compiled_while_recorded": self.compilations() - compiled}

    def trace(self) -> None:
        """A trace of torch.profiler alone."""
        torch = self.torch
        with torch.profiler.profile(record_shapes=True) as profiler:
            for number in range(3):
                with torch.profiler.record_function(f"ProfilerStep#{number}"):
                    self.run()
            self.synchronize()
        profiler.export_chrome_trace(str(self.out / "bare.pt.trace.json.gz"))

    def compilations(self) -> int:
        """Of this process, as far as Dynamo counts."""
        from torch._dynamo.utils import counters

        return int(counters["stats"].get("unique_graphs", 0))


def work(family: str, variant: str, out: Path, tiny: bool) -> None:
    """Prepare the variant, say so, and do what stdin says, each line with a line of JSON as answer."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = Worker(family, variant, out, tiny)
    worker.prepare()
    answers.write('"ready"\n')
    for line in sys.stdin:
        answer: Any = None
        if line.strip() == "time":
            answer = worker.time()
        elif line.strip() == "record":
            answer = worker.record()
            worker.result |= answer
        elif line.strip() == "trace":
            worker.trace()
        else:
            worker.result["turns_ms"] = json.loads(line)
            (out / "result.json").write_text(json.dumps(worker.result))
        answers.write(json.dumps(answer) + "\n")


def work_together(family: str, out: Path, tiny: bool) -> None:
    """Time the variants of a family in one process, in turns, while no other process does so."""
    workers = {}
    for variant in (TINY if tiny else TOGETHER)[family].split():
        # Dynamo keeps what it compiled with the code: each variant has code of its own.
        spec = importlib.util.spec_from_file_location(f"pairs_of_{variant}", __file__)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        try:
            worker = module.Worker(family, variant, out / "runs" / variant, tiny)
            worker.prepare()
        except Exception as error:
            print(f"{variant}: {error!r}", file=sys.stderr)
            continue
        workers[variant] = worker
    turns: dict[str, list[float]] = {variant: [] for variant in workers}
    with (out.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for turn in range(SHORT_TURNS):
            for variant in list(workers) if turn % 2 == 0 else list(workers)[::-1]:
                turns[variant].append(workers[variant].time(SHORT_TURN_S))
    (out / "turns.json").write_text(json.dumps(turns))


def together(out: Path, tiny: bool, seconds: float) -> None:
    """Time all families, each in a process, and print the table."""
    until = time.monotonic() + seconds
    processes = []
    for family in TINY if tiny else TOGETHER:
        folder = out / family
        folder.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": str(out / "cache"),
            "TRITON_CACHE_DIR": str(out / "cache" / "triton"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "OMP_NUM_THREADS": "2",
        }
        command = [sys.executable, __file__, "work-together", family, str(folder), *(["--tiny"] if tiny else [])]
        with (folder / "log.txt").open("w") as log:
            processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
    for process in processes:
        try:
            process.wait(max(until - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
    for file in sorted(out.glob("*/turns.json")):
        turns = json.loads(file.read_text())
        for variant, own in turns.items():
            line = f"{file.parent.name:20s} {variant:10s} {statistics.median(own):8.3f} ms"
            base = WITHOUT_TOGETHER.get(variant, "")
            if base in turns:
                more = sorted(one - other for one, other in zip(own, turns[base], strict=True))
                low, middle, high = (more[len(more) * part // 4] for part in (1, 2, 3))
                line += f"  more than {base} by {middle:+.3f} ms [{low:+.3f} to {high:+.3f}]"
            print(line)


# ---- all variants


class Process:
    """A worker from outside."""

    def __init__(self, family: str, variant: str, out: Path, tiny: bool) -> None:
        self.family, self.variant, self.out = family, variant, out / family / variant
        self.out.mkdir(parents=True, exist_ok=True)
        own = self.out if variant in ("whole", "blocks") else out
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": str(own / "cache"),
            "TRITON_CACHE_DIR": str(own / "cache" / "triton"),
            # Many processes compile at once: each on its own thread.
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            # On a CPU, kernels leave no event without it.
            "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1",
            "OMP_NUM_THREADS": "2",
        }
        if family in TRACED and variant in ("default", "graphs", "breaks"):
            environment["TORCH_TRACE"] = str(self.out / "torch_trace")
        with (self.out / "log.txt").open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, __file__, "work", family, variant, str(self.out), *(["--tiny"] if tiny else [])],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, text=True,
            )  # fmt: skip
        self.ready = self.ended = False
        self.turns: list[float] = []

    @property
    def answers(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def read(self, until: float) -> str | None:
        """The next line; None where the process ends or the time does."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.answers, selectors.EVENT_READ)
            if not selector.select(max(until - time.monotonic(), 0.05)):
                return None
        return self.answers.readline() or None

    def ask(self, what: str, until: float) -> Any:
        """Let it do something. Raises TimeoutError where it does not answer in time, or is gone."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(what + "\n")
            self.process.stdin.flush()
        except OSError:
            raise TimeoutError(f"it ended: {self.last_line()}") from None
        line = self.read(until)
        if line is None:
            raise TimeoutError(f"no answer to {what[:20]}: {self.last_line()}")
        return json.loads(line)

    def last_line(self) -> str:
        """Of what it said."""
        lines = (self.out / "log.txt").read_text(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

    def stop(self, seconds: float) -> None:
        """Let it end, and its analysis; kill it after a while."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def record(out: Path, families: dict[str, str], tiny: bool, seconds: float) -> None:
    """Prepare all variants, time and record one family after the other, pack the files, print the table."""
    began = time.monotonic()
    until = began + seconds
    missing: dict[str, str] = {}
    pairs = [(family, variant) for family, variants in families.items() for variant in variants.split()]
    # `default` of all families first, and what compiles longest.
    pairs.sort(key=lambda pair: ("default", "autotune").index(pair[1]) if pair[1] in ("default", "autotune") else 2)
    processes = prepared(out, pairs, tiny, began + READY_SHARE * seconds, missing)
    print(f"{len(processes)} variants are ready after {time.monotonic() - began:.0f} s", flush=True)
    done = []
    for family in families:
        members = [one for one in processes if one.family == family]
        for turn in range(TURNS):
            # Each second turn runs backwards, so that a drift of the clock is no difference.
            for one in members if turn % 2 == 0 else members[::-1]:
                attempt(one, "time", until, missing)
        for one in members:
            attempt(one, "record", until, missing)
            if family in TRACED and one.variant in ("default", "graphs", "breaks"):
                attempt(one, "trace", until, missing)
            attempt(one, json.dumps(one.turns), until, missing)
            if one.process.stdin is not None:
                one.process.stdin.close()
            done.append(one)
        print(f"{family} after {time.monotonic() - began:.0f} s", flush=True)
    for one in done:
        one.stop(max(until + 20 - time.monotonic(), 0.1))
    (out / "missing.json").write_text(json.dumps(missing, indent=1))
    pack(out)
    report(out, [], advised=False)


def prepared(
    out: Path, pairs: list[tuple[str, str]], tiny: bool, until: float, missing: dict[str, str]
) -> list[Process]:
    """The variants that got ready in time, at most `AT_ONCE` of them compiling at once; the others are ended."""
    waiting, running, ready = list(pairs), list[Process](), list[Process]()
    at_once = 2 if tiny else AT_ONCE
    while (waiting or running) and time.monotonic() < until:
        while waiting and len(running) < at_once:
            running.append(Process(*waiting.pop(0), out, tiny))
        with selectors.DefaultSelector() as selector:
            for one in running:
                selector.register(one.answers, selectors.EVENT_READ, one)
            for key, _ in selector.select(1.0):
                one = key.data
                running.remove(one)
                if one.answers.readline().strip() == '"ready"':
                    ready.append(one)
                else:
                    missing[f"{one.family}.{one.variant}"] = one.last_line()
                    one.stop(5)
    for one in running:
        missing[f"{one.family}.{one.variant}"] = f"not compiled in time: {one.last_line()}"
        one.stop(0.1)
    missing |= {f"{family}.{variant}": "no time was left" for family, variant in waiting}
    order = {pair: number for number, pair in enumerate(pairs)}
    return sorted(ready, key=lambda one: order[one.family, one.variant])


def attempt(one: Process, what: str, until: float, missing: dict[str, str]) -> None:
    """Let a variant do something; note why it could not."""
    if one.ended:
        return
    try:
        answer = one.ask(what, min(until, time.monotonic() + 60))
    except TimeoutError as error:
        one.ended = True
        missing[f"{one.family}.{one.variant}"] = str(error)
        one.stop(0.1)
        return
    if what == "time":
        one.turns.append(answer)


def pack(out: Path) -> None:
    """Files of the runs as ``files_N.tar``; caches stay out, and the logs of TORCH_TRACE are one archive a variant."""
    from compiled import record

    for cache in out.rglob("cache"):
        shutil.rmtree(cache, ignore_errors=True)
    for logs in sorted(out.rglob("torch_trace")):
        if logs.is_dir():
            shutil.make_archive(str(logs), "gztar", logs)
            shutil.rmtree(logs)
    record.pack(out)


def report(out: Path, only: list[str], advised: bool = True) -> None:
    """Print what was timed, and what advice says of each recording, which takes its time."""
    found: dict[tuple[str, str], tuple[dict[str, Any], Path]] = {}
    for file in sorted(out.glob("*/*/result.json")):
        one = json.loads(file.read_text())
        if not only or one["family"] in only:
            found[one["family"], one["variant"]] = (one, file.parent)
    if found:
        first = next(iter(found.values()))[0]
        print(f"torch {first['torch']}, {first['gpu']}")
    for (family, variant), (one, folder) in found.items():
        turns = one.get("turns_ms") or []
        if not turns:
            continue
        middle = statistics.median(turns)
        line = f"{family:20s} {variant:10s} {middle:8.3f} ms [{min(turns):.3f} to {max(turns):.3f}]"
        line += f"  start {one['start_s']:.0f} s, CPU {one['start_cpu_s']:.0f} s"
        line += f"  compiled while recorded {one.get('compiled_while_recorded')}"
        if advised:
            line += f"  {said_of(folder / 'run', variant)}"
        without = found.get((family, WITHOUT.get(variant, "")))
        if without is not None and (base := without[0].get("turns_ms")):
            saved = [one - other for one, other in zip(turns, base, strict=False)]
            line += f"  | without it {statistics.median(saved):+.3f} ms [{min(saved):.3f} to {max(saved):.3f}]"
        print(line)
    if (out / "missing.json").is_file():
        for case, why in json.loads((out / "missing.json").read_text()).items():
            print(f"missing: {case}: {why}")


def said_of(run: Path, variant: str) -> str:
    """The step of a recording (ms), and what it would be without the fault or, of an eager run, compiled; with what
    that saves."""
    from tb_dlprof_plugin.advice.compile_saving import compile_saving
    from tb_dlprof_plugin.advice.engine import advise
    from tb_dlprof_plugin.advice.rule_context import RuleContext
    from tb_dlprof_plugin.profile_view import ProfileView
    from tb_dlprof_plugin.simulation.estimate import step_estimate
    from tb_dlprof_plugin.store.logdir import read_profiles

    for events in run.glob("*.tb_dlprof"):
        view = ProfileView(read_profiles(events)[0].profile)
        step = step_estimate(view, view.selection()).ns
        savings: dict[str, Any] = {}
        if variant == "eager":
            context = RuleContext(view, view.selection())
            savings = {"default": compile_saving(context, False), "graphs": compile_saving(context, True)}
        if rule := RULES.get(variant, "launch_bound" if variant == "eager" else ""):
            found = advise(view, view.selection()).findings
            savings |= {one.rule: one.saving for one in found if one.rule == rule}
        text = f"step {step / 1e6:.3f} ms"
        for name, saving in savings.items():
            if saving is None or isinstance(saving, str):
                text += f", {name}: unknown"
                continue
            ends = saving.low_ns, saving.expected_ns, saving.high_ns
            low, middle, high = ((step - ns) / 1e6 for ns in reversed(ends))
            text += f", {name}: {middle:.3f} [{low:.3f} to {high:.3f}], saves {ends[1] / 1e6:.3f}"
            text += f" [{ends[0] / 1e6:.3f} to {ends[2] / 1e6:.3f}]"
        return text
    return "no recording"


def flops(out: Path) -> None:
    """Print in how many modules and passes products and convolutions of each variant have the eager run's FLOPs."""
    for eager in sorted(out.glob("*/eager/run")):
        family = eager.parents[1]
        known = _flops_of(eager)
        for variant in ("default", "graphs", "hand", "graphed"):
            if (run := family / variant / "run").is_dir():
                # The first recording has the capture.
                early = run.parent / "early"
                found = _flops_of(early if early.is_dir() else run)
                equal = sum(math.isclose(found.get(part, -1.0), value, rel_tol=1e-6) for part, value in known.items())
                print(f"{family.name:20s} {variant:10s} {equal} of {len(known)}")


def _flops_of(recording: Path) -> dict[tuple[str, bool], float]:
    """FLOPs of the last step by module and whether it is the backward pass; NaN where those of a call are unknown."""
    from tb_dlprof_plugin.analysis import analyze_trace
    from tb_dlprof_plugin.metrics.flops import matrix_calls
    from tb_dlprof_plugin.model.profile import Role
    from tb_dlprof_plugin.profile_view import ProfileView
    from tb_dlprof_plugin.store.logdir import read_profiles

    if recording.name == "early":
        # Of this package, not of the one that recorded.
        profile = analyze_trace(max(recording.glob("*.pt.trace.json.gz"), key=lambda path: path.stat().st_size))
    else:
        profile = read_profiles(max(recording.glob("*.tb_dlprof")))[0].profile
    view = ProfileView(profile)
    last = view.selection().last
    ops, strings, found = view.profile.ops, view.profile.strings, matrix_calls(view, view.selection(last, last))
    sums: dict[tuple[str, bool], float] = {}
    for op, work in zip(view.profile.calls.op[found.call].tolist(), found.flops.tolist(), strict=True):
        if module := strings[ops.module[op]]:
            part = (module, bool(ops.role[op] == Role.BACKWARD))
            sums[part] = sums.get(part, 0.0) + (work if work >= 0 else math.nan)
    return sums


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("record")
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--only", default="")
    command.add_argument("--seconds", type=float, default=500)
    command.add_argument("--tiny", action="store_true")
    command = commands.add_parser("report")
    command.add_argument("out", type=Path)
    command.add_argument("--only", default="")
    command = commands.add_parser("flops")
    command.add_argument("out", type=Path)
    command = commands.add_parser("together")
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--seconds", type=float, default=400)
    command.add_argument("--tiny", action="store_true")
    command = commands.add_parser("work-together")
    command.add_argument("family")
    command.add_argument("out", type=Path)
    command.add_argument("--tiny", action="store_true")
    command = commands.add_parser("work")
    command.add_argument("family")
    command.add_argument("variant")
    command.add_argument("out", type=Path)
    command.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    if given.command == "work":
        work(given.family, given.variant, given.out, given.tiny)
        return
    if given.command == "work-together":
        work_together(given.family, given.out, given.tiny)
        return
    if given.command == "flops":
        flops(given.out)
        return
    if given.command == "together":
        together(given.out.resolve(), given.tiny, given.seconds)
        return
    only = list(filter(None, given.only.split(",")))
    if given.command == "report":
        report(given.out, only)
        return
    families = TINY if given.tiny else FAMILIES
    record(given.out.resolve(), {name: one for name, one in families.items() if not only or name in only},
           given.tiny, given.seconds)  # fmt: skip


if __name__ == "__main__":
    main()
