"""Changes of live classes and objects, and that all of them can be undone."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest

from tb_dlprof_plugin.trial.inside.hooks import TrialHooks, copy_of

torch = pytest.importorskip("torch")


class Base:
    def __init__(self, a: int, b: int = 2, *, c: int = 3) -> None:
        self.given = (a, b, c)


class Derived(Base):
    def __init__(self, a: int) -> None:
        super().__init__(a, c=9)


def test_arguments_of_a_constructor_are_changed_for_subclasses_too(hooks: TrialHooks) -> None:
    hooks.before_init(Base, lambda arguments: arguments.update(b=7))
    assert Base(1).given == (1, 7, 3)
    assert Derived(1).given == (1, 7, 9)
    assert list(inspect.signature(Base).parameters) == ["a", "b", "c"]


def test_only_named_arguments_are_passed_to_the_change(hooks: TrialHooks) -> None:
    seen: list[dict[str, Any]] = []
    hooks.before_init(Base, lambda arguments: seen.append(dict(arguments)))
    Base(1, c=4)
    assert {name: value for name, value in seen[0].items() if name != "self"} == {"a": 1, "c": 4}


def test_who_holds_a_function_already_gets_the_replacement_and_a_copy_stays(hooks: TrialHooks) -> None:
    held, kept = torch.cuda.empty_cache, copy_of(torch.cuda.empty_cache)
    calls: list[object] = []
    hooks.replace_everywhere(torch.cuda.empty_cache, lambda original: lambda: calls.append(original()))
    held()
    torch.cuda.empty_cache()
    assert calls == [None, None]
    kept()
    hooks.undo()
    held()
    assert len(calls) == 2
    assert not [name for name in held.__globals__ if name.startswith("_tb_dlprof")]


def test_arguments_of_a_function_that_is_replaced_everywhere_arrive_once(hooks: TrialHooks) -> None:
    def sum_of(a: int, b: int = 2, *, c: int = 3) -> int:
        return a + b + c

    hooks.replace_everywhere(sum_of, lambda original: lambda *args, **kwargs: 100 * original(*args, **kwargs))
    assert (sum_of(1), sum_of(1, 0, c=0)) == (600, 100)
    hooks.undo()
    assert (sum_of(1), sum_of(1, b=4)) == (6, 8)


@pytest.mark.parametrize("first", [0, 1])
def test_a_function_may_be_replaced_twice_and_undone_in_any_order(first: int) -> None:
    def one() -> int:
        return 1

    both = TrialHooks(), TrialHooks()
    for number, hooks in enumerate(both):
        hooks.replace_everywhere(one, lambda original, number=number: lambda: original() + 10 ** (number + 1))
    assert one() == 111
    both[first].undo()
    assert one() == (101, 11)[first]
    both[1 - first].undo()
    assert one() == 1


def test_undo_restores_functions_switches_and_forwards(hooks: TrialHooks) -> None:
    model = torch.nn.Linear(2, 2)
    before = (Base.__init__, torch.backends.cudnn.benchmark, torch.autograd.backward)
    hooks.after_init(Base, lambda one: None)
    hooks.set(torch.backends.cudnn, "benchmark", not before[1])
    hooks.replace(torch.autograd, "backward", lambda original: lambda *args, **kwargs: None)
    hooks.wrap_method(model, "forward", lambda forward: lambda module, x: forward(module, x) + 1)
    assert torch.backends.cudnn.benchmark is not before[1]
    assert "forward" in vars(model)
    hooks.undo()
    assert (Base.__init__, torch.backends.cudnn.benchmark, torch.autograd.backward) == before
    assert "forward" not in vars(model)


def test_an_inherited_method_is_inherited_again_after_undo(hooks: TrialHooks) -> None:
    hooks.replace(Derived, "__repr__", lambda original: lambda one: "changed")
    assert repr(Derived(1)) == "changed"
    hooks.undo()
    assert "__repr__" not in vars(Derived)


def test_a_copied_model_computes_with_its_own_parameters(hooks: TrialHooks) -> None:
    model = torch.nn.Linear(2, 2)
    hooks.wrap_method(model, "forward", lambda forward: lambda module, x: 2 * forward(module, x))
    copied = copy.deepcopy(model)
    with torch.no_grad():
        copied.weight.zero_()
        copied.bias.fill_(1.0)
    assert copied(torch.ones(1, 2)).tolist() == [[2.0, 2.0]]


def test_two_changes_of_one_forward_apply_in_turn(hooks: TrialHooks) -> None:
    model = torch.nn.Identity()
    hooks.wrap_method(model, "forward", lambda forward: lambda module, x: forward(module, x) + 1)
    hooks.wrap_method(model, "forward", lambda forward: lambda module, x: 10 * forward(module, x))
    assert model(1) == 20
    hooks.undo()
    assert model(1) == 1
