"""What the hook leaves for the PyTorch Profiler tab, and that it never stands in the way of the profile."""

from __future__ import annotations

import sys
import warnings

import pytest
import torch
from support.kineto_file import read_kineto

from tb_dlprof_plugin import trace_handler
from tb_dlprof_plugin.interop.torch_tb_profiler.wanted import ENVIRONMENT, wants_copy
from tb_dlprof_plugin.readers.trace_names import is_copy
from tb_dlprof_plugin.store.logdir import read_profiles


def recorded(folder, step, **options):
    handler = trace_handler(folder, "worker0", **({"pytorch_views": True} | options))
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


def test_a_copy_is_wanted_with_the_extra_and_not_without_it(monkeypatch, installed):
    monkeypatch.delenv(ENVIRONMENT)
    installed(True)
    assert wants_copy(keep_trace=True)
    assert not wants_copy(keep_trace=False)
    installed(False)
    assert not wants_copy(keep_trace=True)
    monkeypatch.setenv(ENVIRONMENT, "1")
    assert wants_copy(keep_trace=False)
    installed(True)
    monkeypatch.setenv(ENVIRONMENT, "0")
    assert not wants_copy(keep_trace=True)


@pytest.mark.parametrize("extra", [True, False])
def test_the_hook_leaves_a_copy_with_the_extra_and_the_bare_trace_without_it(
    tmp_path, training, monkeypatch, installed, extra
):
    monkeypatch.delenv(ENVIRONMENT)
    installed(extra)
    found = recorded(tmp_path, training[1], pytorch_views=None)
    traces = [tmp_path / name for name in found if ".trace.json" in name]
    assert sorted(is_copy(trace) for trace in traces) == ([False, True] if extra else [False])
    assert (tmp_path / "kineto").is_dir() is extra


@pytest.mark.parametrize("option", [True, False])
def test_the_option_decides_whatever_is_installed(tmp_path, training, installed, option):
    installed(not option)
    found = recorded(tmp_path, training[1], pytorch_views=option)
    assert any(is_copy(tmp_path / name) for name in found) is option


@pytest.fixture
def installed(tmp_path_factory, monkeypatch):
    """Makes torch-tb-profiler one that is installed, or one that is not."""
    site = tmp_path_factory.mktemp("site")
    (site / "torch_tb_profiler").mkdir()
    (site / "torch_tb_profiler" / "__init__.py").touch()

    def install(there: bool) -> None:
        if there:
            monkeypatch.delitem(sys.modules, "torch_tb_profiler", raising=False)
            monkeypatch.syspath_prepend(site)
        else:
            monkeypatch.setitem(sys.modules, "torch_tb_profiler", None)

    return install
