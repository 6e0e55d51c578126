"""Remedies reach the modules that a script calls, whatever kind of loop it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tb_dlprof_plugin.trial.inside.applied import AppliedRemedies
from tb_dlprof_plugin.trial.inside.model_calls import FirstModelCalls
from tb_dlprof_plugin.trial.inside.remedies import make
from tb_dlprof_plugin.trial.inside.remedy import environment_of

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        return self.inner(x)


@pytest.fixture
def seen() -> Iterator[list[nn.Module]]:
    found: list[nn.Module] = []
    calls = FirstModelCalls(found.append)
    original = nn.Module.__call__
    calls.start()
    yield found
    calls.stop()
    assert nn.Module.__call__ is original


def test_each_called_module_is_reported_once_and_none_below_it(seen: list[nn.Module]) -> None:
    generator, discriminator = Outer(), Outer()
    for _ in range(2):
        discriminator(generator(torch.ones(1, 2)))
        nn.functional.relu(torch.ones(1))
        nn.ReLU()(torch.ones(1))
    assert [id(one) for one in seen] == [id(generator), id(discriminator)]


def test_a_module_is_reported_after_a_call_that_raised(seen: list[nn.Module]) -> None:
    first, second = Outer(), Outer()
    with pytest.raises(RuntimeError):
        first(torch.ones(1, 3))
    second(torch.ones(1, 2))
    assert [id(one) for one in seen] == [id(first), id(second)]


def test_several_remedies_apply_to_one_training() -> None:
    applied = AppliedRemedies(["bf16_autocast", "fused_optimizer", "zero_grad_to_none"])
    applied.start()
    try:
        model = Outer()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad(set_to_none=False)
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            applied.step_ended(step)
        assert optimizer.defaults["fused"]
        assert applied.no_effect() == {}
    finally:
        applied.stop()
    assert "forward" not in vars(model)
    assert torch.optim.SGD(model.parameters(), lr=0.1).defaults["fused"] is None


def test_variables_of_several_remedies_are_those_of_each() -> None:
    assert environment_of([make("omp_threads_1"), make("tf32")]) == {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with pytest.raises(KeyError):
        make("unheard_of")
