"""Products in FP8 on the CPU, which computes them slowly: values, gradients, and which layers have them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tb_dlprof_plugin.trial.facts import TrialFacts
from tb_dlprof_plugin.trial.inside.hooks import TrialHooks
from tb_dlprof_plugin.trial.inside.remedies.fp8_products import Fp8Products

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tb_dlprof_plugin.trial.inside.fp8_product import fp8_linear, quantized  # noqa: E402


@pytest.fixture
def remedy(hooks: TrialHooks) -> Iterator[Fp8Products]:
    yield Fp8Products("cpu", least=16, least_rows=32)
    hooks.undo()


def off(ours: Any, theirs: Any) -> float:
    return float((ours - theirs).detach().float().norm() / theirs.detach().float().norm())


def test_a_matrix_in_fp8_is_rounded_to_4_bits_of_mantissa() -> None:
    torch.manual_seed(0)
    for x in (torch.randn(32, 48), 1e-3 * torch.randn(32, 48).bfloat16(), 3e4 * torch.rand(32, 48).bfloat16()):
        small, unit = quantized(x)
        assert small.dtype is torch.float8_e4m3fn
        back = small.float() * unit
        near = x.float().abs() > 1e-2 * x.float().abs().max()
        # Half a step of 4 bits, and of 8 for a factor in BF16.
        assert ((back - x.float()).abs()[near] / x.float().abs()[near]).max() < 1 / 16 + 1 / 256
    small, unit = quantized(torch.zeros(16, 16))
    assert torch.equal(small.float() * unit, torch.zeros(16, 16))


@pytest.mark.parametrize("shape", [(40, 64), (4, 10, 64), (2, 5, 4, 64)])
def test_a_layer_has_the_same_product_and_gradients_but_for_rounding(
    shape: tuple[int, ...], remedy: Fp8Products, hooks: TrialHooks
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 48), nn.GELU(), nn.Linear(48, 7))
    x = torch.randn(shape)

    def passed() -> list[Any]:
        model.zero_grad()
        inputs = x.clone().requires_grad_()
        output = model(inputs)
        output.square().sum().backward()
        return [output.detach(), inputs.grad, *(one.grad.clone() for one in model.parameters())]

    expected = passed()
    remedy.on_model(model, hooks)
    found = passed()
    assert remedy.no_effect() is None
    assert [(one.shape, one.dtype) for one in found] == [(one.shape, one.dtype) for one in expected]
    assert all(1e-4 < off(ours, theirs) < 0.06 for ours, theirs in zip(found, expected, strict=True))
    with torch.autocast("cpu", torch.bfloat16):
        assert model[0](x).dtype is torch.bfloat16
    with torch.no_grad():
        torch.testing.assert_close(model(x), expected[0])
    hooks.undo()
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(passed(), expected, strict=True))


def test_layers_that_are_small_or_of_odd_size_stay_as_they_are(remedy: Fp8Products, hooks: TrialHooks) -> None:
    model = nn.Sequential(nn.Linear(8, 64), nn.Linear(64, 40), nn.MultiheadAttention(32, 2).out_proj)
    remedy.on_model(model, hooks)
    assert remedy.no_effect() == "No linear layer on the GPU has 16 inputs and outputs, in multiples of 16."
    layer = nn.Linear(32, 32)
    remedy.on_model(layer, hooks)
    x = torch.randn(31, 32)
    assert torch.equal(layer(x), nn.functional.linear(x, layer.weight, layer.bias))
    assert remedy.no_effect() == "Linear layers get fewer than 32 rows at once, which gains nothing."


def test_it_needs_a_gpu_with_fp8() -> None:
    remedy = Fp8Products()
    assert remedy.why_not(TrialFacts(cuda=False)) == "The training uses no GPU."
    assert remedy.why_not(TrialFacts(cuda=True, compute_capability=(8, 0))) == (
        "Compute capability 8.0 has no products in FP8."
    )
    assert remedy.why_not(TrialFacts(torch_version=(2, 4))) == "Products in FP8 need PyTorch 2.5."
    assert remedy.why_not(TrialFacts(torch_version=(2, 11), cuda=True, compute_capability=(8, 9))) is None
    assert remedy.usual(TrialFacts()) < 0


def test_what_it_shows_can_be_written_into_a_script() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4096, 4096), nn.Linear(4096, 16)), torch.randn(16, 4096)
    expected = model(x)
    exec(Fp8Products().code(), {"model": model})
    assert 1e-3 < off(model(x), expected) < 0.06
    torch.testing.assert_close(model[0](x), fp8_linear(x, model[0].weight, model[0].bias))
