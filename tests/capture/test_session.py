"""The with-block: schedules, blocks without step(), failures that must not reach the training."""

# ruff: noqa: PT012, PT031 (what must warn or raise here is a whole with-block)
from __future__ import annotations

import sys
import warnings
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin.capture import TbDlprofWarning, baseline_timer, profile  # noqa: E402
from tb_dlprof_plugin.capture import session as session_module  # noqa: E402
from tb_dlprof_plugin.store.logdir import read_profiles  # noqa: E402


@pytest.mark.parametrize(
    "schedule",
    [
        {"wait": 1, "warmup": 1, "active": 2, "repeat": 1},
        (1, 1, 2, 1),
        torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
    ],
)
def test_schedules_in_three_forms(tmp_path, training, schedule, kit):
    model, step = training
    with profile(tmp_path, model, schedule=schedule, run_name="mine", wait=True) as prof:
        hooked = []
        for _ in range(5):
            hooked.append(kit.is_observed(model))
            step()
            prof.step()
    assert hooked == [False, True, True, True, False]
    assert not kit.is_observed(model)
    (stored,) = read_profiles(tmp_path)
    assert list(stored.profile.iterations.number) == [2, 3]
    assert stored.profile.facts.run_name == "mine"
    assert stored.profile.facts.module_ranges is True


def test_default_schedule_drops_the_first_step(tmp_path, training, kit):
    model, step = training
    with profile(tmp_path, model, wait=True) as prof:
        for _ in range(23):
            step()
            prof.step()
    (stored,) = read_profiles(tmp_path)
    assert list(stored.profile.iterations.number) == list(range(12, 22))
    assert len(kit.traces(tmp_path)) == 1


def test_single_steps_before_and_after_the_recording_are_timed(tmp_path, training, monkeypatch):
    model, step = training
    now_ns = 0
    monkeypatch.setattr(baseline_timer, "_now", lambda: now_ns)
    with profile(tmp_path, model, schedule=(6, 1, 1, 2), wait=True) as prof:
        for index in range(22):
            step()
            # The first step of all is left out, and so are those that are profiled and two after them.
            now_ns += 20 if index % 8 in (2, 3, 4, 5) or index == 1 or index > 17 else 400
            prof.step()
    stored = sorted(read_profiles(tmp_path), key=lambda one: one.profile.source.cycle)
    first, second = (one.profile.facts for one in stored)
    assert len(first.unprofiled_before_ns) == 5
    assert len(first.unprofiled_after_ns) == 4
    assert second.unprofiled_before_ns == first.unprofiled_after_ns
    assert len(second.unprofiled_after_ns) == 4
    for facts in (first, second):
        assert {*facts.unprofiled_before_ns, *facts.unprofiled_after_ns} == {20}
        assert facts.unprofiled_step_ns is None


def test_a_block_that_ends_with_the_recording_has_no_steps_after_it(tmp_path, training):
    model, step = training
    with profile(tmp_path, model, schedule=(3, 1, 1), wait=True) as prof:
        for _ in range(5):
            step()
            prof.step()
    (stored,) = read_profiles(tmp_path)
    assert len(stored.profile.facts.unprofiled_before_ns) == 2
    assert stored.profile.facts.unprofiled_after_ns == []


def test_block_without_step_has_an_iteration_for_each_optimizer_step(tmp_path, training):
    model, step = training
    with profile(tmp_path, model, wait=True):
        for _ in range(3):
            step()
    (stored,) = read_profiles(tmp_path)
    assert len(stored.profile.iterations.number) == 3
    assert stored.profile.iterations.found_by == "optimizer_step"
    assert "layers.1.norm" in list(stored.profile.strings)


def test_loop_that_ends_while_recording_leaves_no_iteration_behind(tmp_path, training):
    loader = torch.utils.data.DataLoader(torch.zeros(4, 1))
    with profile(tmp_path, training[0], schedule=(0, 1, 10), wait=True) as prof:
        for _ in loader:
            training[1]()
            prof.step()
    (stored,) = read_profiles(tmp_path)
    assert stored.profile.iterations.number.tolist() == [1, 2, 3]
    assert "unfinished_step" in {note.code for note in stored.profile.notes}


def test_loop_that_ends_as_a_later_window_begins_has_one_profile_and_no_warning(tmp_path, training, kit):
    _, step = training
    with warnings.catch_warnings():
        warnings.simplefilter("error", TbDlprofWarning)
        with profile(tmp_path, schedule=(0, 1, 3), wait=True) as prof:
            for _ in range(5):
                step()
                prof.step()
    (stored,) = read_profiles(tmp_path)
    assert list(stored.profile.iterations.number) == [1, 2, 3]
    assert len(kit.traces(tmp_path)) == 1


def test_recording_without_any_training_step_says_so(tmp_path, training):
    with (
        pytest.warns(TbDlprofWarning, match="no training step was recorded"),
        profile(tmp_path, training[0], schedule=(0, 0, 4), wait=True),
    ):
        pass
    assert list(tmp_path.glob("*tfevents*")) == []


def test_steps_outside_of_the_block_are_told_once(tmp_path):
    prof = profile(tmp_path)
    with pytest.warns(TbDlprofWarning, match="enter the profile first") as caught:
        prof.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prof.step()
    assert len(caught) == 1


def test_block_without_step_stops_recording_before_memory_fills(tmp_path, training, monkeypatch, kit):
    monkeypatch.setattr(session_module, "_UNSTEPPED_CALLS", 3)
    model, step = training
    with pytest.warns(TbDlprofWarning, match="call prof.step"), profile(tmp_path, model, wait=True):
        for _ in range(8):
            step()
        assert not kit.is_observed(model)
        assert not torch.autograd.profiler._is_profiler_enabled
    assert len(read_profiles(tmp_path)) == 1


def test_block_that_ends_too_early_says_how_many_steps_it_needs(tmp_path, training):
    with (
        pytest.warns(TbDlprofWarning, match=r"ended after 3 calls of step\(\).*records from 13 steps on"),
        profile(tmp_path) as prof,
    ):
        for _ in range(3):
            training[1]()
            prof.step()


def test_training_is_bit_identical(tmp_path, kit):
    plain_model, plain_step = kit.make_training()
    plain = [plain_step() for _ in range(6)]
    model, step = kit.make_training()
    losses = []
    with profile(tmp_path, model, schedule=(1, 1, 2, 1), with_stack=True, profile_memory=True) as prof:
        for _ in range(6):
            losses.append(step())
            prof.step()
    assert losses == plain
    for name, value in plain_model.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)


def test_exceptions_of_the_block_pass_through(tmp_path, training, kit):
    model, step = training
    with pytest.raises(ZeroDivisionError), profile(tmp_path, model) as prof:
        step()
        prof.step()
        1 / 0  # noqa: B018
    assert not kit.is_observed(model)
    assert not torch.autograd.profiler._is_profiler_enabled


def test_another_profiler_is_left_alone(tmp_path, training, kit):
    model, step = training
    with torch.profiler.profile() as other:
        with pytest.warns(TbDlprofWarning, match="another profiler"):
            prof = profile(tmp_path, model)
            prof.__enter__()
        step()
        prof.step()
        assert str(prof.key_averages().table(sort_by="cpu_time_total")) == ""
        prof.__exit__(None, None, None)
    assert any("conv" in event.key for event in other.key_averages())
    assert not kit.is_observed(model)


def test_failing_profiler_leaves_the_training_running(tmp_path, training, monkeypatch):
    def broken(self):
        raise RuntimeError("no tracing today")

    monkeypatch.setattr(torch.profiler.profile, "prepare_trace", broken)
    with (
        pytest.warns(TbDlprofWarning, match="goes on without a profile.*no tracing today"),
        profile(tmp_path, training[0], schedule=(1, 1, 1, 1)) as prof,
    ):
        for _ in range(4):
            training[1]()
            prof.step()


def test_unusable_arguments_warn_and_training_goes_on(tmp_path, training):
    with pytest.warns(TbDlprofWarning) as caught, profile(tmp_path, "no model", schedule={"speed": 1}) as prof:
        training[1]()
        prof.step()
    texts = " ".join(str(w.message) for w in caught)
    assert "cannot be used" in texts
    assert "must be a torch.nn.Module" in texts


def test_warnings_as_errors_do_not_reach_the_training(tmp_path, training):
    blocker = tmp_path / "file"
    blocker.write_text("")
    with warnings.catch_warnings():
        warnings.simplefilter("error", TbDlprofWarning)
        with profile(blocker / "x", training[0], schedule={"active": "x"}):
            training[1]()


def test_the_torch_profiler_shows_through(tmp_path, training):
    with profile(tmp_path, schedule=(0, 1, 2, 1)) as prof:
        for _ in range(4):
            training[1]()
            prof.step()
    assert isinstance(prof.profiler, torch.profiler.profile)
    assert any("conv" in event.key for event in prof.key_averages())
    assert prof.wait(60)


@pytest.mark.parametrize(("mode", "waits"), [(0, False), (1, True)], ids=["driver", "worker"])
def test_a_worker_of_ray_waits_for_the_analysis_before_it_is_killed(monkeypatch, tmp_path, training, mode, waits):
    """Ray itself is too large for the tests: these are the names that version 2.60 has."""
    context = SimpleNamespace(worker=SimpleNamespace(mode=mode))
    ray = SimpleNamespace(is_initialized=lambda: True, get_runtime_context=lambda: context, WORKER_MODE=1)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.delattr(sys, "ps1", raising=False)
    model, step = training
    with profile(tmp_path, model, schedule=(0, 1, 1)) as prof:
        for _ in range(3):
            step()
            prof.step()
    assert session_module._waits_by_itself() is waits
    if waits:
        assert list(tmp_path.glob("*tfevents*"))
