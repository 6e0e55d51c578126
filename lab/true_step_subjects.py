"""The models whose true steps are measured (`true_step.py`): some that rules and constants were tuned on, some not.

Batches are such that about half of the steps are paced by the CPU.
"""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F
from precision_pairs.subjects import Subject, _image, _images, _text, _transformers
from torch import Tensor, nn


class _Lstm(nn.Module):
    """Embedding, three layers of LSTM, a classifier over the words: cuDNN's recurrent kernels on several streams."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(8000, 512)
        self.lstm = nn.LSTM(512, 512, num_layers=3, batch_first=True)
        self.head = nn.Linear(512, 8000)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of each token."""
        hidden, _ = self.lstm(self.embedding(tokens))
        logits: Tensor = self.head(hidden)
        return logits


class _Mlp(nn.Module):
    """Flattened images through six wide layers."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [3 * 32 * 32, 2048, 2048, 2048, 2048, 1000]
        layers = [part for a, b in itertools.pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
        self.layers = nn.Sequential(nn.Flatten(), *layers[:-1])

    def forward(self, images: Tensor) -> Tensor:
        """Logits of each image."""
        logits: Tensor = self.layers(images)
        return logits


class _UNet(nn.Module):
    """A small denoiser: convolutions with group norm and SiLU, two scales, skip connections."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList([self._block(width, width), self._block(width, 2 * width)])
        self.middle = self._block(2 * width, 2 * width)
        self.up = nn.ModuleList([self._block(4 * width, width), self._block(2 * width, width)])
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    @staticmethod
    def _block(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU(),
        )  # fmt: skip

    def forward(self, images: Tensor) -> Tensor:
        """The noise of each image."""
        x, kept = self.first(images), []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.middle(x)
        for block in self.up:
            x = block(torch.cat([F.interpolate(x, scale_factor=2.0), kept.pop()], dim=1))
        noise: Tensor = self.last(x)
        return noise


def _token_classes(batch_size: int) -> list[Tensor]:
    return [torch.randint(0, 8000, (batch_size, 64)), torch.randint(0, 8000, (batch_size, 64))]


def _token_loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
    return F.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())


def _small_images(batch_size: int) -> list[Tensor]:
    return _images(batch_size, 32)


def _class_loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
    return F.cross_entropy(model(batch[0]), batch[1])


def _noise_loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
    return F.mse_loss(model(batch[0]), batch[0])


def _speech(batch_size: int) -> list[Tensor]:
    return [torch.randn(batch_size, 80, 3000), torch.randint(10, 5000, (batch_size, 48))]


def _speech_loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
    loss: Tensor = model(input_features=batch[0], labels=batch[1]).loss
    return loss


_SMALL_GPT = {"n_layer": 6, "n_embd": 512, "n_head": 8}

TUNED = [
    _image("torchvision", "resnet50", 16, "-b16"),
    _image("torchvision", "resnet50", 96, "-b96"),
    _image("torchvision", "vit_b_16", 8, "-b8"),
    _image("torchvision", "vit_b_16", 64, "-b64"),
    _image("torchvision", "convnext_tiny", 32, "-b32"),
    _image("torchvision", "mobilenet_v3_large", 32, "-b32"),
    _text("bert-b4", 4, 128, "BertForMaskedLM", "BertConfig"),
    _text("bert-b32", 32, 128, "BertForMaskedLM", "BertConfig"),
    _text("gpt2-small", 4, 256, "GPT2LMHeadModel", "GPT2Config", **_SMALL_GPT),
    Subject("own/lstm", 64, _Lstm, _token_classes, _token_loss),
    Subject("own/mlp", 256, _Mlp, _small_images, _class_loss),
]
"""What the recorder's cost and the width of the intervals were fitted on."""

HELD_OUT = [
    _image("torchvision", "regnet_y_400mf", 32),
    _image("torchvision", "densenet121", 24, "-b24"),
    _image("torchvision", "resnext50_32x4d", 64),
    _image("torchvision", "swin_t", 16, "-b16"),
    _image("torchvision", "efficientnet_b0", 96, "-b96"),
    _image("torchvision", "vgg11", 64),
    _image("torchvision", "googlenet", 64),
    _image("timm", "convmixer_768_32", 16),
    _image("timm", "eva02_tiny_patch14_224", 48),
    _image("timm", "mobilevit_s", 48),
    _text("electra-small", 32, 128, "ElectraForMaskedLM", "ElectraConfig"),
    _text("opt", 8, 256, "OPTForCausalLM", "OPTConfig", num_hidden_layers=8),
    _text("t5-small", 4, 96, "T5ForConditionalGeneration", "T5Config", num_layers=4, decoder_start_token_id=0),
    Subject(
        "transformers/whisper-tiny",
        8,
        lambda: _transformers("WhisperForConditionalGeneration", "WhisperConfig"),
        _speech,
        _speech_loss,
    ),
    Subject("own/unet", 32, _UNet, lambda size: _images(size, 64), _noise_loss),
]
"""What no table, rule or constant of ours was fitted to: opened when those were written."""

BY_NAME = {subject.name: subject for subject in (*TUNED, *HELD_OUT)}
