"""A model in one of the ways to run it that `pairs` and `together` compare: built, compiled, timed, recorded."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from compiled import record

PLANTED = {
    "item": "a tensor is read in Python in the middle of the model",
    "cuts": "two breaks between blocks, at which the function goes on compiled",
    "breaks": "a break in the loop over the blocks, so that only each block is compiled",
    "mutated": "the model writes into its input, so that CUDA graphs are skipped",
    "cpu_tensor": "a tensor of the model lies on the CPU, so that CUDA graphs are skipped",
    "dynamic": "dynamic=True, called with one size",
    "guard": "an attribute that is a string changes twice at the start, and once in a recorded step",
}
MODES = {"graphs": "reduce-overhead", "mutated": "reduce-overhead", "cpu_tensor": "reduce-overhead",
         "autotune": "max-autotune"}  # fmt: skip
TURN_S = 0.15


def build(family: str, variant: str, torch: Any, tiny: bool) -> tuple[Any, tuple[Any, ...]]:
    """The model and its inputs, on the CPU."""
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
        if variant == "cpu_tensor":
            # Where graphs are split at CPU ops, a CPU tensor skips nothing but comes into a CUDA graph as its input. On
            # an H100 with torch 2.11 the process then ended without a word.
            torch._inductor.config.graph_partition = False
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
