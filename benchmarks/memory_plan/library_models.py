"""Five models of torchvision and transformers with random weights, which had no part in any rule of the planner.

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


def _pictures(n: int, side: int) -> tuple[Tensor, ...]:
    return torch.randn(n, 3, side, side), torch.randint(1000, (n,))


def _causal(n: int, tokens: int) -> tuple[Tensor, ...]:
    words = torch.randint(10, 50000, (n, tokens))
    return words, torch.ones_like(words), words


def _pairs(n: int, tokens: int) -> tuple[Tensor, ...]:
    words = torch.randint(10, 32000, (n, tokens))
    return words, torch.ones_like(words), torch.randint(10, 32000, (n, tokens))


LIBRARY_MODELS: tuple[LibraryModel, ...] = (
    LibraryModel(
        "densenet121", 32, 224, "momentum", r"features\.denseblock\d+", _torchvision("densenet121"), _pictures
    ),
    LibraryModel("t5_small", 16, 128, "adamw", r"(en|de)coder\.block\.\d+", _t5, _pairs, words=True),
    LibraryModel("swin_t", 32, 224, "adamw", r"features\.[1357]\.\d+", _torchvision("swin_t"), _pictures),
    LibraryModel("opt", 8, 256, "adamw", r"model\.decoder\.layers\.\d+", _opt, _causal, words=True),
    LibraryModel(
        "efficientnet_b0", 48, 224, "adam", r"features\.[1-7]\.\d+", _torchvision("efficientnet_b0"), _pictures
    ),
)


def unit_paths(model: LibraryModel, built: Any) -> list[str]:
    """Paths of the modules that are checkpointed and offloaded, in the order of the model."""
    return [path for path, _ in built.named_modules() if re.fullmatch(model.units, path)]
