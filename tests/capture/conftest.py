"""A small training that the capture tests profile for real, and readers of what it leaves behind."""

from __future__ import annotations

import gc
import gzip
import json
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")


class Block(torch.nn.Module):
    """Two named children, one of them used twice under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(4, 4, 3, padding=1)
        self.alias = self.conv
        self.norm = torch.nn.BatchNorm2d(4)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.norm(self.alias(x)))


class Net(torch.nn.Module):
    """Modules three deep."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.layers = torch.nn.Sequential(Block(), Block())
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.layers(self.stem(x)).mean(dim=(2, 3)))


def make_training(seed: int = 0) -> tuple[Any, Callable[[], float]]:
    """A model and one training step of it."""
    torch.manual_seed(seed)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step() -> float:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(torch.randn(4, 3, 8, 8)), torch.tensor([0, 1, 0, 1]))
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return model, step


def traces(directory: Path) -> list[Path]:
    return sorted(p for p in directory.iterdir() if ".pt.trace.json" in p.name)


def event_files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*tfevents*"))


def trace_events(path: Path) -> list[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        events: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return events


def module_events(path: Path) -> list[dict[str, Any]]:
    return [e for e in trace_events(path) if e.get("name", "").startswith("tb_dlprof::module::")]


CALL = torch.nn.Module.__call__


def is_observed(model: Any) -> bool:
    """Whether calls of modules are observed, or the model carries hooks."""
    hooks = any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    return hooks or torch.nn.Module.__call__ is not CALL


@pytest.fixture
def training() -> tuple[Any, Callable[[], float]]:
    """A fresh model and its training step, always the same numbers."""
    return make_training()


@pytest.fixture
def kit() -> Any:
    """The functions of this file: importlib mode gives test files no way to import them."""
    return types.SimpleNamespace(
        Net=Net,
        make_training=make_training,
        traces=traces,
        event_files=event_files,
        trace_events=trace_events,
        module_events=module_events,
        is_observed=is_observed,
    )


@pytest.fixture(autouse=True)
def _no_leftovers() -> Any:
    """Each test ends with no analysis running."""
    yield
    from tb_dlprof_plugin.capture.process_pool import wait_for_analysis

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wait_for_analysis(60)
    if torch.nn.Module.__call__ is not CALL:
        # Handlers observe their models until they are freed.
        gc.collect()
        assert torch.nn.Module.__call__ is CALL
