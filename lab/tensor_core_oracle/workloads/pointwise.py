"""Everything in a training that is no matrix product: it must be distinguished from one for any kernel name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .numerics import normal
from .registry import Call, add

GROUP = "pointwise"
DTYPES = (("fp32", torch.float32), ("fp16", torch.float16), ("bf16", torch.bfloat16))


def _forward(
    call: Callable[[torch.Tensor], object], dtype: torch.dtype, shape: tuple[int, ...] = (64, 1024)
) -> Callable[[], Call]:
    def build() -> Call:
        x = normal(*shape, dtype=dtype)
        return lambda: call(x)

    return build


def _backward(
    call: Callable[[torch.Tensor], Any], dtype: torch.dtype, shape: tuple[int, ...] = (64, 1024)
) -> Callable[[], Call]:
    def build() -> Call:
        x = normal(*shape, dtype=dtype, grad=True)

        def step() -> None:
            x.grad = None
            call(x).sum().backward()

        return step

    return build


def _module(
    make: Callable[[], nn.Module], dtype: torch.dtype, shape: tuple[int, ...], channels_last: bool = False
) -> Callable[[], Call]:
    def build() -> Call:
        module = make().to("cuda", dtype)
        x = normal(*shape, dtype=dtype)
        if channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        x.requires_grad_(True)

        def step() -> None:
            module.zero_grad()
            x.grad = None
            module(x).sum().backward()

        return step

    return build


FORWARD: dict[str, Callable[[torch.Tensor], object]] = {
    "add": lambda x: x + x,
    "where": lambda x: torch.where(x > 0, x, -x),
    "clamp": lambda x: x.clamp(-1, 1),
    "copy-transposed": lambda x: x.t().contiguous(),
    "cast": lambda x: x.to(torch.float32 if x.dtype != torch.float32 else torch.float16),
    "cat": lambda x: torch.cat([x, x, x], 1),
    "stack": lambda x: torch.stack([x, x]),
    "sum": lambda x: x.sum(),
    "sum-rows": lambda x: x.sum(1),
    "sum-columns": lambda x: x.sum(0),
    "mean": lambda x: x.mean(),
    "var": lambda x: x.var(1),
    "norm": lambda x: torch.linalg.vector_norm(x),
    "argmax": lambda x: x.argmax(1),
    "max": lambda x: x.max(1),
    "all": lambda x: (x > 0).all(),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(0),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "sort": lambda x: x.sort(1),
    "sort-long": lambda x: x.flatten().sort(),
    "topk": lambda x: x.topk(5, 1),
    "median": lambda x: x.median(1),
    "unique": lambda x: torch.unique((x * 3).int()),
    "nonzero": lambda x: (x > 1).nonzero(),
    "masked-select": lambda x: x[x > 1],
    "masked-fill": lambda x: x.masked_fill(x > 0, 0),
    "index": lambda x: x[torch.arange(0, 64, 2, device="cuda")],
    "index-put": lambda x: x.clone().index_put_((torch.arange(8, device="cuda"),), x[:8], accumulate=True),
    "gather": lambda x: x.gather(1, torch.zeros(64, 3, dtype=torch.long, device="cuda")),
    "scatter-add": lambda x: x.clone().scatter_add_(1, torch.zeros(64, 3, dtype=torch.long, device="cuda"), x[:, :3]),
    "roll": lambda x: x.roll(3, 1),
    "flip": lambda x: x.flip(1),
    "tril": lambda x: x.tril(),
    "diag": lambda x: torch.diag(x[0]),
    "random": lambda x: torch.rand_like(x) + torch.randn_like(x),
    "bernoulli": lambda x: torch.bernoulli(torch.full_like(x, 0.5)),
    "randperm": lambda x: torch.randperm(5000, device="cuda"),
    "multinomial": lambda x: torch.multinomial(x.float().softmax(1), 3, replacement=True),
    "isfinite": lambda x: torch.isfinite(x).all(),
    "histogram": lambda x: torch.histc(x.float(), 20),
    "bincount": lambda x: torch.bincount((x.float().abs() * 4).long().flatten()),
    "searchsorted": lambda x: torch.searchsorted(torch.linspace(-1, 1, 50, device="cuda"), x.float()),
    "interpolate": lambda x: F.interpolate(x.view(1, 16, 64, 64), scale_factor=2, mode="bilinear"),
    "nearest": lambda x: F.interpolate(x.view(1, 16, 64, 64), scale_factor=2),
    "pad": lambda x: F.pad(x.view(1, 16, 64, 64), (1, 1, 1, 1), mode="reflect"),
    "unfold": lambda x: F.unfold(x.view(1, 16, 64, 64), 3),
    "pixel-shuffle": lambda x: F.pixel_shuffle(x.view(1, 16, 64, 64), 2),
    "repeat-interleave": lambda x: x.repeat_interleave(2, 0),
    "meshgrid": lambda x: torch.arange(1000, device="cuda") * 2,
    "fill": lambda x: torch.zeros_like(x).fill_(3),
    "cdist": lambda x: torch.cdist(x.float(), x.float(), compute_mode="donot_use_mm_for_euclid_dist"),
}
BACKWARD: dict[str, Callable[[torch.Tensor], Any]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "leaky-relu": F.leaky_relu,
    "hardswish": F.hardswish,
    "glu": F.glu,
    "softmax": lambda x: x.softmax(1),
    "softmax-long": lambda x: x.view(4, -1).softmax(1),
    "log-softmax": lambda x: x.log_softmax(1),
    "softmax-columns": lambda x: x.softmax(0),
    "dropout": lambda x: F.dropout(x, 0.3),
    "layer-norm": lambda x: F.layer_norm(x, (1024,)),
    "rms-norm": lambda x: F.rms_norm(x, (1024,)),
    "cross-entropy": lambda x: F.cross_entropy(x, torch.zeros(64, dtype=torch.long, device="cuda")),
    "bce": lambda x: F.binary_cross_entropy_with_logits(x, torch.ones_like(x)),
    "mse": lambda x: F.mse_loss(x, torch.ones_like(x)),
    "smooth-l1": lambda x: F.smooth_l1_loss(x, torch.ones_like(x)),
    "kl": lambda x: F.kl_div(x.log_softmax(1), torch.full_like(x, 1e-3), reduction="batchmean"),
    "pow": lambda x: x.pow(2).mean(1),
    "gather": lambda x: x.gather(1, torch.zeros(64, 3, dtype=torch.long, device="cuda")),
    "index": lambda x: x[torch.arange(0, 64, 2, device="cuda").repeat(3)],
    "cumsum": lambda x: x.cumsum(1),
    "ctc": lambda x: F.ctc_loss(
        x.float().view(64, 8, 128).log_softmax(2),
        torch.ones(8, 5, dtype=torch.long, device="cuda"),
        torch.full((8,), 64),
        torch.full((8,), 5),
    ),
}
MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "batch-norm2d": (lambda: nn.BatchNorm2d(64), (8, 64, 28, 28)),
    "batch-norm1d": (lambda: nn.BatchNorm1d(64), (128, 64)),
    "batch-norm3d": (lambda: nn.BatchNorm3d(16), (2, 16, 8, 14, 14)),
    "group-norm": (lambda: nn.GroupNorm(8, 64), (8, 64, 28, 28)),
    "instance-norm": (lambda: nn.InstanceNorm2d(64, affine=True), (8, 64, 28, 28)),
    "layer-norm": (lambda: nn.LayerNorm(768), (64, 768)),
    "rms-norm": (lambda: nn.RMSNorm(768), (64, 768)),
    "prelu": (lambda: nn.PReLU(64), (8, 64, 28, 28)),
    "max-pool": (lambda: nn.MaxPool2d(3, 2), (8, 64, 28, 28)),
    "average-pool": (lambda: nn.AvgPool2d(2), (8, 64, 28, 28)),
    "adaptive-average": (lambda: nn.AdaptiveAvgPool2d(6), (8, 64, 28, 28)),
    "adaptive-max": (lambda: nn.AdaptiveMaxPool2d(3), (8, 64, 28, 28)),
    "global-average": (lambda: nn.AdaptiveAvgPool2d(1), (8, 64, 28, 28)),
    "max-pool1d": (lambda: nn.MaxPool1d(2), (8, 64, 128)),
    "max-pool3d": (lambda: nn.MaxPool3d(2), (2, 16, 8, 14, 14)),
    "average-pool3d": (lambda: nn.AvgPool3d(2), (2, 16, 8, 14, 14)),
    "local-response": (lambda: nn.LocalResponseNorm(5), (8, 64, 28, 28)),
    "dropout2d": (lambda: nn.Dropout2d(0.2), (8, 64, 28, 28)),
    "upsample": (lambda: nn.Upsample(scale_factor=2, mode="bicubic"), (2, 16, 28, 28)),
    "reflection": (lambda: nn.ReflectionPad2d(2), (8, 64, 28, 28)),
}
for _name, _dtype in DTYPES:
    for _kind, _call in FORWARD.items():
        add(f"{_kind}/{_name}", GROUP, _forward(_call, _dtype))
    for _kind, _graph in BACKWARD.items():
        add(f"backward/{_kind}/{_name}", GROUP, _backward(_graph, _dtype))
    for _kind, (_make, _shape) in MODULES.items():
        add(f"module/{_kind}/{_name}", GROUP, _module(_make, _dtype, _shape))
        if len(_shape) == 4 and ("2d" in _kind or "pool" in _kind):
            add(f"module/{_kind}/last/{_name}", GROUP, _module(_make, _dtype, _shape, True))


def _embedding(dtype: torch.dtype, bag: bool) -> Callable[[], Call]:
    def build() -> Call:
        module: Any = (nn.EmbeddingBag if bag else nn.Embedding)(1000, 128, device="cuda", dtype=dtype)
        tokens = torch.randint(0, 1000, (32, 64), device="cuda")

        def step() -> None:
            module.zero_grad()
            module(tokens).sum().backward()

        return step

    return build


def _optimizer(kind: str, settings: dict[str, Any]) -> Callable[[], Call]:
    def build() -> Call:
        weights = [normal(n, n, grad=True) for n in (16, 64, 300)]
        for weight in weights:
            weight.grad = torch.ones_like(weight)
        optimizer = getattr(torch.optim, kind)(weights, lr=1e-3, **settings)
        return lambda: optimizer.step()

    return build


def _scaler() -> Call:
    weights = [normal(64, 64, grad=True) for _ in range(4)]
    optimizer, scaler = torch.optim.SGD(weights, lr=1e-3), torch.amp.GradScaler("cuda", init_scale=4.0)

    def step() -> None:
        optimizer.zero_grad()
        scaler.scale(torch.stack([w.sum() for w in weights]).sum()).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(weights, 1.0)
        scaler.step(optimizer)
        scaler.update()

    return step


for _name, _dtype in DTYPES:
    add(f"embedding/{_name}", GROUP, _embedding(_dtype, False))
add("embedding-bag/fp32", GROUP, _embedding(torch.float32, True))
for _kind, _settings in (
    ("SGD", {"momentum": 0.9}),
    ("Adam", {}),
    ("AdamW", {}),
    ("RMSprop", {}),
    ("Adagrad", {}),
    ("NAdam", {}),
):
    for _way in ("foreach", "for-loop", "fused"):
        if _way == "fused" and _kind not in ("SGD", "Adam", "AdamW"):
            continue
        _flags: dict[str, Any] = {"for-loop": {"foreach": False}}.get(_way, {_way: True})
        add(f"optimizer/{_kind}/{_way}", GROUP, _optimizer(_kind, {**_settings, **_flags}))
add("grad-scaler", GROUP, _scaler)


def _fft(two: bool) -> Callable[[], Call]:
    def build() -> Call:
        x = normal(8, 64, 64)
        return lambda: torch.fft.irfft2(torch.fft.rfft2(x)) if two else torch.fft.irfft(torch.fft.rfft(x))

    return build


add("fft/1d", GROUP, _fft(False))
add("fft/2d", GROUP, _fft(True))
