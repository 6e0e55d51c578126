"""Workloads that the rules were not written with: drawn shapes, and models of other families.

They were recorded after the rules had been settled on the other groups, and say how the rules do on names not seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .attention import BACKENDS, _attention
from .matmul import _mm
from .models import _step
from .numerics import FORMATS, normal
from .registry import Call, add

OPS, MODELS = "holdout-ops", "holdout-models"
SEED = 7
_draw = random.Random(SEED)


def _convolution(
    dims: int,
    channels: int,
    filters: int,
    size: int,
    width: int,
    groups: int,
    stride: int,
    last: bool,
    dtype: torch.dtype,
) -> Callable[[], Call]:
    def build() -> Call:
        make: Any = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
        module = make(
            channels, filters, size, stride=stride, padding=size // 2, groups=groups, device="cuda", dtype=dtype
        )
        x = normal(4, channels, *[width] * dims, dtype=dtype)
        if last and dims == 2:
            module, x = module.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
        x.requires_grad_(True)

        def call() -> None:
            module.zero_grad()
            x.grad = None
            module(x).sum().backward()

        return call

    return build


def _recurrent(kind: str, inputs: int, hidden: int, batch: int, dtype: torch.dtype) -> Callable[[], Call]:
    def build() -> Call:
        module: Any = getattr(nn, kind)(inputs, hidden, batch_first=True, device="cuda", dtype=dtype)
        x = normal(batch, 9, inputs, dtype=dtype, grad=True)

        def call() -> None:
            module.zero_grad()
            module(x)[0].sum().backward()

        return call

    return build


for _name, _dtype, _tf32 in FORMATS:
    for _ in range(30):
        _m, _n, _k = (
            _draw.choice((_draw.randint(1, 64), _draw.randint(64, 700), 8 * _draw.randint(8, 700))) for _ in range(3)
        )
        _layout = _draw.choice(("nn", "nt", "tn", "tt"))
        add(f"holdout/mm/{_m}x{_n}x{_k}/{_layout}/{_name}", OPS, _mm(_m, _n, _k, _dtype, _layout), tf32=_tf32)
    for _ in range(25):
        _groups = _draw.choice((1, 1, 1, 4, 24))
        _channels, _filters = (_groups * _draw.choice((1, 3, 8, 16, 40)) for _ in range(2))
        _settings = (
            _draw.choice((1, 2, 2, 2, 3)),
            _channels,
            _filters,
            _draw.choice((1, 3, 5, 7, 9)),
            _draw.randint(12, 40),
            _groups,
            _draw.choice((1, 1, 2)),
        )
        _last = _draw.random() < 0.5
        add(
            f"holdout/conv/{'x'.join(map(str, _settings))}/{'last' if _last else 'first'}/{_name}",
            OPS,
            _convolution(*_settings, _last, _dtype),
            tf32=_tf32,
        )
    for _backend, _value in BACKENDS.items():
        if _dtype == torch.float32 and _backend in ("flash", "cudnn"):
            continue
        for _ in range(3):
            _shape = (_draw.randint(1, 5), _draw.randint(1, 6), _draw.randint(20, 400), 8 * _draw.randint(2, 20))
            add(
                f"holdout/sdpa/{_backend}/{'x'.join(map(str, _shape))}/{_name}",
                OPS,
                _attention(_value, _shape, _dtype, False, False, 0.0),
                tf32=_tf32,
            )
    for _kind in ("LSTM", "GRU"):
        _sizes = (_draw.randint(10, 300), 32 * _draw.randint(1, 20), _draw.randint(1, 64))
        add(
            f"holdout/{_kind}/{'x'.join(map(str, _sizes))}/{_name}", OPS, _recurrent(_kind, *_sizes, _dtype), tf32=_tf32
        )


def _vision(make: Callable[[], nn.Module], shape: tuple[int, ...], precision: str) -> Callable[[], Call]:
    def build() -> Call:
        with torch.device("cuda"):
            module = make()
        images = torch.randn(*shape, device="cuda")

        def loss() -> torch.Tensor:
            out: Any = module(images)
            out = out["out"] if isinstance(out, dict) else out
            return F.cross_entropy(out, torch.zeros((out.shape[0], *out.shape[2:]), dtype=torch.long, device="cuda"))

        return _step(module.train(), precision, loss)

    return build


def _torchvision(name: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import torchvision

        package: Any = torchvision.models
        for part in name.split(".")[:-1]:
            package = getattr(package, part)
        settings: dict[str, Any] = {"weights": None, "weights_backbone": None} if "segmentation" in name else {}
        module: nn.Module = getattr(package, name.split(".")[-1])(**settings)
        return module

    return make


def _timm(name: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import timm

        module: nn.Module = timm.create_model(name, pretrained=False)
        return module

    return make


def _text(name: str, precision: str) -> Callable[[], Call]:
    def build() -> Call:
        import transformers

        t: Any = transformers
        with torch.device("cuda"):
            if name == "opt":
                module: Any = t.OPTForCausalLM(
                    t.OPTConfig(
                        hidden_size=512,
                        ffn_dim=2048,
                        num_hidden_layers=3,
                        num_attention_heads=8,
                        vocab_size=8192,
                        word_embed_proj_dim=512,
                    )
                )
            else:
                module = t.MixtralForCausalLM(
                    t.MixtralConfig(
                        hidden_size=256,
                        intermediate_size=512,
                        num_hidden_layers=2,
                        num_attention_heads=8,
                        num_key_value_heads=4,
                        num_local_experts=4,
                        vocab_size=8192,
                    )
                )
        module = module.to("cuda")
        tokens = torch.randint(2, 8000, (4, 96), device="cuda")
        return _step(module.train(), precision, lambda: module(input_ids=tokens, labels=tokens).loss)

    return build


VISION: tuple[tuple[str, Callable[[], nn.Module], tuple[int, ...], tuple[str, ...]], ...] = (
    (
        "torchvision/squeezenet1_1",
        _torchvision("squeezenet1_1"),
        (16, 3, 160, 160),
        ("fp32", "tf32", "amp-fp16", "amp-bf16"),
    ),
    ("torchvision/shufflenet", _torchvision("shufflenet_v2_x1_0"), (16, 3, 160, 160), ("tf32", "amp-bf16")),
    ("torchvision/fcn_resnet50", _torchvision("segmentation.fcn_resnet50"), (4, 3, 160, 160), ("fp32", "amp-fp16")),
    ("torchvision/r3d_18", _torchvision("video.r3d_18"), (2, 3, 8, 80, 80), ("tf32", "amp-fp16", "amp-bf16")),
    ("timm/mixer_s16", _timm("mixer_s16_224"), (8, 3, 224, 224), ("tf32", "amp-bf16")),
    ("timm/deit_tiny", _timm("deit_tiny_patch16_224"), (8, 3, 224, 224), ("fp32", "amp-fp16")),
)
for _model, _make, _shape3, _precisions in VISION:
    for _precision in _precisions:
        add(
            f"holdout/{_model}/{_precision}",
            MODELS,
            _vision(_make, _shape3, _precision),
            tf32=_precision == "tf32",
            model=_model,
            precision=_precision,
        )
for _model in ("opt", "mixtral"):
    for _precision in ("fp32", "amp-bf16"):
        add(
            f"holdout/transformers/{_model}/{_precision}",
            MODELS,
            _text(_model, _precision),
            model=f"transformers/{_model}",
            precision=_precision,
        )
