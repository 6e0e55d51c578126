"""Eleven models of torchvision, transformers and timm with random weights, for a planner that does not know them.

`LIBRARY_MODELS` were opened on 2026-11-23, and rules were made with them open since; `LATER_MODELS` were recorded on
2026-11-24, after those rules.

They are as their libraries write them: modules that are called with keywords and give tuples, attention with a bias,
losses inside of the model. Each is imported when it is built, so that a library that is missing costs its models alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class LibraryModel:
    """A model with its batch.

    Attributes:
        name: of its recording's folder.
        batch_size: recorded; odd sizes are among the others.
        size: side of its images, or tokens of its samples.
        optimizer: recorded, as the planner names it.
        units: pattern of the paths of the modules that are checkpointed and offloaded.
        build: makes it.
        batch: so many samples of a size.
        words: whether a sample is a row of tokens.
    """

    name: str
    batch_size: int
    size: int
    optimizer: str
    units: str
    build: Callable[[], nn.Module]
    batch: Callable[[int, int], tuple[Tensor, ...]]
    words: bool = False

    def loss(self, model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        """Of the model itself where it has one, else cross entropy."""
        if self.words:
            *inputs, labels = batch
            found: Tensor = model(*inputs, labels=labels).loss
            return found
        images, labels = batch
        return functional.cross_entropy(model(images), labels)


def _torchvision(name: str) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        import torchvision

        model: nn.Module = getattr(torchvision.models, name)(weights=None)
        return model

    return build


def _opt() -> nn.Module:
    from transformers import OPTConfig, OPTForCausalLM

    return OPTForCausalLM(OPTConfig(num_hidden_layers=8, use_cache=False))  # type: ignore[no-any-return]


def _t5() -> nn.Module:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(use_cache=False, decoder_start_token_id=0)
    return T5ForConditionalGeneration(config)  # type: ignore[no-any-return]


def _llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, use_cache=False
    )
    return LlamaForCausalLM(config)  # type: ignore[no-any-return]


def _distilbert() -> nn.Module:
    from transformers import DistilBertConfig, DistilBertForMaskedLM

    return DistilBertForMaskedLM(DistilBertConfig())  # type: ignore[no-any-return]


def _timm(name: str) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        import timm

        model: nn.Module = timm.create_model(name, pretrained=False)
        return model

    return build


def _video() -> nn.Module:
    import torchvision

    return torchvision.models.video.r3d_18(weights=None)  # type: ignore[no-any-return]


def _clips(n: int, side: int) -> tuple[Tensor, ...]:
    return torch.randn(n, 3, 8, side, side), torch.randint(400, (n,))


def _pictures(n: int, side: int) -> tuple[Tensor, ...]:
    return torch.randn(n, 3, side, side), torch.randint(1000, (n,))


def _causal(vocabulary: int) -> Callable[[int, int], tuple[Tensor, ...]]:
    def batch(n: int, tokens: int) -> tuple[Tensor, ...]:
        words = torch.randint(10, vocabulary, (n, tokens))
        return words, torch.ones_like(words), words

    return batch


def _pairs(n: int, tokens: int) -> tuple[Tensor, ...]:
    words = torch.randint(10, 32000, (n, tokens))
    return words, torch.ones_like(words), torch.randint(10, 32000, (n, tokens))


LIBRARY_MODELS: tuple[LibraryModel, ...] = (
    LibraryModel(
        "densenet121", 32, 224, "momentum", r"features\.denseblock\d+", _torchvision("densenet121"), _pictures
    ),
    LibraryModel("t5_small", 16, 128, "adamw", r"(en|de)coder\.block\.\d+", _t5, _pairs, words=True),
    LibraryModel("swin_t", 32, 224, "adamw", r"features\.[1357]\.\d+", _torchvision("swin_t"), _pictures),
    LibraryModel("opt", 8, 256, "adamw", r"model\.decoder\.layers\.\d+", _opt, _causal(50000), words=True),
    LibraryModel(
        "efficientnet_b0", 48, 224, "adam", r"features\.[1-7]\.\d+", _torchvision("efficientnet_b0"), _pictures
    ),
)

LATER_MODELS: tuple[LibraryModel, ...] = (
    LibraryModel("llama", 8, 256, "adamw", r"model\.layers\.\d+", _llama, _causal(31000), words=True),
    LibraryModel(
        "convnext_tiny", 32, 224, "adamw", r"features\.[1357]\.\d+", _torchvision("convnext_tiny"), _pictures
    ),
    LibraryModel(
        "distilbert", 24, 128, "adam", r"distilbert\.transformer\.layer\.\d+", _distilbert, _causal(30000), words=True
    ),
    LibraryModel(
        "regnet_y_1_6gf", 48, 224, "momentum", r"trunk_output\.block\d\.block\d-\d+", _torchvision("regnet_y_1_6gf"),
        _pictures,
    ),
    LibraryModel("r3d_18", 16, 112, "sgd", r"layer\d\.\d", _video, _clips),
    LibraryModel("mobilevit_s", 32, 256, "adamw", r"stages\.\d\.\d+", _timm("mobilevit_s"), _pictures),
)  # fmt: skip


def unit_paths(model: LibraryModel, built: Any) -> list[str]:
    """Paths of the modules that are checkpointed and offloaded, in the order of the model."""
    return [path for path, _ in built.named_modules() if re.fullmatch(model.units, path)]
