"""Models that no rule, table or constant was made on, with kernels that were not measured until now.

They were named and split before any was run on a GPU: rules may be made with `OPENED`, and `HELD_OUT` says what they
are worth. Each half has models that scatter rows, convolve in 3-D, recur, and convolve depthwise.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .subjects import Subject, _image_loss, _images, _text_loss, _timm, _tokens, _torchvision, _transformers

_NODES, _EDGES, _FEATURES, _NODE_CLASSES = 30_000, 360_000, 128, 40


def _graph(batch_size: int) -> list[Tensor]:
    """A graph of ``batch_size`` nodes: features, edges and classes."""
    edges = torch.randint(0, batch_size, (2, _EDGES * batch_size // _NODES))
    return [torch.randn(batch_size, _FEATURES), edges, torch.randint(0, _NODE_CLASSES, (batch_size,))]


def _graph_loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
    features, edges, labels = batch
    return F.cross_entropy(model(features, edges), labels)


def _geometric(name: str, hidden: int, layers: int, **settings: Any) -> nn.Module:
    import torch_geometric.nn

    kind = getattr(torch_geometric.nn, name)
    model: nn.Module = kind(_FEATURES, hidden, layers, _NODE_CLASSES, **settings)
    return model


def _of_graph(name: str, kind: str, nodes: int, hidden: int = 256, layers: int = 3, **settings: Any) -> Subject:
    build = functools.partial(_geometric, kind, hidden, layers, **settings)
    return Subject(f"geometric/{name}", nodes, build, _graph, _graph_loss)


def _of_images(library: str, name: str, batch_size: int, size: int = 224) -> Subject:
    build = functools.partial(_torchvision if library == "torchvision" else _timm, name)
    return Subject(f"{library}/{name}", batch_size, build, functools.partial(_images, size=size), _image_loss)


def _clips(batch_size: int, frames: int, size: int) -> list[Tensor]:
    return [torch.randn(batch_size, 3, frames, size, size), torch.randint(0, 400, (batch_size,))]


def _video(name: str) -> nn.Module:
    import torchvision

    model: nn.Module = getattr(torchvision.models.video, name)()
    return model


def _of_clips(name: str, batch_size: int, frames: int, size: int) -> Subject:
    batch = functools.partial(_clips, frames=frames, size=size)
    return Subject(f"torchvision/{name}", batch_size, functools.partial(_video, name), batch, _image_loss)


def _of_text(name: str, batch_size: int, length: int, model: str, config: str, **settings: Any) -> Subject:
    build = functools.partial(_transformers, model, config, **settings)
    return Subject(f"transformers/{name}", batch_size, build, functools.partial(_tokens, length=length), _text_loss)


class _Words(nn.Module):
    """Embedding, recurrent layers, and a classifier of each word."""

    def __init__(self, kind: str, width: int, layers: int, classes: int, both: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(8000, width)
        self.recurrent = getattr(nn, kind)(width, width, layers, batch_first=True, bidirectional=both, dropout=0.1)
        self.head = nn.Linear(width * (1 + both), classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits by batch, class and word."""
        logits: Tensor = self.head(self.recurrent(self.embedding(tokens))[0])
        return logits.transpose(1, 2)


def _labelled_tokens(batch_size: int, length: int, classes: int) -> list[Tensor]:
    return [torch.randint(0, 8000, (batch_size, length)), torch.randint(0, classes, (batch_size, length))]


def _of_words(
    name: str, batch_size: int, length: int, kind: str, width: int, layers: int, classes: int, both: bool = False
) -> Subject:
    build = functools.partial(_Words, kind, width, layers, classes, both)
    batch = functools.partial(_labelled_tokens, length=length, classes=classes)
    return Subject(f"own/{name}", batch_size, build, batch, _image_loss)


class _Sound(nn.Module):
    """Two 1-D convolutions over a spectrogram, GRU layers in both directions, letters by CTC."""

    def __init__(self, bands: int = 80, width: int = 320, letters: int = 32) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv1d(bands, width, 5, 2, 2), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, width, 5, 1, 2), nn.BatchNorm1d(width), nn.ReLU(),
        )  # fmt: skip
        self.recurrent = nn.GRU(width, width, 3, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, letters)

    def forward(self, bands: Tensor) -> Tensor:
        """Logits of each half frame."""
        hidden = self.convolutions(bands).transpose(1, 2)
        logits: Tensor = self.head(self.recurrent(hidden)[0])
        return logits


def _sound(batch_size: int) -> list[Tensor]:
    return [torch.randn(batch_size, 80, 400), torch.randint(1, 32, (batch_size, 30))]


def _letters_loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
    logits = model(batch[0])
    frames, letters = (
        torch.full((len(logits),), size, dtype=torch.long) for size in (logits.shape[1], batch[1].shape[1])
    )
    return F.ctc_loss(logits.float().log_softmax(-1).transpose(0, 1), batch[1], frames, letters)


class _Deformed(nn.Module):
    """Three deformable convolutions of torchvision, an extension with kernels of its own, between plain ones."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        from torchvision.ops import DeformConv2d

        self.first = nn.Conv2d(3, width, 7, 4, 3)
        self.offsets = nn.ModuleList(nn.Conv2d(width, 18, 3, 1, 1) for _ in range(3))
        self.deformed = nn.ModuleList(DeformConv2d(width, width, 3, 1, 1) for _ in range(3))
        self.plain = nn.ModuleList(nn.Conv2d(width, width, 3, 1, 1) for _ in range(3))
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(3))
        self.head = nn.Linear(width, 1000)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of each image."""
        x = self.first(images)
        for offsets, deformed, plain, norm in zip(self.offsets, self.deformed, self.plain, self.norms, strict=True):
            x = F.relu(norm(plain(F.relu(deformed(x, offsets(x))))))
        logits: Tensor = self.head(x.mean((2, 3)))
        return logits


_EXPERTS = {"num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "vocab_size": 16000}
_SMALL = {"num_hidden_layers": 6, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048}

OPENED: list[Subject] = [
    _of_graph("gcn", "GCN", 30_000),
    _of_clips("mc3_18", 8, 16, 112),
    _of_words("gru", 64, 128, "GRU", 512, 2, 8000),
    _of_images("torchvision", "mobilenet_v2", 96),
    _of_images("timm", "dla34", 48),
    _of_graph("gat", "GAT", 15_000, 128, heads=4),
    _of_clips("r2plus1d_18", 4, 8, 112),
    _of_words("tagger", 128, 48, "LSTM", 256, 2, 32, both=True),
    _of_images("timm", "convnextv2_nano", 48),
    _of_text("gpt_neox", 8, 256, "GPTNeoXForCausalLM", "GPTNeoXConfig", vocab_size=16000, **_SMALL),
    _of_text(
        "olmoe", 4, 256, "OlmoeForCausalLM", "OlmoeConfig", intermediate_size=512, num_experts=8,
        num_experts_per_tok=2, **_EXPERTS,
    ),
    _of_images("timm", "mixnet_s", 24),
    Subject("own/deformed", 32, _Deformed, _images, _image_loss),
    _of_images("timm", "twins_svt_small", 32),
    _of_text("albert", 8, 128, "AlbertForMaskedLM", "AlbertConfig", **_SMALL),
]  # fmt: skip
"""Rules may be made with these."""

HELD_OUT: list[Subject] = [
    _of_graph("gin", "GIN", 30_000),
    _of_clips("s3d", 4, 16, 224),
    _of_images("timm", "sequencer2d_s", 24),
    _of_images("torchvision", "mnasnet1_0", 96),
    _of_text(
        "bart", 8, 128, "BartForConditionalGeneration", "BartConfig", encoder_layers=4, decoder_layers=4, d_model=512,
        encoder_ffn_dim=2048, decoder_ffn_dim=2048, encoder_attention_heads=8, decoder_attention_heads=8,
    ),
    _of_graph("graphsage", "GraphSAGE", 12_000, 192, aggr="mean"),
    _of_clips("mvit_v1_b", 2, 16, 224),
    Subject("own/sound", 32, _Sound, _sound, _letters_loss),
    _of_images("timm", "edgenext_small", 48),
    _of_images("timm", "resmlp_12_224", 64),
]  # fmt: skip
"""Opened when the rules were written."""

BY_NAME: dict[str, Subject] = {subject.name: subject for subject in (*OPENED, *HELD_OUT)}
