"""The outermost modules of a training, and what is found through the garbage collector."""

from __future__ import annotations

import gc

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tb_dlprof_plugin.capture.facts.loader import dataloader_facts  # noqa: E402
from tb_dlprof_plugin.capture.launcher.live_objects import LiveObjects, find_live_objects, training_loader  # noqa: E402
from tb_dlprof_plugin.capture.launcher.root_modules import as_one, choose_roots  # noqa: E402
from tb_dlprof_plugin.capture.modules import walk  # noqa: E402


class Holder(nn.Module):
    """Has modules, and is called or not."""

    def __init__(self, **modules: nn.Module) -> None:
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)


def alive(*roots: nn.Module) -> list[nn.Module]:
    return [module for root in roots for module in root.modules()]


def sgd(*models: nn.Module):
    return torch.optim.SGD([parameter for model in models for parameter in model.parameters()], lr=0.1)


def test_the_model_whose_parameters_change():
    model, frozen = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(9, 9))
    assert choose_roots(alive(frozen, model), [sgd(model)], model) == [model]


def test_the_called_module_where_it_holds_all_that_is_trained():
    net = nn.Sequential(nn.Linear(2, 2))
    module = Holder(net=net, metric=nn.Identity())
    assert choose_roots(alive(module), [sgd(net)], net) == [net]


def test_the_module_above_the_called_one_where_more_is_trained():
    generator, discriminator = nn.Linear(3, 3), nn.Linear(2, 2)
    module = Holder(inner=Holder(generator=generator, discriminator=discriminator), metric=nn.Identity())
    assert choose_roots(alive(module), [sgd(generator), sgd(discriminator)], generator) == [module.inner]


def test_a_wrapper_for_evaluation_only_is_no_part_of_the_names():
    model = nn.Sequential(nn.Linear(2, 2))
    assert choose_roots(alive(Holder(normalize=nn.Identity(), model=model)), [sgd(model)], model) == [model]


def test_the_outermost_module_where_no_call_was_seen():
    net = nn.Linear(2, 2)
    module = Holder(net=net)
    assert choose_roots(alive(module), [sgd(net)], None) == [module]


def test_two_models_that_are_trained_in_turn_under_their_classes_names():
    small, large = nn.Linear(2, 2), nn.Sequential(nn.Linear(9, 9))
    roots = choose_roots(alive(small, large), [sgd(small), sgd(large)], small)
    assert roots == [large, small]
    held = as_one(roots)
    assert type(held).__name__ == "Sequential + Linear"
    assert [path for path, _ in walk(held)] == ["", "Sequential", "Sequential.0", "Linear"]


def test_two_models_of_one_class_have_numbers():
    held = as_one([nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)])
    assert list(held._modules) == ["Linear", "Linear_2", "Linear_3"]


def test_master_weights_are_no_parameters_of_a_model_so_all_models_count():
    model = nn.Linear(2, 2)
    copies = torch.optim.SGD([parameter.detach().clone().requires_grad_() for parameter in model.parameters()], lr=1)
    assert choose_roots(alive(model), [copies], model) == [model]


def test_without_any_module_there_is_none():
    assert choose_roots([], [], None) == []
    assert as_one([]) is None


def test_a_model_that_holds_itself_by_detours_ends_the_search():
    model = nn.Linear(2, 2)
    holder = Holder(model=model)
    model._modules["up"] = holder
    assert choose_roots([holder, model], [sgd(nn.Linear(1, 1))], model) == []


def test_what_lives_is_found():
    model = nn.Linear(2, 2)
    optimizer = sgd(model)
    loader = torch.utils.data.DataLoader(torch.zeros(4, 1))
    profiler = torch.profiler.profile()
    found = find_live_objects()
    for one, kind in (
        (model, found.modules), (optimizer, found.optimizers), (loader, found.loaders), (profiler, found.profilers),
    ):  # fmt: skip
        assert any(known is one for known in kind)


def test_looking_keeps_nothing_alive():
    import weakref

    model = nn.Linear(2, 2)
    gone = weakref.ref(model)
    find_live_objects()
    del model
    gc.collect()
    assert gone() is None


def test_the_loader_that_is_iterated_over_is_the_trainings():
    train, other = (torch.utils.data.DataLoader(torch.zeros(8, 1), batch_size=size) for size in (2, 4))
    iterator = iter(train)
    next(iterator)
    assert training_loader(LiveObjects(loaders=[other, train], iterators=[iterator])) is train


def test_a_loader_that_only_its_loop_held_is_known_by_its_iterator():
    loader = torch.utils.data.DataLoader(torch.zeros(8, 1), batch_size=2, drop_last=True)
    iterator = iter(loader)
    facts = dataloader_facts(loader)
    assert dataloader_facts(training_loader(LiveObjects(iterators=[iterator]))) == facts
    assert (facts.batch_size, facts.batches, facts.drop_last) == (2, 4, True)


def test_several_loaders_of_which_none_is_iterated_over_tell_nothing():
    loaders = [torch.utils.data.DataLoader(torch.zeros(8, 1)) for _ in range(2)]
    assert training_loader(LiveObjects(loaders=loaders)) is None
    assert training_loader(LiveObjects(loaders=loaders[:1])) is loaders[0]
