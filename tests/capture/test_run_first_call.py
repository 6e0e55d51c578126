"""The first call of a model is noticed, and no hook is left after it."""

from __future__ import annotations

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tb_dlprof_plugin.capture.launcher.first_call import FirstCallHook  # noqa: E402
from tb_dlprof_plugin.capture.launcher.first_forward_hook import FirstForwardHook, _Hook  # noqa: E402

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
    model = nn.Linear(2, 2)
    compiled = torch.compile(model, backend="eager")
    assert nn.Module.__call__ is CALL
    compiled(torch.zeros(1, 2))
    assert told == [compiled]
    assert not compiled._forward_pre_hooks


def test_dynamo_remembers_torchs_own_call(told):
    import torch._dynamo.utils

    assert torch._dynamo.utils.unpatched_nn_module_call is CALL


def test_a_door_notices_the_outermost_module_first_and_leaves_no_hook():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
    heard: list[nn.Module] = []
    hook = FirstForwardHook(heard.append)
    assert hook.install(model)
    model(torch.zeros(1, 2))
    assert heard[0] is model
    hook.remove()
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_a_door_is_in_front_of_hooks_that_are_there_already():
    model = nn.Linear(2, 2)
    order: list[str] = []
    model.register_forward_pre_hook(lambda module, args: order.append("own"))
    hook = FirstForwardHook(lambda module: order.append("hook"))
    hook.install(model)
    model(torch.zeros(1, 2))
    assert order == ["hook", "own"]


def test_copies_of_a_model_take_no_working_hook_along():
    model = nn.Linear(2, 2)
    heard: list[nn.Module] = []
    FirstForwardHook(heard.append).install(model)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert [type(hook) for hook in other._forward_pre_hooks.values()] == [_Hook]
        other(torch.zeros(1, 2))
    assert heard == []
