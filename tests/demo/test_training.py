"""The training step computes in the chosen precision, and learns."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import torch

from models.mlp import MLP
from training import PRECISIONS, Mark, Training

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _tf32_as_before() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def _training(precision: str) -> Training:
    torch.manual_seed(0)
    return Training(MLP((1, 4, 4), 3, hidden=16), CPU, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_loss_falls_on_a_batch_seen_again_and_again(precision: str) -> None:
    training = _training(precision)
    images, labels = training.to_device(torch.arange(128, dtype=torch.uint8).view(8, 1, 4, 4), torch.arange(8) % 3)
    losses = [training.step(images, labels).item() for _ in range(60)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(("precision", "allowed"), [("fp32", False), ("tf32", True), ("amp-fp16", False)])
def test_tf32_is_on_for_matrix_products_and_cudnn_only_where_asked_for(precision: str, allowed: bool) -> None:
    _training(precision)
    assert torch.backends.cuda.matmul.allow_tf32 is allowed
    assert torch.backends.cudnn.allow_tf32 is allowed


def test_only_fp16_scales_its_gradients() -> None:
    assert [precision for precision in PRECISIONS if _training(precision).scaler.is_enabled()] == ["amp-fp16"]


def test_images_become_floats_from_zero_to_one() -> None:
    images, _ = _training("fp32").to_device(torch.tensor([[[[0, 255]]]], dtype=torch.uint8), torch.tensor([0]))
    assert images.tolist() == [[[[0.0, 1.0]]]]


def test_two_marks_on_a_cpu_measure_the_time_between_them() -> None:
    begun_s = time.perf_counter()
    earlier = Mark(CPU)
    time.sleep(0.01)
    assert 10 <= Mark(CPU).ms_since(earlier) <= 1e3 * (time.perf_counter() - begun_s)
