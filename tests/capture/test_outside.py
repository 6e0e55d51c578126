"""Steps outside of the full window: a class that writes an empty trace replaces the recording; all else is real."""

# ruff: noqa: E402 (torch may be missing)
from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.profiler import ProfilerActivity, schedule
from torch.profiler import profile as torch_profile

from tb_dlprof_plugin.capture import around_window as outside_module
from tb_dlprof_plugin.capture import cycle, profile, trace_handler, user_profiler
from tb_dlprof_plugin.capture import light_window as light_module
from tb_dlprof_plugin.capture import session as session_module
from tb_dlprof_plugin.capture.analysis_job import LightTrace
from tb_dlprof_plugin.capture.light_window import LightRecording
from tb_dlprof_plugin.store.logdir import read_profiles

TRANSIT = torch_profile._transit_action


class PlayedLight:
    """Notes what is asked of it, and in which state of torch's profiler; writes an empty trace."""

    said: list[str] = []  # noqa: RUF012

    def __init__(self):
        self.running = False
        self._boundaries = []

    def prepare(self):
        self.running = True
        self.said.append("prepare")

    def begin(self):
        assert self.running
        self.said.append("begin")
        self._boundaries.append(time.time_ns())

    def boundary(self):
        self.said.append("boundary")
        self._boundaries.append(time.time_ns())

    def finish(self, path):
        self.running = False
        self.said.append("finish")
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(json.dumps({"traceEvents": []}))
        return LightTrace(path, [*self._boundaries, time.time_ns()])

    def drop(self):
        if self.running:
            self.said.append("drop")
        self.running = False


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """On a busy machine a step may take a second."""
    monkeypatch.setattr(outside_module, "_LONGEST_AFTER_S", 600.0)


@pytest.fixture
def played(monkeypatch):
    """What was asked of the light window's profiler, as where a GPU is in use."""
    monkeypatch.setattr(PlayedLight, "said", [])
    monkeypatch.setattr(outside_module, "LightRecording", PlayedLight)
    monkeypatch.setattr(cycle, "light_is_possible", lambda: True)
    for module in (session_module, user_profiler):
        monkeypatch.setattr(module, "light_would_say_more", lambda activities: True)
    return PlayedLight.said


WHOLE = ["prepare", "begin", "boundary", "boundary", "finish"]


def facts_of(folder):
    (stored,) = read_profiles(folder)
    return stored.profile.facts


def notes_of(folder):
    (stored,) = read_profiles(folder)
    return {note.code for note in stored.profile.notes}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def loop(prof, step, steps):
    for _ in range(steps):
        step()
        prof.step()


def test_the_light_window_comes_before_the_full_one(tmp_path, training, played):
    with profile(tmp_path, training[0], wait=True) as prof:
        loop(prof, training[1], 9)
        # Still under way.
        assert played == WHOLE[:4]
        loop(prof, training[1], 1)
        assert played == WHOLE
        loop(prof, training[1], 20)
    assert played == WHOLE
    # It was read, and removed.
    assert "light_window" in notes_of(tmp_path)
    assert not [name for name in names(tmp_path) if "light" in name]
    assert len(facts_of(tmp_path).unprofiled_before_ns) == 4
    assert len(facts_of(tmp_path).unprofiled_after_ns) == 6


def test_without_room_it_comes_after_the_full_one(tmp_path, training, played):
    with profile(tmp_path, training[0], schedule=(2, 1, 1, 1), wait=True) as prof:
        loop(prof, training[1], 4)
        assert played == []
        loop(prof, training[1], 10)
    assert played == WHOLE
    assert "light_window" in notes_of(tmp_path)
    assert len(facts_of(tmp_path).unprofiled_after_ns) == 4


@pytest.mark.parametrize("steps", [7, 8])
def test_a_loop_that_stops_within_a_light_window_has_none(tmp_path, training, played, steps):
    with profile(tmp_path, training[0], schedule=(2, 1, 1, 1), wait=True) as prof:
        loop(prof, training[1], steps)
    assert played[-1] == "drop"
    assert "light_window" not in notes_of(tmp_path)
    assert not [name for name in names(tmp_path) if "light" in name]


def test_a_loop_that_stops_between_both_windows_leaves_nothing_behind(tmp_path, training, played):
    with pytest.warns(UserWarning, match="No profile was written"), profile(tmp_path, training[0], wait=True) as prof:
        loop(prof, training[1], 11)
    assert played == WHOLE
    assert names(tmp_path) == []


def test_hooks_are_off_in_all_steps_outside_of_the_full_window(tmp_path, training, played, kit):
    model, step = training
    hooked = []
    with profile(tmp_path, model, schedule=(2, 1, 1, 1), wait=True) as prof:
        for _ in range(12):
            hooked.append(kit.is_observed(model))
            step()
            prof.step()
    assert hooked == [False] * 2 + [True] * 2 + [False] * 8


def train_with_own_profiler(handler, step, steps, **options):
    losses = []
    wanted = {"wait": 0, "warmup": 1, "active": 2, "repeat": 1} | options
    with torch_profile(schedule=schedule(**wanted), on_trace_ready=handler, record_shapes=True) as prof:
        for _ in range(steps):
            losses.append(step())
            prof.step()
    return losses


def test_steps_after_a_recording_of_the_users_own_profiler_are_measured(tmp_path, kit, played):
    model, step = kit.make_training()
    handler = trace_handler(tmp_path, model=model)
    losses = train_with_own_profiler(handler, step, 14)
    assert torch_profile._transit_action is TRANSIT
    assert handler.wait(60)
    assert played == WHOLE
    assert len(facts_of(tmp_path).unprofiled_after_ns) == 5
    assert facts_of(tmp_path).unprofiled_before_ns == []
    assert "light_window" in notes_of(tmp_path)
    plain = kit.make_training()[1]
    assert losses == [plain() for _ in range(14)]


def test_following_ends_where_enough_is_measured_and_the_hooks_come_back(tmp_path, training, monkeypatch, kit):
    monkeypatch.setattr(outside_module, "_ENOUGH_AFTER_S", 0.0)
    model, step = training
    handler = trace_handler(tmp_path, model=model)
    states = []
    with torch_profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=1), on_trace_ready=handler) as prof:
        for _ in range(30):
            step()
            prof.step()
            states.append((torch_profile._transit_action is TRANSIT, kit.is_observed(model)))
    # Recorded, two left out, 20 timed; the boundary after the last of them restores all.
    assert states == [(True, True)] + [(False, False)] * 22 + [(True, True)] * 7
    handler.close()
    assert handler.wait(60)
    assert len(facts_of(tmp_path).unprofiled_after_ns) == 20


def test_the_next_cycle_ends_a_light_window_before_torch_begins_its_own(tmp_path, training, played):
    handler = trace_handler(tmp_path)

    def as_lightning(step):
        # A call for a later step has side effects in Lightning's schedules.
        return schedule(wait=3, warmup=1, active=1, repeat=2)(step)

    with torch_profile(schedule=as_lightning, on_trace_ready=handler) as prof:
        for _ in range(10):
            training[1]()
            prof.step()
    # One step of it was over.
    assert played == ["prepare", "begin", "finish"]
    assert handler.wait(60)
    assert len(read_profiles(tmp_path)) == 2


def test_what_fails_while_following_costs_the_training_nothing(tmp_path, training, monkeypatch):
    handler = trace_handler(tmp_path)

    def broken(*args, **kwargs):
        raise RuntimeError("no plan")

    monkeypatch.setattr(cycle, "kind_outside", broken)
    assert len(train_with_own_profiler(handler, training[1], 8)) == 8
    assert torch_profile._transit_action is TRANSIT
    assert handler.wait(60)
    assert facts_of(tmp_path).unprofiled_after_ns == []


def test_a_profiler_that_is_followed_copies_as_ever(tmp_path, training):
    handler = trace_handler(tmp_path)
    with torch_profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=1), on_trace_ready=handler) as prof:
        before = set(vars(prof))
        for _ in range(5):
            training[1]()
            prof.step()
        assert torch_profile._transit_action is not TRANSIT
        assert set(vars(prof)) == before
        other = copy.copy(prof)
        other.step()
        assert prof.step_num == 5
        assert pickle.loads(pickle.dumps(torch_profile)) is torch_profile
    handler.wait(60)


@pytest.fixture
def on_cpu(monkeypatch):
    """Light recordings for a machine without a GPU: of the CPU's activities."""
    monkeypatch.setattr(light_module, "_ACTIVITIES", [ProfilerActivity.CPU])


def test_a_light_recording_stays_away_from_another_profiler(on_cpu):
    light = LightRecording()
    with torch_profile(activities=[ProfilerActivity.CPU]):
        light.prepare()
        assert not light.running
    assert not torch._C._autograd._profiler_enabled()


def test_a_light_recording_that_is_dropped_leaves_no_profiler_running(tmp_path, on_cpu):
    for begun in (False, True):
        light = LightRecording()
        light.prepare()
        assert light.running
        if begun:
            light.begin()
        light.drop()
        assert not light.running
        assert not torch._C._autograd._profiler_enabled()
    with torch_profile(activities=[ProfilerActivity.CPU]) as prof:
        torch.ones(3).sum()
    assert any("sum" in event.key for event in prof.key_averages())


def test_a_light_recording_writes_its_trace_and_the_times_of_its_boundaries(tmp_path, on_cpu):
    light = LightRecording()
    light.prepare()
    before = time.time_ns()
    light.begin()
    light.boundary()
    trace = light.finish(str(tmp_path / ".x.light.json"))
    assert trace is not None
    assert (
        before <= trace.boundary_unix_ns[0] <= trace.boundary_unix_ns[1] <= trace.boundary_unix_ns[2] <= time.time_ns()
    )
    assert "traceEvents" in json.loads(Path(trace.path).read_text())


def test_a_light_recording_that_cannot_be_written_is_none(tmp_path, on_cpu):
    (tmp_path / "file").write_text("")
    light = LightRecording()
    light.prepare()
    light.begin()
    assert light.finish(str(tmp_path / "file" / "x.json")) is None
    assert not torch._C._autograd._profiler_enabled()


def test_a_training_that_is_killed_after_its_recording_leaves_a_profile(tmp_path):
    script = """
        import os, signal, sys, torch
        from tb_dlprof_plugin.capture import profile
        model = torch.nn.Linear(4, 4)
        with profile(sys.argv[1], schedule=(0, 1, 1, 1)) as prof:
            for _ in range(6):
                model(torch.randn(2, 4))
                prof.step()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(script))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    subprocess.run([sys.executable, str(path), str(tmp_path / "run")], env=env, capture_output=True, timeout=120)
    until_s = time.monotonic() + 60
    while not list((tmp_path / "run").glob("*tfevents*")) and time.monotonic() < until_s:
        time.sleep(0.1)
    assert len(read_profiles(tmp_path / "run")) == 1
