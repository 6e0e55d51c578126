"""A training loop of PyTorch that records some steps for one profiler, after it has timed steps without any.

    python torch_program.py --kind resnet50_fp32 --recorder profiler --out /tmp/out
    nsys profile -c cudaProfilerApi ... python torch_program.py --kind resnet50_fp32 --recorder nsys --out /tmp/out
    tb-dlprof run --iter-start 95 torch_program.py --kind resnet50_fp32 --recorder none --out /tmp/out

Writes ``truth.json`` (steps without a profiler, milliseconds) and, for ``profiler``, a trace of ``torch.profiler``.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

STEPS = 5
TIMED, BLOCKS = 20, 3
AROUND = 80
Step = Callable[[], object]


def _training(model: nn.Module, inputs: tuple[torch.Tensor, ...], dtype: torch.dtype | None) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step() -> object:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            out = model(*inputs)
            out = out[0] if isinstance(out, tuple) else getattr(out, "logits", out)
            loss = out.float().square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def _resnet50() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    import torchvision

    return torchvision.models.resnet50().cuda().train(), (torch.randn(64, 3, 224, 224, device="cuda"),)


def _bert() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    from transformers import BertConfig, BertForSequenceClassification

    model = BertForSequenceClassification(BertConfig(num_hidden_layers=6)).cuda().train()
    return model, (torch.randint(0, 30000, (16, 128), device="cuda"),)


class _Gpt(nn.Module):
    """Six layers of a decoder with causal attention."""

    def __init__(self, width: int = 512, layers: int = 6) -> None:
        super().__init__()
        self.embed = nn.Embedding(8192, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 8, 4 * width, 0.0, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.head = nn.Linear(width, 8192)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        out: torch.Tensor = self.head(x)
        return out


def _gpt() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return _Gpt().cuda().train(), (torch.randint(0, 8192, (8, 256), device="cuda"),)


def _vit() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    import torchvision

    return torchvision.models.vit_b_16().cuda().train(), (torch.randn(32, 3, 224, 224, device="cuda"),)


def _mobilenet() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    import torchvision

    return torchvision.models.mobilenet_v3_large().cuda().train(), (torch.randn(16, 3, 224, 224, device="cuda"),)


def _convnext() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    import torchvision

    return torchvision.models.convnext_tiny().cuda().train(), (torch.randn(32, 3, 224, 224, device="cuda"),)


def _gpt2() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=6, use_cache=False)).cuda().train()
    return model, (torch.randint(0, 50000, (4, 256), device="cuda"),)


MODELS = {
    "resnet50": _resnet50,
    "bert": _bert,
    "gpt": _gpt,
    "vit": _vit,
    "mobilenet": _mobilenet,
    "convnext": _convnext,
    "gpt2": _gpt2,
}
KINDS = tuple(
    f"{model}_{way}" for model in MODELS for way in ("fp32", "bf16", "bf16_compiled", "bf16_graph", "bf16_ddp")
)


def _graphed(step: Step) -> Step:
    """The whole step as one CUDA graph."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def build(kind: str) -> Step:
    """The step of a kind, warmed up."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    name, _, way = kind.partition("_")
    model, inputs = MODELS[name]()
    if way.endswith("_compiled"):
        model = torch.compile(model)  # type: ignore[assignment]
    if way.endswith("_ddp"):
        model = nn.parallel.DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    step = _training(model, inputs, torch.bfloat16 if way.startswith("bf16") else None)
    if way.endswith("_graph"):
        step = _graphed(step)
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    return step


def time_steps(step: Step) -> list[float]:
    """Milliseconds of blocks of steps without a profiler, a step each."""
    blocks = []
    for _ in range(BLOCKS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(TIMED):
            step()
        torch.cuda.synchronize()
        blocks.append((time.perf_counter() - start) * 1e3 / (TIMED))
    return blocks


def record_nsys(step: Step) -> None:
    """Steps inside ``cudaProfilerStart`` and ``Stop``, with ``emit_nvtx`` and a range around each."""
    with torch.cuda.profiler.profile(), torch.autograd.profiler.emit_nvtx(record_shapes=True):  # type: ignore[no-untyped-call]
        for number in range(STEPS):
            with torch.cuda.nvtx.range(f"iteration {number}"):
                step()
        torch.cuda.synchronize()


def record_profiler(step: Step, trace: Path) -> None:
    """The same steps under ``torch.profiler``."""
    from torch.profiler import ProfilerActivity, profile, schedule

    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        record_shapes=True,
        schedule=schedule(wait=0, warmup=2, active=STEPS, repeat=1),
    ) as prof:
        for _ in range(2 + STEPS):
            step()
            prof.step()
    plain = trace.with_suffix("")
    prof.export_chrome_trace(str(plain))
    trace.write_bytes(gzip.compress(plain.read_bytes(), 6))
    plain.unlink()


def train(step: Step) -> list[float]:
    """Steps for a recorder from outside, which records some of them; then the steps without a profiler again."""
    for _ in range(AROUND):
        step()
    return time_steps(step)


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--recorder", choices=("nsys", "profiler", "none"), required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rank = int(os.environ.get("RANK", "0"))
    with contextlib.ExitStack() as end:
        if args.kind.endswith("_ddp"):
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
            torch.distributed.init_process_group("nccl")
            end.callback(torch.distributed.destroy_process_group)
        step = build(args.kind)
        blocks = time_steps(step)
        if args.recorder == "nsys":
            record_nsys(step)
        elif args.recorder == "none":
            blocks += train(step)
        else:
            record_profiler(step, args.out / f"rank{rank}.pt.trace.json.gz")
    truth = {
        "kind": args.kind,
        "recorder": args.recorder,
        "rank": rank,
        "unprofiled_step_ms": statistics.median(blocks),
        "blocks_ms": blocks,
        "steps": STEPS,
        "torch": torch.__version__,
        "gpu": torch.cuda.get_device_name(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    (args.out / f"truth.{args.recorder}.{rank}.json").write_text(json.dumps(truth, indent=1) + "\n")


if __name__ == "__main__":
    main()
