"""Parameters without a gradient, and the optimizer's state, as the hook reads them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin.capture import profile  # noqa: E402
from tb_dlprof_plugin.capture.facts.parameters import GradientWatch, state_bytes  # noqa: E402
from tb_dlprof_plugin.model.run_facts import RunFacts  # noqa: E402
from tb_dlprof_plugin.store.logdir import read_profiles  # noqa: E402


class TwoHeads(torch.nn.Module):
    """The second head is used in every ``every``-th call only, 0 for never."""

    def __init__(self, every: int = 0) -> None:
        super().__init__()
        self.body, self.main, self.aux = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2), torch.nn.Linear(4, 3)
        self.every, self.calls = every, 0

    def forward(self, x):
        self.calls += 1
        x = self.body(x)
        loss = self.main(x).sum()
        return loss + self.aux(x).sum() if self.every and self.calls % self.every == 0 else loss


def _facts(tmp_path, model, optimizer, zero_at_end: bool = False) -> RunFacts:
    with profile(tmp_path, model, schedule=(0, 1, 4, 1), wait=True) as prof:
        for _ in range(5):
            if not zero_at_end:
                optimizer.zero_grad(set_to_none=True)
            model(torch.randn(2, 4)).sum().backward()
            optimizer.step()
            if zero_at_end:
                optimizer.zero_grad(set_to_none=True)
            prof.step()
    (stored,) = read_profiles(tmp_path)
    return stored.profile.facts


@pytest.mark.parametrize("zero_at_end", [False, True])
def test_a_head_that_is_never_used_is_named_with_its_size(tmp_path, zero_at_end: bool) -> None:
    model = TwoHeads()
    optimizer = torch.optim.AdamW(model.parameters())
    facts = _facts(tmp_path, model, optimizer, zero_at_end)
    assert (facts.trainable_parameters, facts.unused_parameters) == (6, 2)
    assert facts.unused_parameter_bytes == (4 * 3 + 3) * 4
    assert facts.unused_parameter_names == ["aux.weight", "aux.bias"]
    assert facts.find_unused_parameters is None
    # Two moments for each used parameter; the step counters stay where torch puts them.
    used = sum(p.numel() for p in (*model.body.parameters(), *model.main.parameters()))
    assert facts.optimizer_state_bytes is not None
    assert 8 * used <= facts.optimizer_state_bytes <= 8 * used + 4 * 4


def test_a_head_that_is_used_now_and_then_is_used(tmp_path) -> None:
    model = TwoHeads(every=5)
    facts = _facts(tmp_path, model, torch.optim.SGD(model.parameters(), lr=0.1))
    assert (facts.unused_parameters, facts.unused_parameter_names) == (0, [])
    assert facts.optimizer_state_bytes == 0


def test_frozen_parameters_are_no_unused_ones(tmp_path) -> None:
    model = TwoHeads()
    model.aux.requires_grad_(False)
    facts = _facts(tmp_path, model, torch.optim.SGD(model.parameters(), lr=0.1))
    assert (facts.trainable_parameters, facts.unused_parameters) == (4, 0)


def test_an_optimizer_that_makes_the_gradients_itself_tells_nothing() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.LBFGS([weight])
    watched, facts = GradientWatch(), RunFacts()
    watched.look(optimizer)
    watched.fill(facts)
    assert facts.unused_parameters is None


def test_the_state_of_an_optimizer_that_was_not_asked_to_step_is_empty() -> None:
    assert state_bytes(torch.optim.Adam([torch.nn.Parameter(torch.ones(2))])) == 0


def test_ddp_tells_whether_it_looks_for_unused_parameters(tmp_path) -> None:
    from tb_dlprof_plugin.capture.facts.collect import collect_facts

    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        for wanted in (True, False):
            wrapped = torch.nn.parallel.DistributedDataParallel(TwoHeads(), find_unused_parameters=wanted)
            assert collect_facts(model=wrapped).find_unused_parameters is wanted
    finally:
        torch.distributed.destroy_process_group()


def test_gradients_that_no_optimizer_uses_are_named_by_their_outermost_modules(tmp_path) -> None:
    model = torch.nn.Sequential(
        torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)), torch.nn.Linear(4, 2)
    )
    optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
    facts = _facts(tmp_path, model, optimizer)
    assert (facts.unstepped_gradients, facts.unstepped_gradient_bytes) == (4, 2 * (16 + 4) * 4)
    assert facts.unstepped_gradient_modules == ["0"]


def test_all_optimizers_of_the_recorded_steps_count(tmp_path) -> None:
    model = TwoHeads(every=1)
    both = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (model.body, model.aux)]
    with profile(tmp_path, model, schedule=(0, 1, 2, 1), wait=True) as prof:
        for _ in range(3):
            model(torch.randn(2, 4)).backward()
            for optimizer in both:
                optimizer.step()
            prof.step()
    (stored,) = read_profiles(tmp_path)
    assert stored.profile.facts.unstepped_gradient_modules == ["main"]


def test_without_a_step_nothing_is_known_of_gradients(tmp_path) -> None:
    model = torch.nn.Linear(4, 2)
    with profile(tmp_path, model, schedule=(0, 1, 2, 1), wait=True) as prof:
        for _ in range(3):
            model(torch.randn(2, 4)).sum().backward()
            prof.step()
    (stored,) = read_profiles(tmp_path)
    assert stored.profile.facts.unstepped_gradients is None
