"""Compiled models in several precisions and batch sizes, and what is forecast of one from the recording of another.

    python -m lab.compiled.forecasts record --out DIRECTORY [--deadline 350] [--only gpt.training]   # on a GPU
    python -m lab.compiled.forecasts record --out DIRECTORY --tiny                              # on a CPU, one model
    python -m lab.compiled.forecasts report DIRECTORY [--models opened|unopened]

Each model is a process: it compiles one copy for each precision, batch and mode, waits until all processes are ready,
and then, alone on the GPU, times them in turns without the profiler and records each with the hook. ``report`` makes
each forecast from a recording, and holds it to the timed step. Rules may be made with ``OPENED``;
``UNOPENED`` says what they are worth. What was not done in time is named.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import json
import os
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import record as models

MODES = {"default": "default", "graphs": "reduce-overhead"}
VARIANTS = (
    "fp32.1.default", "bf16.1.default", "fp32.1.graphs", "bf16.1.graphs", "tf32.1.default", "fp32.2.default",
    "bf16.2.default", "fp32.half.default", "tf32.1.graphs", "fp32.2.graphs",
)  # fmt: skip
"""Precision, batch over the model's own, and mode; most telling first."""
TURNS, TURN_S = 4, 0.05
MEASURING_S = 150
"""At the end, for timing and recording all models one after the other."""
LAST_S = 20
"""At the very end, for the analysis of the last recordings and for packing."""
STEPS = 16
"""Of a recording: ten before it, two to warm up, three, and the one that ends it."""

Built = tuple[Any, Callable[[int], tuple[Any, ...]], int]
"""A model, its inputs by batch size, and its batch size."""


def _own(name: str, batch: int) -> Built:
    """A model of `record`, with batches made of its input."""
    import torch

    model, inputs = models.build(name, torch, False)

    def of_size(size: int) -> tuple[Any, ...]:
        return tuple(one[torch.arange(size) % len(one)] for one in inputs)

    return model, of_size, batch


def _images(build: Callable[[], Any], batch: int) -> Built:
    import torch

    return build(), lambda size: (torch.randn(size, 3, 224, 224),), batch


def _vision(name: str, batch: int, library: str = "torchvision") -> Built:
    if library == "timm":
        import timm

        return _images(functools.partial(timm.create_model, name), batch)
    import torchvision

    return _images(getattr(torchvision.models, name), batch)


def _text(kind: str, batch: int, length: int, **settings: Any) -> Built:
    import torch
    import transformers

    config = getattr(transformers, kind.partition("For")[0].removesuffix("LMHeadModel") + "Config")
    model = getattr(transformers, kind)(config(use_cache=False, **settings))
    return model, lambda size: (torch.randint(10, 8000, (size, length)),), batch


def _mlp() -> Built:
    import torch
    from torch import nn

    blocks = [nn.Sequential(nn.LayerNorm(768), nn.Linear(768, 768), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*blocks, nn.Linear(768, 768)), lambda size: (torch.randn(size, 768),), 1024


_LLAMA = {"hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 6, "num_attention_heads": 8,
          "num_key_value_heads": 8, "vocab_size": 8000}  # fmt: skip
_GPT2 = {"n_embd": 512, "n_layer": 6, "n_head": 8, "vocab_size": 8000}
OPENED: dict[str, Callable[[], Built]] = {
    "gpt.training": functools.partial(_own, "gpt", 8),
    "resnet18.training": functools.partial(_vision, "resnet18", 32),
    "vit.training": functools.partial(_vision, "vit_small_patch16_224", 16, "timm"),
    "unet.training": functools.partial(_own, "unet", 8),
    "bert.training": functools.partial(_own, "bert", 16),
    "mlp.training": _mlp,
    "gpt.inference": functools.partial(_own, "gpt", 8),
}
UNOPENED: dict[str, Callable[[], Built]] = {
    "gpt2.training": functools.partial(_text, "GPT2LMHeadModel", 8, 256, **_GPT2),
    "convnext.training": functools.partial(_vision, "convnext_tiny", 16),
    "mixer.training": functools.partial(_vision, "mixer_s16_224", 16, "timm"),
    "llama.training": functools.partial(_text, "LlamaForCausalLM", 8, 256, **_LLAMA),
    "vit.inference": functools.partial(_vision, "vit_small_patch16_224", 16, "timm"),
}
TINY: dict[str, Callable[[], Built]] = {"tiny.training": lambda: _own_tiny()}


def _own_tiny() -> Built:
    import torch

    model, _ = models.gpt(torch, True)
    return model, lambda size: (torch.randint(0, 100, (size, 16)),), 2


# ---- one model, in a process of its own


class Variant:
    """A copy of the model in one precision, batch and mode."""

    def __init__(self, family: str, name: str, built: Built, out: Path) -> None:
        import torch

        import tb_dlprof_plugin

        self.torch, self.name = torch, name
        self.precision, self.mode = name.partition(".")[0], name.rpartition(".")[2]
        self.training = family.endswith(".training")
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        inner, inputs, batch = built
        self.batch = round(batch * {"1": 1.0, "2": 2.0, "half": 0.5}[name.split(".")[1]])

        class Whole(torch.nn.Module):  # type: ignore[misc, name-defined]
            """Holds the model, so that each variant has code of its own: Dynamo keeps what it compiled with it."""

            def __init__(self) -> None:
                super().__init__()
                self.inner = inner

            def forward(self, *given: Any) -> Any:
                return self.inner(*given)

        code = Whole.forward.__code__
        Whole.forward.__code__ = code.replace(co_name=f"forward_{name.replace('.', '_')}")
        self.model = Whole().to(self.device).train(self.training)
        self.inputs = tuple(one.to(self.device) for one in inputs(self.batch))
        fused = self.device.type == "cuda"
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=fused) if self.training else None
        # The hook comes before torch.compile.
        self.session = tb_dlprof_plugin.profile(
            out / name, model=self.model, schedule=(10, 2, 3), wait=False, quiet=True, batch_size=self.batch,
            keep_trace=".1." in name, pytorch_views=False, exit_wait_s=60,
        )  # fmt: skip
        self.called = torch.compile(self.model, mode=MODES[self.mode], dynamic=False)

    def steps(self, number: int, after_each: Callable[[], object] = lambda: None) -> float:
        """Milliseconds a step of so many."""
        torch = self.torch
        # Dynamo compiles again where this is another one.
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = self.precision == "tf32"
        began = self.synchronize()
        for _ in range(number):
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
                with torch.set_grad_enabled(self.training):
                    result = self.called(*self.inputs)
                tensor = result if isinstance(result, torch.Tensor) else result[0]
                loss = tensor.float().square().mean()
            if self.optimizer is not None:
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
            after_each()
        return (self.synchronize() - began) * 1000 / number

    def synchronize(self) -> float:
        """The time, once the GPU is done."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()
        return time.perf_counter()

    def record(self) -> None:
        """Record with the hook."""
        with self.session:
            self.steps(STEPS, self.session.step)


def work(family: str, out: Path, until: float) -> None:
    """Compile the variants, wait for the other processes, then time and record in turn."""
    import torch

    torch.set_num_threads(1)
    build = (OPENED | UNOPENED | TINY)[family]
    variants, result = list[Variant](), dict[str, Any]()
    result |= {"torch": torch.__version__, "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "none"}
    missing: dict[str, str] = {}
    for name in VARIANTS[:4] if family in TINY else VARIANTS:
        if time.time() > until - MEASURING_S:
            missing[name] = "no time was left to compile it"
            continue
        began = time.perf_counter()
        torch.manual_seed(0)
        try:
            one = Variant(family, name, build(), out)
            one.steps(6)
        except Exception as error:
            traceback.print_exc()
            missing[name] = repr(error)[:300]
            continue
        finally:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        variants.append(one)
        print(f"{name} is compiled after {time.perf_counter() - began:.0f} s", flush=True)
    (out / "ready").touch()
    # One that compiles longer than planned keeps the others for a while.
    while len(list(out.parent.glob("*/ready"))) < len(list(out.parent.glob("*/log.txt"))):
        if time.time() > until - MEASURING_S + 10:
            break
        time.sleep(0.2)
    turns: dict[str, list[float]] = {one.name: [] for one in variants}
    with (out.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if time.time() > until - 8:
            missing |= dict.fromkeys(turns, "no time was left to measure it")
            variants = []
        numbers = {one.name: max(4, min(60, round(1000 * TURN_S / one.steps(3)))) for one in variants}
        for turn in range(TURNS):
            for one in variants if turn % 2 == 0 else variants[::-1]:
                one.steps(2)
                turns[one.name].append(one.steps(numbers[one.name]))
        for one in variants:
            if one.name.startswith("bf16.2") or time.time() > until - 2:
                continue
            try:
                one.record()
            except Exception as error:
                traceback.print_exc()
                missing[one.name] = repr(error)[:300]
        result["variants"] = {one.name: {"batch": one.batch, "turns_ms": turns[one.name]} for one in variants}
        (out / "result.json").write_text(json.dumps(result | {"missing": missing}, indent=1))


def record(out: Path, families: dict[str, Callable[[], Built]], deadline_s: float) -> None:
    """Run a process for each model, pack the files, print the table."""
    until = time.time() + deadline_s - LAST_S
    processes = {}
    for family in families:
        (out / family).mkdir(parents=True, exist_ok=True)
    for family in families:
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": str(out / "cache"),
            "TRITON_CACHE_DIR": str(out / "cache" / "triton"),
            # Many processes compile at once: each on its own thread.
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            # On a CPU, kernels leave no event without it.
            "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1",
        }
        command = [sys.executable, "-m", "lab.compiled.forecasts", "work", family, str(out / family), str(until)]
        with (out / family / "log.txt").open("w") as log:
            processes[family] = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=models.ROOT)
    ended: dict[str, int | None] = {}
    for family, process in processes.items():
        try:
            ended[family] = process.wait(max(until + LAST_S - time.time(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
            ended[family] = None
    models.pack(out)
    for family, status in ended.items():
        if not (out / family / "result.json").is_file():
            print(f"missing: {family}: {models.how_it_ended(status, out / family / 'log.txt')}")
    times(out)


def times(out: Path) -> None:
    """Print the timed steps (ms)."""
    for file in sorted(out.glob("*/result.json")):
        result = json.loads(file.read_text())
        for name, one in result["variants"].items():
            turns = one["turns_ms"]
            recorded = len(list((file.parent / name).rglob("*.tb_dlprof")))
            print(
                f"{file.parent.name:20s} {name:18s} {statistics.median(turns):8.3f} ms "
                f"[{min(turns):.3f} to {max(turns):.3f}], recordings {recorded}"
            )
        for name, why in result["missing"].items():
            print(f"{file.parent.name:20s} {name:18s} missing: {why}")


# ---- forecasts


@dataclass(frozen=True)
class Held:
    """A forecast held to the timed turns (ms) of the recorded variant and of the other: they alternate."""

    kind: str
    family: str
    base: str
    target: str
    turns: tuple[list[float], list[float]]
    found: Any

    @property
    def truth_ms(self) -> float:
        return statistics.median(self.turns[1])

    @property
    def speedup(self) -> float:
        return statistics.median(old / new for old, new in zip(*self.turns, strict=True))

    @property
    def error(self) -> float:
        return float(self.found.predicted_ns) / 1e6 / self.truth_ms - 1

    @property
    def covered(self) -> bool:
        return bool(self.found.low_ns / 1e6 <= self.truth_ms <= self.found.high_ns / 1e6)

    @property
    def speedup_covered(self) -> bool:
        least, most = self.found.speedup_interval
        return bool(least <= self.speedup <= most)

    @property
    def is_wrong(self) -> bool:
        """Whether it says faster where the truth is slower by more than 5 %, or the other way round."""
        clear = abs(self.speedup - 1) > 0.05
        return clear and self.found.direction == ("slower" if self.speedup > 1 else "faster")


def held_forecasts(out: Path, families: Iterable[str]) -> Iterator[Held | str]:
    """Each forecast that a recording and a timed variant of its mode allow, or why there is none."""
    from tb_dlprof_plugin.planning import ForecastError
    from tb_dlprof_plugin.planning.predict import forecast
    from tb_dlprof_plugin.profile_view import ProfileView
    from tb_dlprof_plugin.store.logdir import read_profiles

    for family in families:
        if not (out / family / "result.json").is_file():
            continue
        known = json.loads((out / family / "result.json").read_text())["variants"]
        for base in (name for name in known if ".1." in name):
            precision, _, mode = base.split(".")
            stored = next((out / family / base).rglob("*.tb_dlprof"), None)
            if stored is None:
                yield f"{family:20s} {base}: no recording"
                continue
            view = ProfileView(read_profiles(stored)[-1].profile)
            for name, one in known.items():
                target = name.partition(".")[0]
                wanted = ("fp32", "tf32", "bf16") if precision == "fp32" else ("bf16",)
                if name == base or not name.endswith(mode) or target not in wanted:
                    continue
                kinds = (target if target != precision else "", "batch" if ".1." not in name else "")
                kind = " and ".join(filter(None, kinds)) + f", {mode}"
                try:
                    found = forecast(view, target, batch_size=one["batch"])
                except ForecastError as error:
                    yield f"{family:20s} {base:15s} to {name:17s} none: {error}"
                    continue
                yield Held(kind, family, base, name, (known[base]["turns_ms"], one["turns_ms"]), found)


def report(out: Path, families: Iterable[str]) -> None:
    """Print each forecast with the timed step, and the errors by what was forecast."""
    rows = list[Held]()
    for row in held_forecasts(out, families):
        if isinstance(row, str):
            print(row)
            continue
        rows.append(row)
        found, (least, most) = row.found, row.found.speedup_interval
        print(
            f"{row.family:18s} {row.base:14s} to {row.target:16s} {statistics.median(row.turns[0]):7.3f} to "
            f"{row.truth_ms:7.3f} ms  {found.predicted_ns / 1e6:7.3f} ({found.low_ns / 1e6:.2f} to "
            f"{found.high_ns / 1e6:.2f}{'' if row.covered else ' (!)'}) {100 * row.error:+6.1f} %  "
            f"speedup {row.speedup:.2f}: {found.speedup:.2f} ({least:.2f} to {most:.2f}"
            f"{'' if row.speedup_covered else ' (!)'}) {found.direction}, {found.limited_by}"
            f"{' WRONG' if row.is_wrong else ''}"
        )
    groups: dict[str, list[Held]] = {"all": rows}
    for row in rows:
        groups.setdefault(row.kind, []).append(row)
        groups.setdefault(f"paced by the {'GPU' if row.found.limited_by == 'gpu' else 'CPU'}", []).append(row)
    for kind, some in groups.items():
        if some:
            errors = [abs(row.error) for row in some]
            ratios = [abs(row.found.speedup / row.speedup - 1) for row in some]
            print(
                f"{kind}: {len(some)}; step: error median {100 * statistics.median(errors):.0f} %, worst "
                f"{100 * max(errors):.0f} %, interval true in {sum(row.covered for row in some)}; speedup: "
                f"error median {100 * statistics.median(ratios):.0f} %, worst {100 * max(ratios):.0f} %, interval true "
                f"in {sum(row.speedup_covered for row in some)}; direction wrong in {sum(row.is_wrong for row in some)}"
            )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("record")
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--deadline", type=float, default=350)
    command.add_argument("--only", default="")
    command.add_argument("--tiny", action="store_true")
    command = commands.add_parser("report")
    command.add_argument("out", type=Path)
    command.add_argument("--models", choices=("opened", "unopened", "tiny"), default="opened")
    command = commands.add_parser("work")
    command.add_argument("family")
    command.add_argument("out", type=Path)
    command.add_argument("until", type=float)
    given = parser.parse_args()
    if given.command == "work":
        work(given.family, given.out, given.until)
    elif given.command == "report":
        report(given.out, {"opened": OPENED, "unopened": UNOPENED, "tiny": TINY}[given.models])
    else:
        only = given.only.split(",") if given.only else []
        families = TINY if given.tiny else OPENED | UNOPENED
        record(given.out.resolve(), {name: one for name, one in families.items() if not only or name in only},
               given.deadline)  # fmt: skip


if __name__ == "__main__":
    main()
