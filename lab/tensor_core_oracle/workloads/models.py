"""Training steps of whole models in four precisions: the demo's six, torchvision's, timm's and transformers'.

Weights are random: nothing is downloaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .registry import Call, add

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "demo"))

PRECISIONS = ("fp32", "tf32", "amp-fp16", "amp-bf16")
AUTOCAST = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}
DEMO_BATCH = {"mlp": 512, "lenet": 512, "alexnet": 64, "vgg16": 16, "resnet50": 16, "custom": 16}
IMAGES = {
    "torchvision/resnet50-channels-last": ("resnet50", 16),
    "torchvision/vgg16_bn": ("vgg16_bn", 8),
    "torchvision/mobilenet_v3_large": ("mobilenet_v3_large", 16),
    "torchvision/convnext_tiny": ("convnext_tiny", 8),
    "torchvision/vit_b_16": ("vit_b_16", 8),
    "torchvision/efficientnet_b0": ("efficientnet_b0", 16),
    "timm/swin_tiny": ("swin_tiny_patch4_window7_224", 8),
    "timm/resnext50": ("resnext50_32x4d", 16),
}
TEXTS = ("transformers/bert", "transformers/gpt2", "transformers/llama", "transformers/t5")


def _demo(model: str, precision: str) -> Callable[[], Call]:
    def build() -> Call:
        from models import MODELS  # type: ignore[attr-defined, unused-ignore]
        from training import Training

        spec: Any = MODELS[model]
        shape = spec.full.image_shape
        with torch.device("cuda"):
            module = spec.build(shape, spec.num_classes)
        training = Training(module, torch.device("cuda"), precision)
        images = torch.randint(0, 256, (DEMO_BATCH[model], *shape), dtype=torch.uint8)
        labels = torch.randint(0, spec.num_classes, (DEMO_BATCH[model],))

        def call() -> object:
            return training.step(*training.to_device(images, labels))

        return call

    return build


def _step(module: nn.Module, precision: str, loss: Callable[[], torch.Tensor]) -> Call:
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cuda", enabled=precision == "amp-fp16")

    def call() -> None:
        optimizer.zero_grad()
        dtype = AUTOCAST.get(precision)
        with torch.autocast("cuda", dtype=dtype, enabled=dtype is not None):
            value = loss()
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()

    return call


def _image_model(name: str, precision: str) -> Callable[[], Call]:
    def build() -> Call:
        model, batch = IMAGES[name]
        with torch.device("cuda"):
            if name.startswith("timm/"):
                import timm

                module: nn.Module = timm.create_model(model, pretrained=False)
            else:
                import torchvision

                module = getattr(torchvision.models, model)()
        images = torch.randn(batch, 3, 224, 224, device="cuda")
        if "channels-last" in name:
            module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            images = images.contiguous(memory_format=torch.channels_last)
        labels = torch.randint(0, 1000, (batch,), device="cuda")
        return _step(module.train(), precision, lambda: F.cross_entropy(module(images), labels))

    return build


def _text_model(name: str, precision: str) -> Callable[[], Call]:
    def build() -> Call:
        import transformers

        t: Any = transformers
        with torch.device("cuda"):
            if name.endswith("bert"):
                module: Any = t.BertForMaskedLM(t.BertConfig(num_hidden_layers=4))
            elif name.endswith("gpt2"):
                module = t.GPT2LMHeadModel(t.GPT2Config(n_layer=4))
            elif name.endswith("t5"):
                module = t.T5ForConditionalGeneration(
                    t.T5Config(num_layers=3, vocab_size=8192, decoder_start_token_id=0)
                )
            else:
                module = t.LlamaForCausalLM(
                    t.LlamaConfig(
                        hidden_size=512,
                        intermediate_size=1376,
                        num_hidden_layers=4,
                        num_attention_heads=8,
                        num_key_value_heads=4,
                        vocab_size=8192,
                    )
                )
        module = module.to("cuda")
        tokens = torch.randint(0, 8000, (4, 128), device="cuda")
        return _step(module.train(), precision, lambda: module(input_ids=tokens, labels=tokens).loss)

    return build


for _precision in PRECISIONS:
    for _model in DEMO_BATCH:
        add(
            f"demo/{_model}/{_precision}",
            "demo",
            _demo(_model, _precision),
            tf32=_precision == "tf32",
            model=f"demo/{_model}",
            precision=_precision,
        )
for _precision in PRECISIONS:
    for _model in IMAGES:
        add(
            f"{_model}/{_precision}",
            "images",
            _image_model(_model, _precision),
            tf32=_precision == "tf32",
            model=_model,
            precision=_precision,
        )
for _precision in PRECISIONS:
    for _model in TEXTS:
        add(
            f"{_model}/{_precision}",
            "texts",
            _text_model(_model, _precision),
            tf32=_precision == "tf32",
            model=_model,
            precision=_precision,
        )
