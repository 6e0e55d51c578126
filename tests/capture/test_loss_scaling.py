"""The hook and torch's own GradScaler: loss scale over cycles, skipped steps, a training that stays as it is."""

from __future__ import annotations

import gc
import sys
import types
import weakref

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin import profile, read_profiles  # noqa: E402
from tb_dlprof_plugin.capture.facts.collect import collect_facts  # noqa: E402
from tb_dlprof_plugin.metrics.numeric_health import numeric_health  # noqa: E402
from tb_dlprof_plugin.metrics.precision_mode import precision_mode  # noqa: E402
from tb_dlprof_plugin.profile_view import ProfileView  # noqa: E402


class Training:
    """A linear layer under autocast with a GradScaler; the loss of the steps in ``overflowing`` is too large by far."""

    def __init__(self, overflowing=(), fused=False):
        torch.manual_seed(0)
        self.model = torch.nn.Linear(8, 8)
        self.optimizer = (
            torch.optim.Adam(self.model.parameters(), fused=True)
            if fused
            else torch.optim.SGD(self.model.parameters(), lr=1e-3)
        )
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=100)
        self.overflowing, self.number = set(overflowing), 0

    def step(self):
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = self.model(torch.ones(4, 8)).float().sum()
        if self.number in self.overflowing:
            loss = loss * float("inf")
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.number += 1


def record(directory, training, steps, schedule):
    with profile(directory, training.model, schedule=schedule, wait=True) as prof:
        for _ in range(steps):
            training.step()
            prof.step()
    # Files are ordered by when their analysis ended, not by cycle.
    profiles = sorted((stored.profile for stored in read_profiles(directory)), key=lambda profile: profile.source.cycle)
    frames = [ProfileView(profile) for profile in profiles]
    return [(frame, numeric_health(frame, frame.selection())) for frame in frames]


def test_a_step_that_overflows_is_counted_as_skipped(tmp_path):
    # Step 0 is the warm-up, 1 to 4 are recorded.
    ((frame, health),) = record(tmp_path, Training(overflowing=[3]), 5, (0, 1, 4, 1))
    assert (health.loss_scaling, health.rounds, health.skipped, health.skipped_iterations) == (True, 4, 1, (2,))
    assert (health.scale, health.steps_since_change) == (512.0, 1)
    assert not health.decided_on_device
    first = numeric_health(frame, frame.selection(0, 1))
    assert (first.rounds, first.skipped, first.skipped_iterations) == (2, 0, ())
    assert precision_mode(frame).label == "AMP BF16 (autocast)"


def test_the_loss_scale_is_a_series_over_cycles(tmp_path):
    recorded = record(tmp_path, Training(overflowing=[1, 5, 6]), 9, (0, 1, 2, 3))
    assert [health.scale for _, health in recorded] == [512.0, 256.0, 128.0]
    assert [health.skipped for _, health in recorded] == [1, 1, 0]
    assert [(s.cycle, s.scale, s.step) for s in recorded[-1][1].loss_scales] == [
        (0, 512.0, 3),
        (1, 256.0, 6),
        (2, 128.0, 9),
    ]


def test_a_cycle_of_skipped_steps_alone_still_tells_the_scale(tmp_path):
    recorded = record(tmp_path, Training(overflowing=[4, 5]), 6, (0, 1, 2, 2))
    assert [(health.scale, health.rounds, health.skipped) for _, health in recorded] == [(1024.0, 2, 0), (256.0, 2, 2)]


def test_skipped_steps_of_a_fused_optimizer_are_known_to_the_hook(tmp_path):
    ((frame, health),) = record(tmp_path, Training(overflowing=[2, 4], fused=True), 5, (0, 1, 4, 1))
    assert (health.decided_on_device, health.rounds, health.skipped) == (True, 4, 2)
    assert frame.profile.facts.device_checked_steps == 4


def test_the_training_is_bit_identical(tmp_path):
    for fused in (False, True):
        plain, profiled = Training([2], fused), Training([2], fused)
        for _ in range(6):
            plain.step()
        record(tmp_path / str(fused), profiled, 6, (1, 1, 1, 2))
        assert torch.equal(plain.model.weight, profiled.model.weight)
        assert plain.scaler.state_dict() == profiled.scaler.state_dict()


def test_the_hook_keeps_no_scaler_alive(tmp_path):
    training = Training()
    with profile(tmp_path, training.model, schedule=(0, 1, 1, 1), wait=True) as prof:
        for _ in range(2):
            training.step()
            prof.step()
        scaler = weakref.ref(training.scaler)
        del training.scaler
        gc.collect()
        assert scaler() is None


def test_apex_tells_its_opt_level_and_its_scale(monkeypatch):
    # The attributes of apex/amp/_amp_state.py and apex/amp/scaler.py.
    state = types.SimpleNamespace(
        opt_properties=types.SimpleNamespace(enabled=True, opt_level="O2"),
        loss_scalers=[types.SimpleNamespace(loss_scale=lambda: 65536.0, _unskipped=7)],
    )
    monkeypatch.setitem(sys.modules, "apex.amp._amp_state", types.SimpleNamespace(_amp_state=state))
    facts = collect_facts()
    assert (facts.apex_opt_level, facts.grad_scaler_scale, facts.grad_scaler_growth_tracker) == ("O2", 65536.0, 7)
    state.opt_properties.enabled = False
    assert collect_facts().apex_opt_level is None
