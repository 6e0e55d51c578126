"""The first call of a model is noticed, and no hook is left after it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tb_dlprof_plugin.capture.launcher.first_call import FirstCallHook  # noqa: E402
from tb_dlprof_plugin.capture.launcher.model_calls import CallsOfModel  # noqa: E402

CALL = nn.Module.__call__


@pytest.fixture
def told():
    """The modules of which a `FirstCallHook` has told; it watches until the test ends."""
    compile_before = torch.compile  # other libraries put their own in its place, too
    heard: list[nn.Module] = []
    watch = FirstCallHook(heard.append)
    watch.start()
    yield heard
    watch.stop()
    assert nn.Module.__call__ is CALL
    assert torch.compile is compile_before


def test_the_outermost_call_is_told_before_it_is_made(told):
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    seen = []
    model.register_forward_pre_hook(lambda module, args: seen.append(list(told)))
    model(torch.zeros(1, 2))
    assert told == [model]
    assert seen == [[model]]
    assert nn.Module.__call__ is CALL


def test_modules_without_parameters_do_not_count(told):
    nn.ReLU()(torch.zeros(1))
    nn.CrossEntropyLoss()(torch.zeros(1, 2), torch.zeros(1, dtype=torch.long))
    assert told == []


def test_only_the_first_call_is_told(told):
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    for model in (first, second, first):
        model(torch.zeros(1, 2))
    assert told == [first]


def test_what_is_compiled_never_sees_the_replacement(told):
    model, seen = nn.Linear(2, 2), []

    def backend(graph, inputs):
        seen.append(nn.Module.__call__ is CALL)
        return graph.forward

    compiled = torch.compile(model, backend=backend)
    compiled(torch.zeros(1, 2))
    assert told == [compiled]
    assert seen == [True]
    assert not compiled._forward_pre_hooks


def test_a_keyword_argument_of_the_model_may_have_any_name(told):
    class Named(nn.Linear):
        def forward(self, x, module, original):
            return super().forward(x)

    Named(2, 2)(torch.zeros(1, 2), module=1, original=2)
    assert len(told) == 1


def test_dynamo_remembers_torchs_own_call(told):
    import torch._dynamo.utils

    assert torch._dynamo.utils.unpatched_nn_module_call is CALL


def test_the_outermost_module_of_a_model_is_reported_first():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
    heard: list[nn.Module] = []
    calls = CallsOfModel(heard.append)
    assert calls.install(model)
    model(torch.zeros(1, 2))
    assert heard[0] is model
    calls.remove()
    model(torch.zeros(1, 2))
    assert len(heard) == 4
    assert nn.Module.__call__ is CALL


def test_a_call_of_a_model_is_reported_before_its_own_hooks_run():
    model = nn.Linear(2, 2)
    order: list[str] = []
    model.register_forward_pre_hook(lambda module, args: order.append("own"))
    calls = CallsOfModel(lambda module: order.append("report"))
    calls.install(model)
    model(torch.zeros(1, 2))
    calls.remove()
    assert order == ["report", "own"]
