"""Profilers of torch that are not ours are seen, whenever they start. (`test_hook_programs` has what happens then.)"""

from __future__ import annotations

import os
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.autograd.profiler as autograd_profiler  # noqa: E402
import torch.autograd.profiler_legacy as legacy_profiler  # noqa: E402
from torch.profiler import ProfilerActivity, schedule  # noqa: E402
from torch.profiler import profile as torch_profile  # noqa: E402

from tb_dlprof_plugin import profile, trace_handler  # noqa: E402
from tb_dlprof_plugin.capture.analysis_process import _read_line  # noqa: E402
from tb_dlprof_plugin.capture.profiler_turn import ProfilerTurn  # noqa: E402
from tb_dlprof_plugin.capture.warn import TbDlprofWarning  # noqa: E402

CPU = [ProfilerActivity.CPU]


def functions() -> list[Any]:
    """Those of torch through which all profilers start and end."""
    names = ("_prepare_profiler", "_enable_profiler", "_disable_profiler")
    legacy = ("_enable_profiler_legacy", "_disable_profiler_legacy")
    return [getattr(autograd_profiler, name) for name in names] + [getattr(legacy_profiler, name) for name in legacy]


TORCHS = functions()


@pytest.fixture
def turn() -> Any:
    """Watches."""
    lost: list[bool] = []
    made = ProfilerTurn(lambda: lost.append(True))
    made.watch()
    yield made
    made.leave()
    assert functions() == TORCHS
    assert lost == []


def test_torchs_functions_come_back_after_a_recording(tmp_path, training):
    with profile(tmp_path, training[0], schedule=(0, 1, 1, 1), wait=True) as prof:
        assert functions() != TORCHS
        for _ in range(3):
            training[1]()
            prof.step()
    assert functions() == TORCHS


def test_torchs_functions_come_back_after_a_recording_that_was_lost(tmp_path, training):
    with profile(tmp_path, training[0], schedule=(0, 1, 2, 1)) as prof:
        prof.step()
        with pytest.warns(TbDlprofWarning, match="the script started a profiler itself"), torch_profile(activities=CPU):
            training[1]()
        prof.step()
        assert functions() == TORCHS


def test_a_handler_without_a_model_leaves_torch_alone(tmp_path):
    handler = trace_handler(tmp_path)
    assert functions() == TORCHS
    handler.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch_profile(activities=CPU),
        lambda: torch_profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=1)),
        autograd_profiler.profile,
        autograd_profiler.emit_itt,
        legacy_profiler.profile,
    ],
)
def test_every_profiler_of_torch_is_seen_from_its_start_to_its_end(turn, make):
    assert turn.is_free
    with make():
        assert not turn.is_free
    assert turn.is_free


def test_a_profiler_that_warms_up_already_is_seen():
    with torch_profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=1)):
        made = ProfilerTurn(lambda: None)
        made.watch()
        assert not made.is_free
    assert made.is_free
    made.leave()


def test_a_profiler_that_fails_to_start_is_not_seen_any_longer(turn):
    with autograd_profiler.emit_itt():
        with pytest.raises(RuntimeError, match="already enabled"):
            autograd_profiler.emit_itt().__enter__()
        assert not turn.is_free
    assert turn.is_free


def test_ours_do_not_take_each_others_turn(tmp_path, training):
    with profile(tmp_path / "a", schedule=(0, 1, 3, 1), wait=True) as first:
        first.step()
        with pytest.warns(TbDlprofWarning, match="another profiler is already running"):
            profile(tmp_path / "b", schedule=(0, 1, 1, 1)).start()
        for _ in range(3):
            training[1]()
            first.step()
    assert list((tmp_path / "a").glob("*tfevents*"))


def test_the_analysis_begins_although_a_forked_child_keeps_the_pipe_open():
    read, write = os.pipe()
    kept = os.dup(write)
    os.write(write, b'{"a": 1}\n')
    os.close(write)
    assert _read_line(read, 30.0) == b'{"a": 1}'
    os.close(kept)
    os.close(read)
