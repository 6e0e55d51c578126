"""The models that are trained: torchvision's, timm's and transformers', with random weights and synthetic batches.

The demo's six are recorded by `demo/record.py`; these are additional ones. Sizes are such that some steps are
paced by the GPU and some by the CPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Loss = Callable[[nn.Module, list[Tensor]], Tensor]


@dataclass(frozen=True)
class Subject:
    """A model with its batch: ``batch`` returns tensors on the CPU, ``loss`` takes them on the GPU."""

    name: str
    batch_size: int
    build: Callable[[], nn.Module]
    batch: Callable[[int], list[Tensor]]
    loss: Loss
    channels_last: bool = False


def _images(batch_size: int, size: int = 224) -> list[Tensor]:
    return [torch.randn(batch_size, 3, size, size), torch.randint(0, 1000, (batch_size,))]


def _image_loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
    images, labels = batch
    return F.cross_entropy(model(images), labels)


def _torchvision(name: str) -> nn.Module:
    import torchvision

    model: nn.Module = getattr(torchvision.models, name)()
    return model


def _timm(name: str) -> nn.Module:
    import timm

    model: nn.Module = timm.create_model(name, pretrained=False)
    return model


def _image(library: str, name: str, batch_size: int, suffix: str = "", channels_last: bool = False) -> Subject:
    build = functools.partial(_torchvision if library == "torchvision" else _timm, name)
    return Subject(f"{library}/{name}{suffix}", batch_size, build, _images, _image_loss, channels_last)


def _tokens(batch_size: int, length: int) -> list[Tensor]:
    return [torch.randint(10, 8000, (batch_size, length))]


def _text_loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
    loss: Tensor = model(input_ids=batch[0], labels=batch[0]).loss
    return loss


def _transformers(model: str, config: str, **settings: Any) -> nn.Module:
    import transformers

    made: nn.Module = getattr(transformers, model)(getattr(transformers, config)(**settings))
    return made


def _text(name: str, batch_size: int, length: int, model: str, config: str, **settings: Any) -> Subject:
    return Subject(
        f"transformers/{name}",
        batch_size,
        functools.partial(_transformers, model, config, **settings),
        functools.partial(_tokens, length=length),
        _text_loss,
    )


SUBJECTS = [
    _image("torchvision", "resnet18", 128),
    _image("torchvision", "resnet18", 8, "-b8"),
    _image("torchvision", "resnet18", 32, "-b32"),
    _image("torchvision", "resnet18", 512, "-b512"),
    _image("torchvision", "resnet50", 64, "-channels-last", channels_last=True),
    _image("torchvision", "mobilenet_v3_large", 64),
    _image("torchvision", "densenet121", 32),
    _image("torchvision", "convnext_tiny", 32),
    _image("torchvision", "efficientnet_b0", 64),
    _image("torchvision", "vit_b_16", 32),
    _image("torchvision", "swin_t", 32),
    _image("torchvision", "shufflenet_v2_x1_0", 32),
    _image("timm", "mixer_s16_224", 64),
    _image("timm", "deit_tiny_patch16_224", 64),
    _text("bert", 16, 128, "BertForMaskedLM", "BertConfig"),
    _text("gpt2", 4, 512, "GPT2LMHeadModel", "GPT2Config"),
    _text(
        "distilbert",
        4,
        64,
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        n_layers=4,
        dim=512,
        hidden_dim=2048,
        n_heads=8,
    ),
    _text("t5", 8, 128, "T5ForConditionalGeneration", "T5Config", decoder_start_token_id=0),
    _text(
        "llama",
        4,
        512,
        "LlamaForCausalLM",
        "LlamaConfig",
        hidden_size=1024,
        intermediate_size=2752,
        num_hidden_layers=8,
        num_attention_heads=16,
        num_key_value_heads=8,
        vocab_size=16384,
    ),
]
BY_NAME = {subject.name: subject for subject in SUBJECTS}
