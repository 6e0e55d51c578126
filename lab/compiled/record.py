"""Records compiled models with the hook, and prints how much of their kernels' time has a module.

    python lab/compiled/record.py record --out DIRECTORY [--seconds 480] [--only gpt,vit] [--at-once 4]   # on a GPU
    python lab/compiled/record.py record --out DIRECTORY --tiny                                    # on a CPU, one model
    python lab/compiled/record.py report DIRECTORY

``record`` runs each case in a process of its own with a cache of its own: a model, a mode of torch.compile, training or
inference; further a block alone that is called twelve times, a model with one block four times wider, one for each
planted fault, each model without torch.compile, and starts with and without provenance, with a cold cache and a warm
one. What is not done in time is left out and named. Cases that
start at once share the CPU: start times compare among the ``start.*`` cases alone, which take turns. Files are
packed as tar, each at most 15 MiB. ``report`` prints the table again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs")
MODELS = ("gpt", "vit", "resnet", "unet", "lstm", "bert")
LARGEST_TAR = 15 << 20
PLANTED = {
    "gpt_break": "a tensor is read in Python between two blocks",
    "gpt_guard": "an attribute that is a Python number changes in every fourth step",
    "gpt_dtype": "the words are int32 in every other step",
    "gpt_mutated": "the compiled model changes its input, so that CUDA graphs are skipped",
    "gpt_no_effect": "what torch.compile returns is not called",
    "gpt_dynamic": "the batch changes from step to step",
}
BLOCKS = 6
WIDER = 3
"""The block that ``gpt_wider`` makes four times wider."""


def cases() -> list[str]:
    """``model.mode.pass``, most telling first; the ``start.*`` cases come first and alone."""
    start = [f"start.{state}.{switch}" for state in ("cold", "warm") for switch in ("off", "on")]
    special = ["gpt_block.default.training", "gpt_wider.default.training"]
    modes = {"gpt_mutated": "reduce-overhead"}
    special += [f"{name}.{modes.get(name, 'default')}.training" for name in PLANTED]
    kinds = [("default", "training"), ("eager", "training")]
    kinds += [(mode, passes) for mode in MODES for passes in ("training", "inference") if (mode, passes) not in kinds]
    return start + special + [f"{model}.{mode}.{passes}" for mode, passes in kinds for model in MODELS]


# ---- one case, in a process of its own


def gpt(torch: Any, small: bool, width: dict[int, int] | None = None, plant: str = "") -> tuple[Any, tuple[Any, ...]]:
    """A GPT whose block ``n`` has a feed-forward layer ``width[n]`` times as wide, with one of ``PLANTED``."""
    nn, functional = torch.nn, torch.nn.functional
    dim, heads, words, batch, length, blocks = (32, 2, 100, 2, 16, 2) if small else (512, 8, 8000, 16, 256, BLOCKS)

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, times: int) -> None:
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
            self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
            self.up, self.down = nn.Linear(dim, 4 * dim * times), nn.Linear(4 * dim * times, dim)

        def forward(self, x: Any) -> Any:
            b, t, d = x.shape
            q, k, v = self.qkv(self.n1(x)).view(b, t, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.o(seen.transpose(1, 2).reshape(b, t, d))
            return x + self.down(functional.gelu(self.up(self.n2(x))))

    class GPT(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(words, dim)
            self.blocks = nn.ModuleList(Block((width or {}).get(n, 1)) for n in range(blocks))
            self.head = nn.Linear(dim, words)
            self.scale = 0

        def forward(self, x: Any) -> Any:
            if plant == "gpt_mutated":
                x.clamp_(min=0)
            h = self.embedding(x)
            if plant == "gpt_guard":
                h = h * (1 + self.scale / 100)
            for number, block in enumerate(self.blocks):
                if plant == "gpt_break" and number == len(self.blocks) // 2 and h.sum().item() > 1e9:
                    h = h / 2
                h = block(h)
            return self.head(h)

    return GPT(), (torch.randint(0, words, (batch, length)),)


def gpt_block(torch: Any, small: bool) -> tuple[Any, tuple[Any, ...]]:
    """One block, compiled alone by the caller."""
    model, _ = gpt(torch, small)
    return model.blocks[0], (torch.randn(2, 16, 32) if small else torch.randn(16, 256, 512),)


def unet(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    """A small diffusion U-Net: residual blocks with the time's embedding, down and up again."""
    nn, functional = torch.nn, torch.nn.functional

    class Residual(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inside: int, outside: int) -> None:
            super().__init__()
            self.n1, self.n2 = nn.GroupNorm(8, inside), nn.GroupNorm(8, outside)
            self.c1, self.c2 = nn.Conv2d(inside, outside, 3, padding=1), nn.Conv2d(outside, outside, 3, padding=1)
            self.time, self.skip = nn.Linear(128, outside), nn.Conv2d(inside, outside, 1)

        def forward(self, x: Any, t: Any) -> Any:
            h = self.c1(functional.silu(self.n1(x))) + self.time(functional.silu(t))[:, :, None, None]
            return self.skip(x) + self.c2(functional.silu(self.n2(h)))

    class UNet(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.time, self.first = nn.Linear(64, 128), nn.Conv2d(3, 64, 3, padding=1)
            self.down = nn.ModuleList([Residual(64, 128), Residual(128, 256)])
            self.middle = Residual(256, 256)
            self.up = nn.ModuleList([Residual(512, 128), Residual(256, 64)])
            self.last = nn.Conv2d(64, 3, 3, padding=1)

        def forward(self, x: Any, t: Any) -> Any:
            t, h, kept = self.time(t), self.first(x), []
            for block in self.down:
                h = block(h, t)
                kept.append(h)
                h = functional.avg_pool2d(h, 2)
            h = self.middle(h, t)
            for block in self.up:
                h = block(torch.cat((functional.interpolate(h, scale_factor=2.0), kept.pop()), 1), t)
            return self.last(h)

    return UNet(), (torch.randn(16, 3, 64, 64), torch.randn(16, 64))


def lstm(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    """An LSTM of two layers with a head."""
    nn = torch.nn

    class Tagger(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.rnn = nn.Embedding(2000, 256), nn.LSTM(256, 512, 2, batch_first=True)
            self.norm, self.head = nn.LayerNorm(512), nn.Linear(512, 2000)

        def forward(self, x: Any) -> Any:
            return self.head(self.norm(self.rnn(self.embedding(x))[0]))

    return Tagger(), (torch.randint(0, 2000, (32, 128)),)


def build(name: str, torch: Any, small: bool) -> tuple[Any, tuple[Any, ...]]:
    """The model and its inputs, on the CPU. Raises ImportError where its library is missing."""
    if name in ("gpt", "start", *PLANTED):
        return gpt(torch, small, plant=name)
    if name == "gpt_wider":
        return gpt(torch, small, {WIDER: 4})
    if name == "gpt_block":
        return gpt_block(torch, small)
    if name == "unet":
        return unet(torch)
    if name == "lstm":
        return lstm(torch)
    if name == "bert":
        import transformers

        config = transformers.BertConfig(num_hidden_layers=4, hidden_size=512, num_attention_heads=8, vocab_size=8000)
        return transformers.BertModel(config), (torch.randint(0, 8000, (16, 128)),)
    import timm

    kind = "vit_small_patch16_224" if name == "vit" else "resnet18"
    return timm.create_model(kind), (torch.randn(32, 3, 224, 224),)


def record_one(case: str, out: Path, small: bool) -> None:
    """Train or infer with one compiled model, record three steps, and write ``result.json``."""
    import torch

    import tb_dlprof_plugin

    name, mode, passes = case.split(".")
    training = passes != "inference"
    compile_mode = mode if mode in MODES else "default"
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model, inputs = build(name, torch, small)
    model, inputs = model.to(device).train(training), tuple(one.to(device) for one in inputs)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device.type == "cuda") if training else None
    calls = 12 if name == "gpt_block" else 1

    def loss_of(result: Any) -> Any:
        tensor = result if isinstance(result, torch.Tensor) else result[0]
        return tensor.float().square().mean()

    done = 0

    def step() -> None:
        nonlocal done
        given = inputs
        if name == "gpt_guard":
            model.scale = done // 4
        if name == "gpt_dtype" and done % 2:
            given = tuple(one.int() for one in inputs)
        if name == "gpt_dynamic":
            given = tuple(one[: len(one) - 2 * (done % 3)] if len(one) > 4 else one[: 1 + done % 2] for one in inputs)
        done += 1
        with torch.autocast(device.type, torch.bfloat16), torch.set_grad_enabled(training):
            for _ in range(calls):
                loss = loss_of(compiled(*given))
                if training:
                    loss.backward()
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def synchronize() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    session = tb_dlprof_plugin.profile(out / "run", model=model, schedule=(0, 1, 3), wait=True, quiet=True)
    compiled = torch.compile(model, mode=compile_mode) if mode != "eager" else model
    if name == "gpt_no_effect":
        compiled = model
    began, cpu = synchronize(), time.process_time()
    step()
    start_s, start_cpu_s = synchronize() - began, time.process_time() - cpu
    for _ in range(4):  # CUDA graphs are recorded in the second and third call
        step()
    began = synchronize()
    for _ in range(10):
        step()
    step_ms = (synchronize() - began) * 100
    if name != "start":
        with session:
            for _ in range(5):
                step()
                session.step()
    gpu = torch.cuda.get_device_name() if device.type == "cuda" else "none"
    result = {
        "case": case, "torch": torch.__version__, "gpu": gpu, "start_s": start_s, "start_cpu_s": start_cpu_s,
        "step_ms": step_ms,
    }  # fmt: skip
    (out / "result.json").write_text(json.dumps(result))


# ---- all cases


def run_case(case: str, out: Path, small: bool, until: float) -> str:
    """Run one case in a process; "" or why it has no result."""
    name, _, switch = case.split(".")
    folder = out / case
    folder.mkdir(parents=True, exist_ok=True)
    cache = out / "cache" / (f"start.{switch}" if name == "start" else case)
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        # On a CPU, kernels leave no event without it.
        "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1",
    }
    if name == "start" and switch == "off":
        environment["TB_DLPROF_PROVENANCE"] = "0"
    left = until - time.monotonic()
    if left < 20:
        return "no time was left"
    command = [sys.executable, __file__, "one", case, str(folder), *(["--tiny"] if small else [])]
    with open(folder / "log.txt", "w") as log:
        try:
            done = subprocess.run(command, env=environment, stdout=log, stderr=log, timeout=left, check=False)
        except subprocess.TimeoutExpired:
            return "it was stopped when the time was over"
    return how_it_ended(done.returncode, folder / "log.txt") if done.returncode else ""


def how_it_ended(status: int | None, log: Path, lines: int = 3) -> str:
    """How a process ended, with the last lines that it said; None: it was stopped."""
    if status is None:
        how = "it was stopped when the time was over"
    elif status < 0:
        how = f"it was ended by {signal.Signals(-status).name}"
    else:
        how = f"exit status {status}"
    said = log.read_text(errors="replace").strip().splitlines()[-lines:] if log.is_file() else []
    return ": ".join([how, *([" | ".join(line[-200:] for line in said)] if said else [])])


def record(out: Path, only: list[str], small: bool, seconds: float, at_once: int) -> None:
    """Run all cases, pack their files and print the table."""
    until = time.monotonic() + seconds
    wanted = ["start.cold.on", "gpt.default.training"] if small else cases()
    wanted = [case for case in wanted if not only or case.split(".")[0] in only]
    alone = [case for case in wanted if case.startswith("start.")]
    missing = {case: run_case(case, out, small, until) for case in alone}
    with ThreadPoolExecutor(at_once) as pool:
        others = [case for case in wanted if case not in alone]
        missing.update(zip(others, pool.map(lambda case: run_case(case, out, small, until), others), strict=True))
    pack(out)
    (out / "missing.json").write_text(json.dumps({case: why for case, why in missing.items() if why}, indent=1))
    report(out)


def pack(out: Path) -> None:
    """Files of the runs as ``files_N.tar``; the caches stay out."""
    files = [file for file in sorted(out.rglob("*")) if file.is_file() and out / "cache" not in file.parents]
    parts: list[list[Path]] = []
    size = LARGEST_TAR
    for file in (file for file in files if file.suffix != ".tar"):
        # A header and padding for each file.
        need = file.stat().st_size + 2048
        if size + need > LARGEST_TAR:
            parts.append([])
            size = 0
        parts[-1].append(file)
        size += need
    for number, members in enumerate(parts):
        with tarfile.open(out / f"files_{number}.tar", "w") as archive:
            for file in members:
                archive.add(file, str(file.relative_to(out)))


def report(out: Path) -> None:
    """Print a row for each case: shares of the time of compiled code, start and step without the profiler."""
    from tb_dlprof_plugin.metrics.compiled_code import compiled_time
    from tb_dlprof_plugin.profile_view import ProfileView
    from tb_dlprof_plugin.store.logdir import read_profiles

    head = (
        "case", "region ms", "module %", "shared %", "bare %", "unknown %", "launches", "start s", "cpu s", "step ms",
        "kB",
    )  # fmt: skip
    rows = [head]
    for file in sorted(out.glob("*/result.json")):
        result = json.loads(file.read_text())
        shares = ["–"] * 6
        size = "–"
        for events in (file.parent / "run").glob("*.tb_dlprof"):
            profile = read_profiles(events)[0].profile
            view = ProfileView(profile)
            found = compiled_time(view, view.selection())
            size = f"{events.stat().st_size / 1000:.0f}"
            if found is not None and found.region_ns:
                parts = (found.module_ns, found.shared_ns, found.without_module_ns, found.unknown_ns)
                steps = len(profile.iterations)
                percents = [f"{100 * one / found.region_ns:.1f}" for one in parts]
                shares = [f"{found.region_ns / steps / 1e6:.2f}", *percents]
                shares.append(f"{int(found.launches.sum()) / steps:.0f}")
        times = [f"{result[key]:.1f}" for key in ("start_s", "start_cpu_s", "step_ms")]
        rows.append((result["case"], *shares, *times, size))
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    for row in rows:
        cells = [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join([row[0].ljust(widths[0]), *cells]))
    if (out / "missing.json").is_file():
        for case, why in json.loads((out / "missing.json").read_text()).items():
            print(f"missing: {case}: {why}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("record", "report", "one"):
        command = commands.add_parser(name)
        if name == "one":
            command.add_argument("case")
            command.add_argument("out", type=Path)
        elif name == "record":
            command.add_argument("--out", type=Path, required=True)
            command.add_argument("--only", default="")
            command.add_argument("--seconds", type=float, default=480)
            command.add_argument("--at-once", type=int, default=4)
        else:
            command.add_argument("out", type=Path)
        if name != "report":
            command.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    if given.command == "one":
        record_one(given.case, given.out, given.tiny)
    elif given.command == "report":
        report(given.out)
    else:
        record(given.out, list(filter(None, given.only.split(","))), given.tiny, given.seconds, given.at_once)


if __name__ == "__main__":
    main()
