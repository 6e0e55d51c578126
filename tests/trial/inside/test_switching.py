"""Remedies are switched on and off between the steps of a running training, which goes on as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tb_dlprof_plugin.trial.inside.hooks import TrialHooks
from tb_dlprof_plugin.trial.inside.remedies import classes
from tb_dlprof_plugin.trial.inside.remedy import Remedy

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

from tb_dlprof_plugin.trial.inside.switching import Switcher  # noqa: E402


class Numbers(Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        return torch.full((8,), float(index)) / 64


class Training:
    """A loop over a DataLoader with dropout, momentum and a schedule, one step at a time."""

    def __init__(self, **loader: Any) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.BatchNorm1d(16), nn.Linear(16, 2))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01, foreach=False)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2)
        self.losses: list[float] = []
        self._steps = self._loop(DataLoader(Numbers(), batch_size=4, shuffle=True, **loader))

    def _loop(self, loader: Any) -> Iterator[None]:
        while True:
            for batch in loader:
                self.optimizer.zero_grad(set_to_none=False)
                loss = self.model(batch).square().mean()
                loss.backward()
                self.optimizer.step()
                self.schedule.step()
                self.losses.append(loss.item())
                yield

    def step(self) -> None:
        next(self._steps)

    def state(self) -> list[Any]:
        values = [one.tolist() for one in (*self.model.parameters(), *self.model.buffers())]
        of_optimizer = self.optimizer.state_dict()
        moments = [value.tolist() for state in of_optimizer["state"].values() for value in state.values()]
        groups = [{key: one for key, one in group.items() if key != "params"} for group in of_optimizer["param_groups"]]
        return [values, moments, groups, self.schedule.state_dict(), torch.get_rng_state().tolist()]


@pytest.fixture
def started(hooks: TrialHooks) -> Iterator[Callable[..., tuple[Training, Switcher, Callable[[Any], Any]]]]:
    switchers: list[Switcher] = []

    def start(**loader: Any) -> tuple[Training, Switcher, Callable[[Any], Any]]:
        made: list[Training] = []
        switcher = Switcher(
            lambda: [made[0].model], lambda: [made[0].optimizer], lambda: [made[0].schedule], hooks=hooks
        )
        switchers.append(switcher)
        made.append(Training(**loader))
        for _ in range(3):
            made[0].step()

        def done(work: Any) -> Any:
            while True:
                try:
                    next(work)
                except StopIteration as ended:
                    return ended.value[1]
                made[0].step()

        return made[0], switcher, done

    yield start
    for one in switchers:
        one.off()


IN_PLACE = ("fused_optimizer", "foreach_optimizer", "zero_grad_to_none", "frozen_garbage", "omp_threads_1")


def test_the_training_goes_on_to_the_bit_as_it_was(started: Any) -> None:
    training, switcher, done = started()
    first = done(switcher.check((), 0, 4))
    before = training.state()
    for names in (("fused_optimizer", "zero_grad_to_none"), ("bf16_autocast",), IN_PLACE[1:]):
        ready = done(switcher.check(names, 0, 4))
        assert ready.failed == ""
        assert len(ready.checks.loss) == 4
        assert done(switcher.block(names, 2)).failed == ""
    switcher.off()
    switcher.restore()
    assert training.state() == before
    again = done(switcher.check((), 0, 4))
    assert again.checks == first.checks
    assert training.state() == before
    assert torch.optim.AdamW(training.model.parameters()).defaults["fused"] is None


def test_steps_that_are_compared_get_the_same_batches_and_another_seed_other_numbers(started: Any) -> None:
    _, switcher, done = started()
    first, again, other = (done(switcher.check((), seed, 4)).checks for seed in (0, 0, 1))
    assert again == first
    assert other.loss != first.loss
    fused = done(switcher.check(("fused_optimizer",), 0, 4)).checks
    assert fused.loss == pytest.approx(first.loss, rel=1e-4)


def test_a_fused_optimizer_carries_its_state_over(started: Any) -> None:
    training, switcher, done = started()
    done(switcher.block(("fused_optimizer",), 2))
    assert all(group["fused"] for group in training.optimizer.param_groups)
    steps = {int(state["step"]) for state in training.optimizer.state.values()}
    assert len(steps) == 1
    assert steps.pop() > 3
    switcher.off()
    assert not any(group["fused"] for group in training.optimizer.param_groups)


def test_a_second_loader_takes_the_place_of_the_first(started: Any) -> None:
    _, switcher, done = started()
    ready = done(switcher.check(("loader_workers_1",), 0, 2))
    assert ready.no_effect == {}
    done(switcher.block(("loader_workers_1",), 2))
    assert switcher.batches.depth == 2
    block = done(switcher.block((), 2))
    assert (block.failed, switcher.batches.depth) == ("", 0)


def test_checkpoints_and_anomaly_mode_that_are_on_are_switched_off(started: Any) -> None:
    _, switcher, done = started()
    torch.autograd.set_detect_anomaly(True)
    try:
        ready = done(switcher.check(("slow_switches_off", "no_checkpointing"), 0, 2))
        assert list(ready.no_effect) == ["no_checkpointing"]
        assert not torch.is_anomaly_enabled()
        switcher.off()
        assert torch.is_anomaly_enabled()
    finally:
        torch.autograd.set_detect_anomaly(False)


class FailsInForward(Remedy):
    name = "fails_in_forward"
    in_running_process = True

    def on_model(self, model: Any, hooks: TrialHooks) -> None:
        def make(forward: Any) -> Any:
            def failing(module: Any, *args: Any) -> Any:
                raise RuntimeError("not with this model")

            return failing

        hooks.wrap_method(model, "forward", make)


class FailsInBackward(Remedy):
    name = "fails_in_backward"
    in_running_process = True

    def on_import(self, hooks: TrialHooks) -> None:
        def make(original: Any) -> Any:
            def backward(*args: Any, **kwargs: Any) -> None:
                raise RuntimeError("out of memory")

            return backward

        hooks.replace(torch.autograd, "backward", make)


class FailsInUpdate(Remedy):
    name = "fails_in_update"
    in_running_process = True

    def on_optimizer(self, optimizer: Any, hooks: TrialHooks) -> None:
        def make(step: Any) -> Any:
            def failing(optimizer: Any) -> None:
                raise RuntimeError("params and grads must have the same layout")

            return failing

        hooks.wrap_method(optimizer, "step", make)


@pytest.mark.parametrize("remedy", [FailsInForward, FailsInBackward, FailsInUpdate])
def test_a_remedy_that_fails_does_not_end_the_training(
    remedy: type[Remedy], started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(classes(), remedy.name, remedy)
    training, switcher, done = started()
    first = done(switcher.check((), 0, 3))
    before = training.state()
    ready = done(switcher.check((remedy.name,), 0, 3))
    assert ready.failed.startswith("RuntimeError: ")
    assert training.state() == before
    assert done(switcher.block((remedy.name,), 2)).failed.startswith("RuntimeError: ")
    assert done(switcher.check((), 0, 3)).checks == first.checks


@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_and_moments_lie_as_the_parameters_do_each_time_that_these_have_channels_last(
    hooks: TrialHooks, set_to_none: bool
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(4, 6, 3), nn.ConvTranspose2d(6, 4, 3))
    optimizer = torch.optim.Adam(model.parameters())
    images = torch.rand(2, 4, 8, 8)
    switcher = Switcher(lambda: [model], lambda: [optimizer], hooks=hooks)

    def done(work: Any) -> Any:
        while True:
            try:
                next(work)
            except StopIteration as ended:
                return ended.value[1]
            optimizer.zero_grad(set_to_none)
            model(images).square().mean().backward()
            optimizer.step()

    names = ("channels_last", "fused_optimizer")
    losses = done(switcher.check((), 0, 3)).checks.loss
    try:
        for _ in range(2):
            assert done(switcher.check(names, 0, 3)).checks.loss == pytest.approx(losses, rel=1e-4)
            assert done(switcher.block(names, 2)).failed == ""
            for one in model.parameters():
                moments = [optimizer.state[one]["exp_avg"], optimizer.state[one]["exp_avg_sq"], one.grad]
                assert [value.stride() for value in moments] == 3 * [one.stride()]
            assert model[0].weight.is_contiguous(memory_format=torch.channels_last)
            assert done(switcher.block((), 2)).failed == ""
            moments = [optimizer.state[one]["exp_avg"] for one in model.parameters()]
            assert all(one.is_contiguous() for one in (*model.parameters(), *moments))
    finally:
        switcher.off()


@pytest.mark.long
def test_what_was_compiled_is_kept_for_the_next_block(started: Any) -> None:
    _, switcher, done = started()
    first = done(switcher.check((), 0, 3)).checks
    ready = done(switcher.check(("compile",), 0, 3))
    assert ready.failed == ""
    # Dropout draws other numbers: the check of this model compares sizes alone.
    assert ready.checks.loss == pytest.approx(first.loss, abs=5.0)
    compilations = torch._dynamo.utils.counters["frames"]["ok"]
    done(switcher.block((), 2))
    done(switcher.block(("compile",), 2))
    assert torch._dynamo.utils.counters["frames"]["ok"] == compilations


def test_a_checkpoint_s_second_forward_pass_ends_as_early_as_without_remedies(hooks: TrialHooks) -> None:
    # GIVEN a script that calls checkpointed blocks itself, whose second pass ends by an exception
    blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4)) for _ in range(2))
    optimizer = torch.optim.AdamW(blocks.parameters(), foreach=False)
    switcher = Switcher(lambda: list(blocks), lambda: [optimizer], hooks=hooks)

    def step() -> None:
        x = torch.ones(3, 4)
        for block in blocks:
            x = x + torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
        optimizer.zero_grad()
        x.square().mean().backward()
        optimizer.step()

    def done(work: Any) -> Any:
        while True:
            try:
                next(work)
            except StopIteration as ended:
                return ended.value[1]
            step()

    step()
    first = done(switcher.check((), 0, 4))
    for names in (("fused_optimizer",), ("no_checkpointing",), ("fused_optimizer", "no_checkpointing")):
        ready = done(switcher.check(names, 0, 4))
        assert (ready.failed, ready.no_effect) == ("", {})
        assert ready.checks.loss == pytest.approx(first.checks.loss)
        assert done(switcher.block(names, 2)).failed == ""
        assert done(switcher.block((), 2)).failed == ""
    switcher.off()
