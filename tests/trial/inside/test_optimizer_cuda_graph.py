"""The captured update of an optimizer, with a function in place of a CUDA graph: the CPU has none."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tb_dlprof_plugin.trial.inside.hooks import TrialHooks
from tb_dlprof_plugin.trial.inside.remedies import classes
from tb_dlprof_plugin.trial.inside.remedies.optimizer_cuda_graph import OptimizerCudaGraph

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tb_dlprof_plugin.trial.inside.switching import Switcher  # noqa: E402

KINDS: dict[str, Callable[[Any], Any]] = {
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.05, weight_decay=0.1),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.05, foreach=False, amsgrad=True),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True),
    "fused": lambda parameters: torch.optim.AdamW(parameters, lr=0.05, fused=True),
}


class Replays:
    """In place of CUDA graphs: the update with the gradients that lay there when it was captured."""

    def __init__(self) -> None:
        self.captured = self.replayed = 0

    def capture(self, update: Callable[[], object]) -> Callable[[], object]:
        self.captured += 1

        def replay() -> None:
            self.replayed += 1
            update()

        return replay


class Training:
    def __init__(self, kind: str, set_to_none: bool = True) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
        self.optimizer = KINDS[kind](self.model.parameters())
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        self.set_to_none = set_to_none
        self.seen: list[float] = []
        self.optimizer.register_step_post_hook(lambda one, *_: self.seen.append(one.param_groups[0]["lr"]))

    def step(self) -> None:
        self.optimizer.zero_grad(self.set_to_none)
        self.model(torch.randn(4, 6)).square().mean().backward()
        self.optimizer.step()
        self.schedule.step()

    def state(self) -> list[Any]:
        states = [
            {key: (value.tolist(), value.dtype, value.device.type) for key, value in one.items()}
            for one in self.optimizer.state.values()
        ]
        groups = [{key: one for key, one in group.items() if key != "params"} for group in self.optimizer.param_groups]
        return [[one.tolist() for one in self.model.parameters()], states, groups, self.schedule.state_dict()]


@pytest.fixture
def on(hooks: TrialHooks) -> Iterator[Callable[[], tuple[OptimizerCudaGraph, Replays]]]:
    def switch() -> tuple[OptimizerCudaGraph, Replays]:
        replays = Replays()
        remedy = OptimizerCudaGraph("cpu", replays.capture)
        remedy.on_import(hooks)
        return remedy, replays

    yield switch
    hooks.undo()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("set_to_none", [True, False])
def test_a_captured_update_trains_as_the_optimizer_does_and_its_schedule_goes_on(
    kind: str, set_to_none: bool, on: Any, hooks: TrialHooks
) -> None:
    alone = Training(kind, set_to_none)
    for _ in range(8):
        alone.step()
    replayed = Training(kind, set_to_none)
    for _ in range(2):
        replayed.step()
    remedy, replays = on()
    for _ in range(5):
        replayed.step()
    assert remedy.no_effect() is None
    assert (replays.captured, replays.replayed) == (1, 4)
    # Hooks have seen each step, with the learning rate of the schedule.
    assert replayed.seen == alone.seen[:7]
    hooks.undo()
    replayed.step()
    expected, found = alone.state(), replayed.state()
    assert found[2:] == expected[2:]
    torch.testing.assert_close(found[0], expected[0], rtol=1e-5, atol=1e-7)
    assert [sorted(one) for one in found[1]] == [sorted(one) for one in expected[1]]
    for ours, theirs in zip(found[1], expected[1], strict=True):
        for key, (values, dtype, device) in theirs.items():
            assert ours[key][1:] == (dtype, device)
            torch.testing.assert_close(ours[key][0], values, rtol=1e-4, atol=1e-7)
    assert replays.replayed == 4


def test_new_gradients_are_copied_to_where_the_captured_ones_lie(on: Any) -> None:
    training = Training("adamw")
    remedy, _ = on()
    for _ in range(3):
        training.step()
    (update,) = remedy._graphs.values()
    held = [one.data_ptr() for one in update.gradients]
    training.step()
    theirs = [one.grad for one in training.model.parameters()]
    assert [one.data_ptr() for one in update.gradients] == held
    assert all(torch.equal(ours, one) for ours, one in zip(update.gradients, theirs, strict=True))


def test_what_changes_is_captured_again_and_not_for_ever(on: Any) -> None:
    training = Training("adamw")
    remedy, replays = on()
    for number in range(14):
        if number in (3, 6):
            training.optimizer.param_groups[0]["weight_decay"] = 0.01 * number
        if number == 9:
            # A checkpoint is loaded: states are other tensors.
            training.optimizer.load_state_dict(copy.deepcopy(training.optimizer.state_dict()))
        training.step()
    assert replays.captured == 4
    assert remedy.no_effect() is None
    for number in range(4):
        training.optimizer.param_groups[0]["eps"] = 1e-8 * (2 + number)
        for _ in range(2):
            training.step()
    assert replays.captured == 4
    assert len({int(one["step"]) for one in training.optimizer.state.values()}) == 1


def test_what_cannot_be_captured_stays_as_it_is_and_says_why(on: Any) -> None:
    remedy, replays = on()
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=torch.tensor(0.1))

    def closure() -> Any:
        optimizer.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        return loss

    for _ in range(3):
        assert optimizer.step(closure) is not None
    assert (replays.captured, remedy.no_effect()) == (
        0,
        "Optimizer: The script's step has a closure or scales gradients.",
    )
    other, _ = on()
    complex_one = torch.optim.SGD([nn.Parameter(torch.ones(2, dtype=torch.complex64))], lr=0.1)
    complex_one.param_groups[0]["params"][0].grad = torch.ones(2, dtype=torch.complex64)
    complex_one.step()
    assert "not of floating point numbers" in (other.no_effect() or "")
    assert remedy.code().startswith("lr = ")


def test_a_capture_that_fails_ends_with_steps_of_the_optimizer(hooks: TrialHooks) -> None:
    def fails(update: Callable[[], object]) -> Callable[[], object]:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    remedy = OptimizerCudaGraph("cpu", fails)
    alone, failing = Training("adamw"), Training("adamw")
    torch.manual_seed(1)
    for _ in range(4):
        alone.step()
    remedy.on_import(hooks)
    torch.manual_seed(1)
    for _ in range(4):
        failing.step()
    assert remedy.no_effect() == "Optimizer: RuntimeError: operation not permitted when stream is capturing"
    torch.testing.assert_close(failing.state()[0], alone.state()[0], rtol=1e-5, atol=1e-7)


class _OnCpu(OptimizerCudaGraph):
    def __init__(self) -> None:
        super().__init__("cpu", Replays().capture)


def test_switching_it_on_and_off_leaves_the_training_as_it_was(
    hooks: TrialHooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(classes(), "optimizer_cuda_graph", _OnCpu)
    training = Training("adamw")
    for _ in range(3):
        training.step()
    switcher = Switcher(
        lambda: [training.model], lambda: [training.optimizer], lambda: [training.schedule], hooks=hooks
    )

    def done(work: Any) -> Any:
        while True:
            try:
                next(work)
            except StopIteration as ended:
                return ended.value[1]
            training.step()

    first = done(switcher.check((), 0, 4))
    before = training.state()
    for _ in range(2):
        ready = done(switcher.check(("optimizer_cuda_graph",), 0, 4))
        assert (ready.failed, ready.no_effect) == ("", {})
        assert ready.checks.loss == pytest.approx(first.checks.loss, rel=1e-4)
        assert done(switcher.block(("optimizer_cuda_graph",), 3)).failed == ""
        switcher.off()
        assert training.optimizer.state_dict()["state"][0]["step"].device.type == "cpu"
    switcher.restore()
    assert training.state() == before
    assert done(switcher.check((), 0, 4)).checks == first.checks
