"""What the hook leaves for the PyTorch Profiler tab, and that it never stands in the way of the profile."""

from __future__ import annotations

import warnings

import pytest
import torch

from tb_dlprof_plugin import trace_handler
from tb_dlprof_plugin.capture.handler import wants_pytorch_views
from tb_dlprof_plugin.readers.kineto.reader import read_kineto
from tb_dlprof_plugin.readers.trace_names import is_copy
from tb_dlprof_plugin.store.logdir import read_profiles


def recorded(folder, step, **options):
    handler = trace_handler(folder, "worker0", pytorch_views=True, **options)
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1)
    with torch.profiler.profile(schedule=schedule, on_trace_ready=handler) as prof:
        for _ in range(3):
            step()
            prof.step()
    assert handler.wait(60)
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("use_gzip", [False, True])
def test_the_tab_has_its_copy_and_the_trace_is_as_torch_wrote_it(tmp_path, training, use_gzip):
    events, original, copy = recorded(tmp_path, training[1], use_gzip=use_gzip)
    assert original.startswith("kineto/worker0.")
    assert original.endswith(".trace.json" + ".gz" * use_gzip)
    assert copy == original.removeprefix("kineto/").partition(".trace")[0] + ".pt.trace.json.gz"
    assert is_copy(tmp_path / copy)
    assert len(read_kineto(tmp_path / original).host) > 0
    (stored,) = read_profiles(tmp_path / events)
    assert stored.profile.source.trace_file == original


def test_a_trace_that_is_not_kept_leaves_the_copy_alone(tmp_path, training):
    events, copy = recorded(tmp_path, training[1], keep_trace=False)
    assert is_copy(tmp_path / copy)
    (stored,) = read_profiles(tmp_path / events)
    assert stored.profile.source.trace_file == copy


def test_a_copy_that_fails_is_a_warning_and_the_profile_is_there(tmp_path, training, monkeypatch):
    # What a full disk does to the copy alone: its name is taken by a directory.
    monkeypatch.setattr("tb_dlprof_plugin.capture.handler.copy_name", lambda stem: "taken")
    (tmp_path / "taken" / "by").mkdir(parents=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = recorded(tmp_path, training[1])
    assert [str(w.message).split(",")[0] for w in caught if "PyTorch Profiler" in str(w.message)] == [
        "The profile is written"
    ]
    assert len(found) == 2
    assert len(read_profiles(tmp_path)) == 1


def test_who_has_the_tab_gets_the_copy_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("TB_DLPROF_PYTORCH_VIEWS")
    pytest.importorskip("torch_tb_profiler")
    assert wants_pytorch_views(keep_trace=True)
    assert not wants_pytorch_views(keep_trace=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not wants_pytorch_views(keep_trace=True)
    monkeypatch.setenv("TB_DLPROF_PYTORCH_VIEWS", "1")
    assert wants_pytorch_views(keep_trace=False)
    monkeypatch.setenv("TB_DLPROF_PYTORCH_VIEWS", "0")
    assert not wants_pytorch_views(keep_trace=True)
